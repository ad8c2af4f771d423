package impair

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	lateMost = 8                // packets that overtake one
	lateWait = time.Millisecond // until a packet that too few overtook is sent

	// Bytes on the wire around a UDP payload for IPv4: Ethernet, IP and UDP headers, frame check sequence,
	// preamble and gap. IPv6 has 20 more.
	wireOverhead    = 14 + 20 + 8 + 4 + 20
	wireOverheadV6  = wireOverhead + 20
	wireOverheadRaw = 4 + 20

	bthCongestion = 4 // the one byte of a BTH that the ICRC does not cover
)

// Model decides what an impairment does to the packets of one direction, one after the other. It holds no
// packet and reads no clock: a Link asks it in real time, and the simulator in virtual time. The zero value
// impairs nothing.
type Model struct {
	set    Impairment
	random *rand.Rand
	faulty bool       // something besides delays happens to packets
	free   clock.Time // when the wire is free, at the limited rate
	part   float64    // of a nanosecond, that it is busy beyond that
	last   clock.Time // when the packet before leaves
}

// Set changes the impairment, and where the random choices come from. When packets leave that were decided
// on before stays as it is.
func (m *Model) Set(set Impairment, random *rand.Rand) {
	m.set, m.random, m.free, m.part = set, random, 0, 0
	m.faulty = set.Loss > 0 || set.Corrupt > 0 || set.ECN > 0 || set.Duplicate > 0 || set.Reorder > 0
}

// Setting returns the impairment.
func (m *Model) Setting() Impairment { return m.set }

// Fate is what happens to a packet. A packet that is lost has no other.
type Fate struct {
	Lost    bool
	Corrupt bool // one bit is flipped: Flip says which
	Marked  bool // as having met congestion: Mark
	Twice   bool // a second one follows, which is not corrupt
	Late    bool // it is held back: Hold says until when
}

// Fate decides about the next packet. It draws no random number for a kind of impairment that is off, so
// that one kind does not change what another does.
func (m *Model) Fate() Fate {
	if !m.faulty {
		return Fate{}
	}
	if m.happens(m.set.Loss) {
		return Fate{Lost: true}
	}
	var f Fate
	f.Corrupt, f.Marked = m.happens(m.set.Corrupt), m.happens(m.set.ECN)
	f.Twice, f.Late = m.happens(m.set.Duplicate), m.happens(m.set.Reorder)
	return f
}

func (m *Model) happens(p float64) bool { return p > 0 && m.random.Float64() < p }

// Due returns when a packet of so many bytes on the wire leaves: when the wire is free, and after its
// delay, but never before the packet ahead of it.
func (m *Model) Due(now clock.Time, bytes int) clock.Time {
	at := now
	if m.set.Rate != 0 {
		m.free = max(now, m.free).Add(m.wireTime(bytes))
		at = m.free
	}
	at = at.Add(m.set.Delay)
	if j := int64(m.set.Jitter); j > 0 {
		at = max(now, at+clock.Time(m.random.Int64N(2*j+1)-j))
	}
	m.last = max(at, m.last)
	return m.last
}

// Last returns when the packet leaves that Due was asked about last.
func (m *Model) Last() clock.Time { return m.last }

// Backlog returns how long the packets take that the limited rate has not let go yet.
func (m *Model) Backlog(now clock.Time) time.Duration { return max(0, m.free.Sub(now)) }

// Hold returns how a packet that is late is held back: until so many others have overtaken it, or the time
// has come.
func (m *Model) Hold(now clock.Time) (overtaken int, until clock.Time) {
	if by := int64(m.set.ReorderBy); by > 0 {
		return 1 << 30, now.Add(time.Duration(1 + m.random.Int64N(by)))
	}
	return 1 + m.random.IntN(lateMost), now.Add(lateWait)
}

// Flip returns which bit of a corrupt packet is wrong: in a byte of the n from the BTH on that the ICRC
// covers.
func (m *Model) Flip(n int) (at int, bit byte) {
	if at = m.random.IntN(n); at == bthCongestion {
		at++
	}
	return at, 1 << m.random.IntN(8)
}

// WireLength returns how many bytes a UDP payload takes on an Ethernet link, to dst.
func WireLength(payload int, dst netip.Addr) int {
	if dst.Unmap().Is4() {
		return payload + wireOverhead
	}
	return payload + wireOverheadV6
}

// wireTime returns how long that many bytes take at the rate. Parts of nanoseconds add up: a short packet takes 7 at 100 Gb/s.
func (m *Model) wireTime(bytes int) time.Duration {
	took := float64(bytes)*8*1e9/float64(m.set.Rate) + m.part
	whole := time.Duration(took)
	m.part = took - float64(whole)
	return whole
}

// Late is the packets of one direction that are held back. The zero value holds none.
type Late[P any] struct {
	all    []late[P]
	passed uint64     // packets that have overtaken some
	turn   uint64     // the least of the turns of all
	until  clock.Time // the first of their times
}

// late is a packet held back until enough others have overtaken it, or its time has come.
type late[P any] struct {
	packet P
	turn   uint64 // the value of passed with which it may leave
	until  clock.Time
}

// Len returns how many are held.
func (l *Late[P]) Len() int { return len(l.all) }

// Add holds a packet back as Model.Hold says.
func (l *Late[P]) Add(p P, overtaken int, until clock.Time) {
	x := late[P]{p, l.passed + uint64(overtaken), until}
	if len(l.all) == 0 || x.turn < l.turn {
		l.turn = x.turn
	}
	if len(l.all) == 0 || x.until < l.until {
		l.until = x.until
	}
	l.all = append(l.all, x)
}

// first finds the least turn and the first time again after a packet has left.
func (l *Late[P]) first() {
	l.turn, l.until = 1<<64-1, clock.Never
	for i := range l.all {
		l.turn, l.until = min(l.turn, l.all[i].turn), min(l.until, l.all[i].until)
	}
}

// Pass notes that a packet has overtaken those that are held.
func (l *Late[P]) Pass() { l.passed++ }

// Take removes a packet that need not wait any longer; false: there is none.
func (l *Late[P]) Take(now clock.Time) (p P, ok bool) {
	if len(l.all) == 0 || l.passed < l.turn && now < l.until {
		return p, false
	}
	for i := range l.all {
		if x := &l.all[i]; x.turn <= l.passed || x.until <= now {
			p = x.packet
			last := len(l.all) - 1
			l.all[i] = l.all[last]
			l.all[last] = late[P]{}
			l.all = l.all[:last]
			l.first()
			return p, true
		}
	}
	return p, false
}

// Deadline returns when the time of the first has come; Never if none is held.
func (l *Late[P]) Deadline() clock.Time {
	if len(l.all) == 0 {
		return clock.Never
	}
	return l.until
}
