package port

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// Share is what a station may have of the port's wire, whatever the priorities of its frames are. 0: nothing is said.
type Share struct {
	// Most is the most that it sends, in bytes of frames in a second.
	Most uint64
	// Least is what it sends before stations do that have had theirs, of those that have something to send at the same priority, in
	// bytes of frames in a second. Who does not send saves nothing up.
	Least uint64
}

// leastBurst is how much of what it is owed a station may be late, while others send what they have begun.
const leastBurst = 4 * rateBurst

// bucket holds the bytes that a rate has allowed, up to a burst. Without a rate it says nothing.
type bucket struct {
	rate   uint64
	burst  int64
	tokens int64 // less than 0: too many were sent
	filled clock.Time
}

func newBucket(now clock.Time, rate uint64, burst int64) bucket {
	return bucket{rate: rate, burst: burst, tokens: burst, filled: now}
}

// fill adds what the rate has allowed since the last time.
func (b *bucket) fill(now clock.Time) {
	if b.rate == 0 {
		return
	}
	add := int64(min(float64(b.rate)*now.Sub(b.filled).Seconds(), 1<<50))
	if add == 0 {
		return // the rest of a byte counts next time
	}
	b.tokens, b.filled = min(b.tokens+add, b.burst), now
}

// due returns when there is a byte again.
func (b *bucket) due() clock.Time {
	wait := time.Duration(float64(1-b.tokens) / float64(b.rate) * float64(time.Second))
	return b.filled.Add(wait + 1)
}

// SetShare says what a station may have of the wire from now on, together with those that have joined it.
func (s *Station) SetShare(now clock.Time, of Share) {
	s.most, s.least = newBucket(now, of.Most, rateBurst), newBucket(now, of.Least, leastBurst)
	s.port.listShared()
}

// Join makes a station have what another may have of the wire together with that one, which has joined none itself.
func (s *Station) Join(o *Station) {
	s.joint = o
	s.port.listShared()
}

// listShared finds the stations anew that may have only so much, or are owed something, or that are alone.
func (p *Port) listShared() {
	clear(p.shared)
	p.shared = p.shared[:0]
	for _, s := range p.stations {
		if s.shared = s.purse().Share() != (Share{}); s.shared {
			p.shared = append(p.shared, s)
		}
	}
	p.alone = nil
	if len(p.stations) == 1 && len(p.shared) == 0 {
		p.alone = p.stations[0]
	}
}

// purse returns the station that has the share of this one.
func (s *Station) purse() *Station {
	if s.joint != nil {
		return s.joint
	}
	return s
}

// Share returns what a station may have of the wire.
func (s *Station) Share() Share { return Share{s.most.rate, s.least.rate} }

// fill adds to the shares what their rates have allowed.
func (p *Port) fill(now clock.Time) {
	for _, s := range p.roster.awake {
		if !s.shared {
			continue
		}
		o := s.purse()
		o.most.fill(now)
		o.least.fill(now)
	}
}

// held reports whether a station has sent all that it may for now.
func (s *Station) held() bool {
	o := s.purse()
	return o.most.rate != 0 && o.most.tokens <= 0
}

// owed reports whether a station has not had its least.
func (s *Station) owed() bool {
	o := s.purse()
	return o.least.rate != 0 && o.least.tokens > 0
}

// pending returns the priorities at which a station may send something now.
func (s *Station) pending() uint8 {
	if s.off || s.held() {
		return 0
	}
	return s.function.Pending()
}

// charge takes what a station has sent from its share.
func (s *Station) charge(bytes int) {
	o := s.purse()
	o.most.tokens -= int64(bytes)
	if o.least.rate != 0 {
		o.least.tokens = max(o.least.tokens-int64(bytes), -2*rateBurst) // what it has beyond that is no debt
	}
}

// spoofedCost is how many bytes a refused frame counts as when stations take turns: refusing one costs as much time as sending one,
// whatever its length, and those who have their turns instead are not to notice.
const spoofedCost = 256 * 1024

// fine has a station wait that has sent frames with others' addresses, as long as others have something to send.
func (s *Station) fine(priority uint8) {
	if s.spoofed > 0 {
		s.sent[priority] += s.spoofed * spoofedCost
		s.spoofed = 0
	}
}

// few returns where a station may put packets: one with a share sends few at once, so that it is not far beyond that at any time.
func (s *Station) few(out []frame.Out) []frame.Out {
	if s.shared {
		return out[:min(len(out), fewPackets)]
	}
	return out
}

// sharesDue returns when the first of the stations that have sent all that they may, and want to send more, may do so.
func (p *Port) sharesDue() clock.Time {
	due := clock.Never
	for _, s := range p.roster.awake {
		if s.shared && !s.off && s.held() && s.function.Pending() != 0 {
			due = clock.Min(due, s.purse().most.due())
		}
	}
	return due
}

// before reports whether a station sends before another at a priority: who is owed something, and then who has sent fewer bytes.
func (p *Port) before(s, o *Station, priority uint8) bool {
	if a, b := s.owed(), o.owed(); a != b {
		return a
	}
	return max(s.sent[priority], p.served[priority]) < max(o.sent[priority], p.served[priority])
}
