package team

import (
	"math"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const (
	// buckets is over how many parts flows are spread; each has one member.
	buckets = 256
	// forgotten is after how long without a frame an adaptive team may send a bucket another way: what was sent before has arrived.
	forgotten = 10 * time.Second
	// window is after how long what was sent counts half for who has sent least.
	window = time.Second
	// unknownSpeed is for members whose links have none of their own, in bits per second.
	unknownSpeed = 10e9
)

// spread says which member the flows of a bucket leave by.
type spread struct {
	to   [buckets]int8 // -1: none, or none yet
	last [buckets]clock.Time
	load [MostMembers]float64 // bytes, older ones less
	aged clock.Time
}

func (s *spread) clear() {
	for i := range s.to {
		s.to[i] = -1
	}
}

// respread gives buckets to the members that send now. Flows of one that still does stay there, unless there is another now that is to
// have them.
func (t *Team) respread(now clock.Time) {
	if t.cfg.Type == ALB {
		for b, i := range t.spread.to {
			if i >= 0 && !t.members[i].sends {
				t.spread.to[b] = -1
			}
		}
		return
	}
	for b := range t.spread.to {
		t.move(now, b, t.highest(uint32(b)))
	}
	t.mark(now)
}

// highest is the member that wins a bucket by weighted rendezvous hashing: when one fails only its own buckets move, and each to where
// it would have been without it.
func (t *Team) highest(bucket uint32) int8 {
	best, most := int8(-1), math.Inf(-1)
	for i := range t.members {
		m := &t.members[i]
		if !m.sends {
			continue
		}
		u := (float64(finish(mix(seed, bucket, uint32(i)))) + 0.5) / (1 << 32)
		if score := m.weight() / -math.Log(u); score > most {
			best, most = int8(i), score
		}
	}
	return best
}

func (m *member) weight() float64 {
	if m.speed == 0 {
		return unknownSpeed
	}
	return float64(m.speed)
}

// by returns the member that a frame of a flow leaves by; -1: none sends.
func (t *Team) by(now clock.Time, flow uint32, size int) int {
	s, b := &t.spread, flow%buckets
	if t.cfg.Type != ALB {
		s.last[b] = now
		return int(s.to[b])
	}
	if s.to[b] < 0 || now.Sub(s.last[b]) >= forgotten {
		s.age(now)
		s.to[b] = t.idlest()
	}
	if s.to[b] >= 0 {
		s.last[b] = now
		s.load[s.to[b]] += float64(size)
	}
	return int(s.to[b])
}

// age lets what was sent earlier count less.
func (s *spread) age(now clock.Time) {
	f := math.Exp2(-float64(now.Sub(s.aged)) / float64(window))
	for i := range s.load {
		s.load[i] *= f
	}
	s.aged = now
}

// idlest is the member that has sent least of what it could.
func (t *Team) idlest() int8 {
	best, least := int8(-1), math.Inf(1)
	for i := range t.members {
		if m := &t.members[i]; m.sends {
			if load := t.spread.load[i] / m.weight(); load < least {
				best, least = int8(i), load
			}
		}
	}
	return best
}
