package sim

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/impair"
)

// Stats counts what the network did.
type Stats struct {
	Sent, Delivered                        uint64
	Lost, Duplicated, Reordered, Corrupted uint64
	Marked                                 uint64 // as having met congestion
	Overflowed                             uint64 // had no room in a queue or buffer
	Unroutable                             uint64 // went to an address or a socket where nobody is
}

// Network is a set of ports and switches and the packets between them.
type Network struct {
	// Default is the impairment of links that Link has not been asked for when they carry their first
	// packet. With a Seed each link draws from its own source, else from the network's.
	Default impair.Impairment
	// Filter, if set, sees every packet before the impairments; false drops it. to is nil for a packet that
	// goes into a switch.
	Filter func(from, to *Port, packet []byte) bool
	// Tap, if set, sees every packet as it is delivered. from is nil for one that comes out of a switch.
	Tap   func(now clock.Time, from, to *Port, packet []byte)
	Stats Stats

	now     clock.Time
	rng     *rand.Rand
	members []member
	byAddr  map[netip.Addr]*Port
	woken   set // members that have a turn in the next step
	due     set // members whose deadlines have come
	timers  timers
	queue   arrivals
	serial  uint64
	links   []*Link
	free    []*packet
	held    []*packet // what ports have received that have not had their turns since
	out     []frame.Out
	in      []frame.In
}

// member is what the network drives: a Port, a Switch or a Link with packets held back.
type member interface {
	// advance does what is due.
	advance(now clock.Time)
	// turn lets it send what it has.
	turn(n *Network)
	// deadline is when advance is wanted next.
	deadline() clock.Time
	seat() *place
}

// place is a member's place in the network: its number.
type place struct{ index int }

func (x *place) seat() *place { return x }

// New returns a network whose faults follow from seed.
func New(seed uint64) *Network {
	return &Network{
		rng:    rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)),
		byAddr: make(map[netip.Addr]*Port),
		out:    make([]frame.Out, 256),
	}
}

// Now returns the virtual time.
func (n *Network) Now() clock.Time { return n.now }

// join makes m a member.
func (n *Network) join(m member) {
	m.seat().index = len(n.members)
	n.timers.join()
	n.members = append(n.members, m)
	n.woken.grow(len(n.members))
	n.due.grow(len(n.members))
}

// Refresh asks every engine for its deadline. Run and Pass begin with it, for what has been done to the
// engines meanwhile. It is needed before Step alone, if an engine's deadline has changed and its port was
// not woken.
func (n *Network) Refresh() {
	for i, m := range n.members {
		n.timers.set(i, m.deadline())
	}
}

// Step does what is due next: turns of woken ports and switches, otherwise the next arrivals or timers. It
// returns false when nothing is left to do before limit.
func (n *Network) Step(limit clock.Time) bool {
	if n.woken.count > 0 {
		for i := n.woken.next(0); i >= 0; i = n.woken.next(i + 1) {
			m := n.members[i]
			m.turn(n)
			n.timers.set(i, m.deadline())
		}
		n.free = append(n.free, n.held...)
		n.held = n.held[:0]
		return true
	}
	next := clock.Min(n.queue.deadline(), n.timers.deadline())
	if next == clock.Never || next > limit {
		return false
	}
	n.now = max(n.now, next)
	for i := n.timers.due(n.now); i >= 0; i = n.timers.due(n.now) {
		n.due.add(i)
	}
	for i := n.due.next(0); i >= 0; i = n.due.next(i + 1) {
		n.members[i].advance(n.now)
		n.woken.add(i)
	}
	n.deliver()
	return true
}

// Run steps until nothing is left to do before limit, or done returns true.
func (n *Network) Run(limit clock.Time, done func() bool) {
	n.Refresh()
	for (done == nil || !done()) && n.Step(limit) {
	}
}

// Pass lets d of virtual time pass, with everything that happens in it.
func (n *Network) Pass(d time.Duration) {
	end := n.now.Add(d)
	n.Run(end, nil)
	n.now = max(n.now, end)
}

// deliver passes on the packets that arrive now, in batches per port.
func (n *Network) deliver() {
	for n.queue.deadline() <= n.now {
		n.foresee()
		to := n.queue.next[0].lane.to
		n.in = n.in[:0]
		for len(n.in) < to.batch() && n.queue.deadline() <= n.now && n.queue.next[0].lane.to == to {
			from := n.queue.next[0].lane.from
			p := n.queue.pop()
			if n.Tap != nil {
				n.Tap(n.now, from, to, p.data())
			}
			n.held = append(n.held, p)
			n.in = append(n.in, frame.In{})
			p.in(&n.in[len(n.in)-1])
			n.approach(p)
		}
		good := n.in
		if to.Codec != nil {
			good = opened(to.Codec, n.in)
		}
		n.Stats.Delivered += uint64(len(good))
		to.Engine.Receive(n.now, good)
		n.woken.add(to.index)
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

// Inject delivers raw bytes to a port as if they came from address and UDP port src. It keeps a copy.
func (n *Network) Inject(to *Port, src netip.AddrPort, at clock.Time, data []byte) {
	p := n.take()
	p.hold(data)
	p.ends, p.srcPort, p.class, p.flow = &ends{src.Addr(), to.Addr}, src.Port(), 0, 0
	n.arrives(&lane{to: to}, p, at)
}

// arrives puts a packet into a lane.
func (n *Network) arrives(l *lane, p *packet, at clock.Time) {
	p.at, p.serial = at, n.serial
	n.serial++
	n.queue.push(l, p)
}
