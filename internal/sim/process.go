package sim

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// process is members whose turns follow each other in strict order of time. What happens in it depends on others only by
// the packets that they send.
type process struct {
	network  *Network
	number   int
	next     clock.Time    // when it has something to do; 0: at once, or it is at it
	done     clock.Time    // nothing happens here any more before that
	shortest time.Duration // delay of the links that lead here
	queued   bool          // in the window's stack
	now      clock.Time
	feeds    []feed     // the links that lead here from other processes
	readers  []*process // to which links lead from here

	members []member
	woken   set // members that have a turn in the next step
	due     set // members whose deadlines have come
	timers  timers
	queue   arrivals
	held    []*packet // what members have received that have not had their turns since
}

// process adds a process to the network.
func (n *Network) process() *process {
	p := &process{network: n, number: len(n.processes), next: clock.Never, shortest: far}
	n.processes = append(n.processes, p)
	n.agenda.join()
	return p
}

// join makes m a member.
func (p *process) join(m member) {
	*m.seat() = place{p, len(p.members)}
	p.timers.join()
	p.members = append(p.members, m)
	p.woken.grow(len(p.members))
	p.due.grow(len(p.members))
}

// wake gives a member a turn in the next step.
func (p *process) wake(member int) {
	p.woken.add(member)
	p.expect(0)
}

// expect notes that there is something to do at a time.
func (p *process) expect(at clock.Time) {
	if at < p.next {
		p.plan(at)
	}
}

func (p *process) plan(at clock.Time) {
	p.next = at
	p.network.agenda.set(p.number, at)
}

// first returns when there is something to do; 0: at once.
func (p *process) first() clock.Time {
	if p.woken.count > 0 {
		return 0
	}
	return clock.Min(p.queue.deadline(), p.timers.deadline())
}

// refresh asks the members for their deadlines.
func (p *process) refresh() {
	for i, m := range p.members {
		p.timers.set(i, m.deadline())
	}
	p.plan(p.first())
}

// step does what is due next: turns of woken members, otherwise the next arrivals or timers.
func (p *process) step() {
	if p.woken.count > 0 {
		p.turns()
		return
	}
	p.now = max(p.now, p.first())
	p.advance()
	p.deliver()
}

// turns gives the woken members their turns.
func (p *process) turns() {
	n := p.network
	n.now = p.now
	for i := p.woken.next(0); i >= 0; i = p.woken.next(i + 1) {
		m := p.members[i]
		m.turn(n)
		p.timers.set(i, m.deadline())
	}
	n.free = append(n.free, p.held...)
	p.held = p.held[:0]
}

// advance lets the members do what is due.
func (p *process) advance() {
	p.network.now = p.now
	for i := p.timers.due(p.now); i >= 0; i = p.timers.due(p.now) {
		p.due.add(i)
	}
	for i := p.due.next(0); i >= 0; i = p.due.next(i + 1) {
		p.members[i].advance(p.now)
		p.woken.add(i)
	}
}

// deliver passes on the packets that arrive now, in batches per port.
func (p *process) deliver() {
	n := p.network
	for p.queue.deadline() <= p.now {
		p.foresee()
		to := p.queue.next[0].lane.to
		n.in = n.in[:0]
		for len(n.in) < to.batch() && p.queue.deadline() <= p.now && p.queue.next[0].lane.to == to {
			from := p.queue.next[0].lane.from
			x := p.queue.pop()
			if n.Tap != nil {
				n.Tap(p.now, from, to, x.data())
			}
			p.held = append(p.held, x)
			n.in = append(n.in, frame.In{})
			x.in(&n.in[len(n.in)-1])
			p.approach(x)
		}
		good := n.in
		if to.Codec != nil {
			good = opened(to.Codec, n.in)
		}
		n.Stats.Delivered += uint64(len(good))
		to.Engine.Receive(p.now, good)
		p.woken.add(to.index)
	}
}

// opened returns the packets that a codec accepts.
func opened(c Codec, in []frame.In) []frame.In {
	good := in[:0]
	for i := range in {
		if c.Open(&in[i]) {
			good = append(good, in[i])
		}
	}
	return good
}
