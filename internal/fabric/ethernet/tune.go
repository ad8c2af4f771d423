package ethernet

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/clock"
)

// SetGroup changes when what arrives at a priority pauses the other end. What is in the buffer stays there. The error is a *FieldError:
// there must be room in the buffer for the headroom.
func (p *Port) SetGroup(now clock.Time, i int, g Group) error {
	old := p.cfg.Groups[i]
	c := p.cfg
	if err := g.settle(&c, i); err != nil {
		return err
	}
	p.cfg.Groups[i] = g
	room := p.roomOf(i)
	if size := p.sw.buffer.size + p.classes[i].group.room - room; size >= leastShared {
		p.sw.buffer.size = size
	} else {
		p.cfg.Groups[i] = old
		return bad("Headroom", g.Headroom, "less: the buffer has no room for that")
	}
	x := &p.classes[i].group
	x.xoff, x.xon, x.room = thresholdOf(g.Xoff, g.Alpha), g.Xon, room
	p.relax(now, uint8(i))
	return nil
}

// relax lets the other end go on at a priority whose group is far enough below its threshold.
func (p *Port) relax(now clock.Time, i uint8) {
	p.sw.settle(now, MostPorts)
	p.leave(now, i, 0)
}

// SetQueue changes how frames of a priority leave: those that wait too. The error is a *FieldError.
func (p *Port) SetQueue(now clock.Time, i int, q Queue) error {
	if err := q.settle(i); err != nil {
		return err
	}
	p.cfg.Queues[i] = q
	p.classes[i].queue.set(&q)
	p.scheduler.quantum[i] = quantum * int(q.Weight)
	if p.scheduler.strict &^= 1 << i; q.Strict {
		p.scheduler.strict |= 1 << i
	}
	p.wake(now)
	return nil
}

// SetMTU changes the longest IP packet that the port takes and sends. What waits is sent. The error is a *FieldError.
func (p *Port) SetMTU(mtu int) error {
	if mtu < leastMTU || mtu > p.cfg.MTU {
		return bad("MTU", mtu, fmt.Sprintf("%d to %d", leastMTU, p.cfg.MTU))
	}
	p.cfg.Limit = mtu
	return nil
}

// Stormy returns the priorities that have been paused for so long, while frames wait, that this was reported (Storm).
func (p *Port) Stormy() uint8 { return p.stormy }
