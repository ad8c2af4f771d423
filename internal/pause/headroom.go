package pause

import (
	"time"

	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// onWire is what a frame takes on a wire beside its bytes: preamble, frame check sequence and the gap to the next (IEEE 802.3, 3.1).
	onWire = 8 + 4 + 12
	// perMetre is how long a signal takes for a metre of fibre or copper.
	perMetre = 5 * time.Nanosecond
	// quantum is the bits of a quantum.
	quantum = 512
)

// Reach is what decides how much arrives at one end of a link after that has found that the other end is to pause.
type Reach struct {
	// Rate is in bits per second.
	Rate uint64
	// Delay is how long a bit takes from end to end (Cable), with what the interfaces at both ends add.
	Delay time.Duration
	// Longest is the length of the longest frame in bytes, from the Ethernet header on and without FCS; a pause waits for one, and the
	// other end ends one.
	Longest int
	// Response is how long the other end takes to obey, at most ResponseTime by the standard.
	Response time.Duration
}

// Headroom returns how many bytes arrive at most (IEEE 802.1Q, annex O: buffer requirements for PFC): what the other end sends while the
// pause waits for a frame that has begun, is sent, and travels; until it obeys; a frame that it has begun then; and what is on its way.
func (r Reach) Headroom() int {
	perSecond := float64(r.Rate) / 8
	frame := r.Longest + onWire
	return int(perSecond*(2*r.Delay+r.Response).Seconds()) + 2*frame + eth.PauseLen + onWire
}

// Cable returns the delay of a cable of so many metres.
func Cable(metres float64) time.Duration { return time.Duration(metres * float64(perMetre)) }

// ResponseTime returns how long a port of a rate in bits per second may take at most from the end of a pause until it obeys (IEEE 802.3,
// 31B.3.7; IEEE 802.1Q, 36.1.3.3): 60 quanta at 10 Gb/s, 80 at 25, 118 at 40, 394 at 100 and 905 at 400, two at 1 and below. Other rates
// have the quanta of the next of these. The numbers, and the sum of Headroom, are as vendors' guides to PFC give
// them: the standards were not at hand to compare them with.
func ResponseTime(rate uint64) time.Duration {
	quanta := 905
	for _, x := range [...]struct {
		rate   uint64
		quanta int
	}{{1e9, 2}, {10e9, 60}, {25e9, 80}, {40e9, 118}, {100e9, 394}} {
		if rate <= x.rate {
			quanta = x.quanta
			break
		}
	}
	return time.Duration(float64(quanta*quantum) * 1e9 / float64(max(rate, 1)))
}
