package sim

import (
	"container/heap"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// Engine drives a port: the methods of transport.Engine that the network needs.
type Engine interface {
	Receive(now clock.Time, in []frame.In)
	Advance(now clock.Time)
	Transmit(now clock.Time, out []frame.Out) int
	Deadline() clock.Time
}

// Codec is the encapsulation of a port, if one is to be in the path. Without it the network carries
// everything from the BTH to the pad, and drops corrupted packets like a receiver that checks the ICRC.
type Codec interface {
	// Seal returns the bytes of a packet as they are on the wire.
	Seal(o *frame.Out) []byte
	// Open checks and strips what Seal added; false drops the packet.
	Open(in *frame.In) bool
}

// Impairment says what a link does to packets in one direction. Probabilities are from 0 to 1.
type Impairment struct {
	Loss, Duplicate, Reorder, Corrupt float64
	Delay                             time.Duration // of every packet
	Jitter                            time.Duration // up to this much more, order kept
	ReorderBy                         time.Duration // how much later a reordered packet arrives; 0: 4 times Delay
}

// Stats counts what the network did.
type Stats struct{ Sent, Delivered, Lost, Overflowed, Duplicated, Reordered, Corrupted, Unroutable uint64 }

// Network is a set of ports and the packets between them.
type Network struct {
	Default Impairment
	// Filter, if set, sees every packet before the impairments; false drops it.
	Filter func(from, to *Port, packet []byte) bool
	// Tap, if set, sees every packet as it is delivered.
	Tap   func(now clock.Time, from, to *Port, packet []byte)
	Stats Stats

	now    clock.Time
	rng    *rand.Rand
	ports  []*Port
	byAddr map[netip.Addr]*Port
	queue  deliveries
	serial uint64
	links  map[[2]*Port]*link
	out    []frame.Out
	in     []frame.In
}

// Port is an engine's place in the network.
type Port struct {
	Addr   netip.Addr
	Engine Engine
	Codec  Codec
	// Settle, if set, is called after each turn of the engine: the place to take completions and to post
	// more work.
	Settle func(now clock.Time)
	// Service is how long the port takes for each arriving packet, and Buffer how many may wait before
	// more are lost, like a socket with its receive buffer. Zero means no time, and no limit.
	Service time.Duration
	Buffer  int
	// Batch is the maximum number of packets passed to the engine at once; 0 means 64.
	Batch int

	busyUntil clock.Time
	woken     bool
}

type link struct {
	Impairment
	last clock.Time // when the previous packet arrives
}

type delivery struct {
	at       clock.Time
	serial   uint64
	from, to *Port
	dst      netip.Addr
	data     []byte
	route    frame.Route
}

// New returns a network whose faults follow from seed.
func New(seed uint64) *Network {
	return &Network{
		rng:    rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)),
		byAddr: make(map[netip.Addr]*Port),
		links:  make(map[[2]*Port]*link),
		out:    make([]frame.Out, 256),
	}
}

// Now returns the virtual time.
func (n *Network) Now() clock.Time { return n.now }

// Add plugs an engine in at addr.
func (n *Network) Add(addr netip.Addr, e Engine) *Port {
	p := &Port{Addr: addr, Engine: e}
	n.ports = append(n.ports, p)
	n.byAddr[addr] = p
	return p
}

func (n *Network) link(from, to *Port) *link {
	l := n.links[[2]*Port{from, to}]
	if l == nil {
		l = &link{Impairment: n.Default}
		n.links[[2]*Port{from, to}] = l
	}
	return l
}

// Impair sets what the link from one port to another does to packets from now on.
func (n *Network) Impair(from, to *Port, i Impairment) { n.link(from, to).Impairment = i }

// Wake gives a port a turn in the next step, because its engine has work from elsewhere.
func (p *Port) Wake() { p.woken = true }

// Step does what is due next: turns of woken ports, otherwise the next arrivals or timers. It returns
// false when nothing is left to do before limit.
func (n *Network) Step(limit clock.Time) bool {
	busy := false
	for _, p := range n.ports {
		if p.woken {
			p.woken = false
			n.turn(p)
			busy = true
		}
	}
	if busy {
		return true
	}
	next := clock.Never
	if len(n.queue) > 0 {
		next = n.queue[0].at
	}
	for _, p := range n.ports {
		next = clock.Min(next, p.Engine.Deadline())
	}
	if next == clock.Never || next > limit {
		return false
	}
	if next > n.now {
		n.now = next
	}
	for _, p := range n.ports {
		if p.Engine.Deadline() <= n.now {
			p.Engine.Advance(n.now)
			p.woken = true
		}
	}
	n.deliver()
	return true
}

// Run steps until nothing is left to do before limit, or done returns true.
func (n *Network) Run(limit clock.Time, done func() bool) {
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
	for len(n.queue) > 0 && n.queue[0].at <= n.now {
		first := heap.Pop(&n.queue).(*delivery)
		to := first.to
		n.in = append(n.in[:0], n.arrival(first))
		limit := to.Batch
		if limit == 0 {
			limit = 64
		}
		for len(n.in) < limit && len(n.queue) > 0 && n.queue[0].at <= n.now && n.queue[0].to == to {
			n.in = append(n.in, n.arrival(heap.Pop(&n.queue).(*delivery)))
		}
		good := n.in[:0]
		for i := range n.in {
			if to.Codec == nil || to.Codec.Open(&n.in[i]) {
				good = append(good, n.in[i])
			}
		}
		n.Stats.Delivered += uint64(len(good))
		to.Engine.Receive(n.now, good)
		to.woken = true
	}
}

func (n *Network) arrival(d *delivery) frame.In {
	if n.Tap != nil {
		n.Tap(n.now, d.from, d.to, d.data)
	}
	return frame.In{
		Data: d.data, Src: d.route.Src, Dst: d.dst, SrcPort: d.route.SrcPort,
		TrafficClass: d.route.TrafficClass, HopLimit: frame.DefaultHopLimit, FlowLabel: d.route.FlowLabel,
	}
}

// turn lets a port transmit everything it has.
func (n *Network) turn(p *Port) {
	for {
		k := p.Engine.Transmit(n.now, n.out)
		for i := range n.out[:k] {
			n.send(p, &n.out[i])
		}
		if p.Settle != nil {
			p.Settle(n.now)
		}
		if k == 0 {
			break
		}
	}
	if e, ok := p.Engine.(interface{ Pending() bool }); ok && e.Pending() {
		p.woken = true
	}
}

type deliveries []*delivery

func (q deliveries) Len() int { return len(q) }
func (q deliveries) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].serial < q[j].serial
}
func (q deliveries) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *deliveries) Push(x any) { *q = append(*q, x.(*delivery)) }

// Pop implements heap.Interface.
func (q *deliveries) Pop() any {
	last := len(*q) - 1
	d := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return d
}
