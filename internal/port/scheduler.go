package port

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

const (
	// classes is the number of traffic classes (IEEE 802.1Q, 8.6.6).
	classes = 8
	// allPackets is no limit for one pull.
	allPackets = 1 << 16
	// fewPackets is how many packets one of several competing priorities sends at a time: few beside the packets of
	// the time in which somebody would notice, and enough for a burst that costs the system little more than a packet.
	fewPackets = 16
	// round is how many bytes all classes that share send together before the first has its turn again. What one sends too
	// much is made up for in the next rounds, so that shares hold exactly over time.
	round = 64 * 1024
	// maxWeight limits how long the others wait.
	maxWeight = 100
	// rateBurst is how much of a limited rate may be used at once after a pause.
	rateBurst = 64 * 1024
)

// Traffic is how a port divides its wire between priorities. The zero value: all of them are in one class and take
// turns, nothing is limited.
type Traffic struct {
	// Class is the traffic class of each priority, 0 to 7. The priorities of a class take turns.
	Class [frame.Priorities]uint8
	// Strict has bit c set if class c goes before all classes that are not strict, and before the strict ones of lower
	// numbers.
	Strict uint8
	// Weight is the share of each class that is not strict, relative to the others that have something to send; 0 to
	// 100, where 0 means 1.
	Weight [classes]uint8
	// Rate is the most that each class sends, in bytes of frames in a second; 0: no limit.
	Rate [classes]uint64
}

// ConfigError is an invalid value of a Traffic.
type ConfigError struct {
	Field string
	Value uint64
	Want  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s is %d, want %s", e.Field, e.Value, e.Want)
}

func (t *Traffic) check() error {
	for p, c := range t.Class {
		if c >= classes {
			return &ConfigError{fmt.Sprintf("Class[%d]", p), uint64(c), "0 to 7"}
		}
	}
	for c, w := range t.Weight {
		if w > maxWeight {
			return &ConfigError{fmt.Sprintf("Weight[%d]", c), uint64(w), "0 to 100"}
		}
	}
	return nil
}

// Scheduler chooses the priority at which the next packets leave. The zero value has the zero Traffic.
type Scheduler struct {
	traffic Traffic
	plain   bool                // one class, no rates
	checked bool                // plain is valid
	paused  uint8               // bit p: priority p may not send
	members [classes]uint8      // bits of the priorities of each class
	quantum [classes]int        // bytes that each class may send in a round
	credit  [classes]int        // bytes that each class may still send in this round; less than 0: too many were sent
	last    [classes]uint8      // priority of each class that had the last turn
	class   int                 // the one in whose turn we are
	tokens  [classes]int64      // bytes that a class with a rate may send; less than 0: too many were sent
	filled  [classes]clock.Time // when tokens was last added to
}

// SetTraffic changes how priorities share the wire. The error is a *ConfigError; nothing has changed then.
func (s *Scheduler) SetTraffic(now clock.Time, t Traffic) error {
	if err := t.check(); err != nil {
		return err
	}
	*s = Scheduler{traffic: t, paused: s.paused}
	for c := range classes {
		s.tokens[c], s.filled[c] = rateBurst, now
	}
	s.settle()
	return nil
}

// Traffic returns how priorities share the wire.
func (s *Scheduler) Traffic() Traffic { return s.traffic }

func (s *Scheduler) settle() {
	s.members = [classes]uint8{}
	for p, c := range s.traffic.Class {
		s.members[c] |= 1 << p
	}
	sum := 0
	for c := range s.quantum {
		s.quantum[c] = 0
		if s.members[c] != 0 && s.traffic.Strict>>c&1 == 0 {
			s.quantum[c] = int(max(s.traffic.Weight[c], 1))
			sum += s.quantum[c]
		}
	}
	for c := range s.quantum {
		s.quantum[c] = s.quantum[c] * round / max(sum, 1)
	}
	s.checked = true
	s.plain = s.members[s.traffic.Class[0]] == ^uint8(0) && s.traffic.Rate == [classes]uint64{}
}

// Pause sets the priorities that may not send, bit p for priority p; the others may.
func (s *Scheduler) Pause(priorities uint8) { s.paused = priorities }

// Paused returns the priorities that may not send.
func (s *Scheduler) Paused() uint8 { return s.paused }

// Next returns the priority that sends next, of those in pending, and how many packets it may send. ok is false if none
// of them may send now.
func (s *Scheduler) Next(now clock.Time, pending uint8) (priority uint8, packets int, ok bool) {
	open := pending &^ s.paused
	if open == 0 {
		return 0, 0, false
	}
	if !s.checked {
		s.settle()
	}
	alone := open&(open-1) == 0
	if s.plain {
		if alone {
			return uint8(bits.TrailingZeros8(open)), allPackets, true
		}
		return s.turn(int(s.traffic.Class[0]), open), fewPackets, true
	}
	able := s.able(now, open)
	if able == 0 {
		return 0, 0, false
	}
	c := s.choose(able)
	packets = fewPackets
	if alone && s.traffic.Rate[c] == 0 {
		packets = allPackets
	}
	return s.turn(c, open), packets, true
}

// turn returns the next priority of a class, of those that are open.
func (s *Scheduler) turn(c int, open uint8) uint8 {
	of := open & s.members[c]
	above := of &^ (2<<s.last[c] - 1)
	if above == 0 {
		above = of
	}
	s.last[c] = uint8(bits.TrailingZeros8(above))
	return s.last[c]
}

// able returns the classes with open priorities whose rates allow them to send.
func (s *Scheduler) able(now clock.Time, open uint8) (able uint8) {
	for c := range classes {
		if s.members[c]&open == 0 {
			s.credit[c] = min(s.credit[c], 0) // who has nothing to send saves nothing up
			continue
		}
		if rate := s.traffic.Rate[c]; rate != 0 {
			if s.fill(c, rate, now); s.tokens[c] <= 0 {
				continue
			}
		}
		able |= 1 << c
	}
	return able
}

// fill adds what the rate of a class has allowed since the last time.
func (s *Scheduler) fill(c int, rate uint64, now clock.Time) {
	passed := now.Sub(s.filled[c])
	if passed >= time.Second {
		s.tokens[c], s.filled[c] = rateBurst, now
		return
	}
	add := int64(float64(rate) * passed.Seconds())
	if add == 0 {
		return // the rest of a byte counts next time
	}
	s.tokens[c], s.filled[c] = min(s.tokens[c]+add, rateBurst), now
}

// choose returns the class that sends next, of those in able, of which there is one.
func (s *Scheduler) choose(able uint8) int {
	if strict := able & s.traffic.Strict; strict != 0 {
		return 7 - bits.LeadingZeros8(strict)
	}
	if able&(able-1) == 0 { // it takes nothing from others
		c := bits.TrailingZeros8(able)
		s.credit[c] = max(s.credit[c], 0)
		return c
	}
	for able>>s.class&1 == 0 || s.credit[s.class] <= 0 {
		s.class = (s.class + 1) % classes
		if able>>s.class&1 != 0 {
			s.credit[s.class] += s.quantum[s.class]
		}
	}
	return s.class
}

// Sent records that so many bytes were sent at a priority.
func (s *Scheduler) Sent(priority uint8, bytes int) {
	if s.plain {
		return
	}
	c := s.traffic.Class[priority]
	s.credit[c] -= bytes
	s.tokens[c] -= int64(bytes)
}

// Deadline returns from when on Next has something to choose from those in pending: 0 if it has now, clock.Never if all
// are paused.
func (s *Scheduler) Deadline(pending uint8) clock.Time {
	open := pending &^ s.paused
	if open == 0 {
		return clock.Never
	}
	if s.plain || !s.checked {
		return 0
	}
	due := clock.Never
	for c := range classes {
		if s.members[c]&open == 0 {
			continue
		}
		rate := s.traffic.Rate[c]
		if rate == 0 || s.tokens[c] > 0 {
			return 0
		}
		wait := time.Duration(float64(1-s.tokens[c]) / float64(rate) * float64(time.Second))
		due = clock.Min(due, s.filled[c].Add(wait+1))
	}
	return due
}
