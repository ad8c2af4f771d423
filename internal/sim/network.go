package sim

import (
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
	// packet. Each link draws from its own source, which follows from its Seed, or the network's, and its ports.
	Default impair.Impairment
	// Closed says that packets go over links that Link has been asked for only; all others are unroutable.
	Closed bool
	// Filter, if set, sees every packet before the impairments; false drops it. to is nil for a packet that
	// goes into a switch.
	Filter func(from, to *Port, packet []byte) bool
	// Tap, if set, sees every packet as it is delivered. from is nil for one that comes out of a switch.
	Tap   func(now clock.Time, from, to *Port, packet []byte)
	Stats Stats

	now       clock.Time // of whoever has a turn
	seed      uint64
	processes []*process // the first has all members that are not apart
	agenda    timers     // of processes
	window    window
	ports     []*Port
	byAddr    map[netip.Addr]*Port
	injected  uint64
	links     []*Link
	free      []*packet
	out       []frame.Out
	in        []frame.In
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

// place is a member's place in the network: its process, and its number there.
type place struct {
	process *process
	index   int
}

func (x *place) seat() *place { return x }

// New returns a network whose faults follow from seed.
func New(seed uint64) *Network {
	n := &Network{seed: seed ^ 0x9e3779b97f4a7c15, byAddr: make(map[netip.Addr]*Port), out: make([]frame.Out, 256)}
	n.process()
	return n
}

// Now returns the virtual time: that of the turn in which it is asked.
func (n *Network) Now() clock.Time { return n.now }

// Refresh asks every engine for its deadline. Run and Pass begin with it, for what has been done to the
// engines meanwhile. It is needed before Step alone, if an engine's deadline has changed and its port was
// not woken.
func (n *Network) Refresh() {
	for _, p := range n.processes {
		p.refresh()
	}
}

// Step does what is due next: turns of woken ports and switches, otherwise the next arrivals or timers. It
// returns false when nothing is left to do before limit.
func (n *Network) Step(limit clock.Time) bool { return n.proceed(limit, 0) }

// Run lets everything happen until nothing is left to do before limit, or done, which is asked after each step, returns
// true.
func (n *Network) Run(limit clock.Time, done func() bool) {
	n.Refresh()
	width := n.open(done)
	for (done == nil || !done()) && n.proceed(limit, width) {
	}
	n.now = max(n.now, n.window.latest)
}

// Pass lets d of virtual time pass, with everything that happens in it.
func (n *Network) Pass(d time.Duration) {
	end := n.now.Add(d)
	n.Run(end, nil)
	n.now = max(n.now, end)
}

// Inject delivers raw bytes to a port as if they came from address and UDP port src. It keeps a copy.
func (n *Network) Inject(to *Port, src netip.AddrPort, at clock.Time, data []byte) {
	p := n.take()
	p.hold(data)
	p.ends, p.srcPort, p.class, p.flow = &ends{src.Addr(), to.Addr}, src.Port(), 0, 0
	n.injected++
	n.arrives(&lane{to: to, rank: rank(to, n.injected)}, p, at)
}

// arrives puts a packet into a lane.
func (n *Network) arrives(l *lane, p *packet, at clock.Time) {
	p.at = at
	x := l.to.process
	x.queue.push(l, p)
	x.expect(at)
}
