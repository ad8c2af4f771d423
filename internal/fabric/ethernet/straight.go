package ethernet

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
)

// Most frames find nothing before them and leave nothing behind them. Such a frame goes straight through the switch, and the port has no
// turn when its line is free again, only to give back the frame's room: that is done when the port sends next, or before somebody looks
// at the buffer to whom it makes a difference.

// late are the ports that give back the room of the frame on their line without a turn.
type late struct {
	ports uint64     // bit n: port n
	first clock.Time // when the first of their lines is free; not before, at least
}

// idle reports whether a port's line is free, and no frames wait and no priority is paused.
func (p *Port) idle(now clock.Time) bool { return p.free <= now && p.backlog|p.flow.Held() == 0 }

// straight lets a frame go straight to the line of a port that is idle, instead of into a queue; false: it cannot, as others are first.
// Nothing else may happen at the switch at the same time. Such a frame is not marked, since the queue is empty.
func (p *Port) straight(now clock.Time, priority uint8, f Ref, n int) bool {
	if p.hung || len(p.urgent) > 0 {
		return false
	}
	if p.sent(now); p.flow.Ready(now) {
		return false
	}
	p.seen |= 1 << priority
	q := &p.classes[priority].queue
	q.peak = max(q.peak, int32(n))
	p.scheduler.choose(1 << priority)
	p.put(now, priority, f, n, false)
	p.sw.due.Set(int(p.number), p.next())
	return true
}

// next returns when the port wants its turn behind a frame that it has just put on the line.
func (p *Port) next() clock.Time {
	s, free := p.sw, p.free
	if p.backlog != 0 || len(p.urgent) > 0 || p.flow.Repeats() != clock.Never || p.flow.Ready(free) {
		return free
	}
	if c := &p.sending; c.size > 0 {
		if s.ports[c.port].xoff>>c.group&1 != 0 { // the other end may go on then
			return free
		}
		s.late.ports |= 1 << p.number
		s.late.first = clock.Min(s.late.first, free)
	}
	return clock.Never
}

// settle gives back the room of frames that have left before a time, and of those that have at that time at ports with lower numbers than
// one: those have their turns first.
func (s *Switch) settle(now clock.Time, port int) {
	if s.late.first <= now {
		s.giveBack(now, port)
	}
}

// giveBack is settle where something has left.
func (s *Switch) giveBack(now clock.Time, port int) {
	s.late.first = clock.Never
	for set := s.late.ports; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		p := &s.ports[i]
		if free := p.free; free < now || free == now && i < port {
			p.giveBack(now)
		} else {
			s.late.first = clock.Min(s.late.first, free)
		}
	}
}

// giveBack gives back the room of the frame that was on the line.
func (p *Port) giveBack(now clock.Time) {
	c := p.sending
	p.sending = charge{}
	p.sw.late.ports &^= 1 << p.number
	p.sw.leave(now, int(p.number), c)
}

// expect makes ports that have a frame of a group on their line have a turn when that is over: the group waits for it.
func (s *Switch) expect(port, group uint8) {
	for set := s.late.ports; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if p := &s.ports[i]; p.sending.port == port && p.sending.group == group {
			s.late.ports &^= 1 << i
			s.due.Set(i, clock.Min(s.due.Get(i), p.free))
		}
	}
}
