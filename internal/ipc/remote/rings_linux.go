package remote

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ring"
)

// addCQ opens the ring of a CQ. The caller holds mu.
func (p *program) addCQ(q command.Queue, c *command.CreateCQ) error {
	r, err := p.openCQ(q)
	if err != nil {
		return err
	}
	p.cqs[q.Handle] = &completions{ring: r, handle: q.Handle, at: q.Ring, channel: command.Handle(c.Channel),
		adapter: c.Adapter, drops: c.Flags&command.CQIgnoreOverrun != 0}
	return nil
}

// openCQ opens an empty ring of completions. The caller holds mu.
func (p *program) openCQ(q command.Queue) (*ring.CQ, error) {
	b, err := within(p.arenas, q.Ring)
	if err != nil {
		return nil, err
	}
	r, err := ring.OpenCQ(b, ring.Geometry{Entries: int(q.Depth), Stride: int(q.Stride)})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMessage, err)
	}
	clear(b) // it may have been another's
	return r, nil
}

// mayResize says whether a CQ may have a ring of another size, by the rules of the driver, which knows only what the relay has taken: its
// ring is empty soon, and its memory may be another ring's, while the program still has completions in the one here.
func (p *program) mayResize(q proto.ResizeArgs) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.cqs[q.Queue]
	if c == nil {
		return nil // the driver says so
	}
	for ; len(c.old) > 1; c.old = c.old[1:] {
		if n, _ := c.old[0].Unpolled(); n > 0 {
			return command.Errorf(command.Busy, "completions of an earlier resize are not polled yet: %d", n)
		}
	}
	waiting, _ := c.ring.Unpolled() // a broken ring counts as full
	for _, o := range c.old {
		n, _ := o.Unpolled()
		waiting += n
	}
	if uint64(waiting) > uint64(q.Depth) { // IBA 11.2.8.3
		return command.Errorf(command.Busy, "depth is %d, but %d completions wait to be polled", q.Depth, waiting)
	}
	return nil
}

// moveCQ continues in another ring, and has the program told (docs/spec/ipc.md, Resizing a CQ). The caller holds mu.
func (p *program) moveCQ(q command.Queue) error {
	c := p.cqs[q.Handle]
	if c == nil {
		return nil // it was destroyed just now
	}
	next, err := p.openCQ(q)
	if err != nil {
		return err
	}
	wake := c.ring.Move(next)
	c.notify(p, wake)
	c.old = append(c.old, c.ring)
	c.ring, c.at = next, q.Ring
	return nil
}

// addQueue opens a ring of requests; one without size is none. The caller holds mu.
func (p *program) addQueue(name queueName, at command.Ring, entries, stride uint32) error {
	if at.Size == 0 {
		return nil
	}
	q, err := newQueue(p.arenas, at, entries, stride)
	if err != nil {
		return err
	}
	clear(q.mem) // it may have been another's
	p.queues[name] = q
	return nil
}

// moveSRQ continues in the ring that an SRQ was moved to, and returns the program's answer. The caller holds mu.
func (p *program) moveSRQ(body []byte) ([]byte, error) {
	n := len(proto.Encode(command.Queue{}))
	if len(body) < n {
		return nil, fmt.Errorf("%w: %d bytes, not %d", errMessage, len(body), n)
	}
	q, err := proto.Decode[command.Queue](body[:n])
	if err != nil {
		return nil, err
	}
	at, err := whole[resumedAt](body[n:])
	if err != nil {
		return nil, err
	}
	name := queueName{q.Handle, receives}
	if err := p.addQueue(name, q.Ring, q.Depth, q.Stride); err != nil {
		return nil, err
	}
	if next := p.queues[name]; next != nil {
		err = next.resume(at.Producer)
		next.word(producerAt).Store(at.Producer)
	}
	return body[:n], err
}
