package sim

import (
	"container/heap"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// Engine is what a port is driven by: the calls of transport.Engine that the
// network needs.
type Engine interface {
	Receive(now clock.Time, in []frame.In)
	Advance(now clock.Time)
	Transmit(now clock.Time, out []frame.Out) int
	Deadline() clock.Time
}

// Codec is the encapsulation of a port, where one is to be in the path. Without
// it the network carries what runs from the BTH to the pad, and drops corrupted
// packets as a receiver that checks the ICRC would.
type Codec interface {
	// Seal returns the bytes of a packet as they are on the wire.
	Seal(o *frame.Out) []byte
	// Open checks and strips what Seal put around; false drops the packet.
	Open(in *frame.In) bool
}

// Impairment is what a link does to packets in one direction. Probabilities are
// from 0 to 1.
type Impairment struct {
	Loss, Duplicate, Reorder, Corrupt float64
	Delay                             time.Duration // of every packet
	Jitter                            time.Duration // at most this much more, order kept
	ReorderBy                         time.Duration // how much later a reordered packet comes; 0: 4 times Delay
}

// Stats counts what the network did.
type Stats struct{ Sent, Delivered, Lost, Overflowed, Duplicated, Reordered, Corrupted, Unroutable uint64 }

// Network is a set of ports and the packets between them.
type Network struct {
	Default Impairment
	// Filter, where set, sees every packet before the impairments; false drops it.
	Filter func(from, to *Port, packet []byte) bool
	// Tap, where set, sees every packet as it is delivered.
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
	// Settle, where set, is called after each turn of the engine: the place to
	// take completions and to post more work.
	Settle func(now clock.Time)
	// Service is how long the port takes for a packet that arrives, and Buffer how
	// many may wait for it, more being lost: a socket with its receive buffer. Zero
	// means no time, and no limit.
	Service time.Duration
	Buffer  int
	// Batch is the most packets that the engine is handed at once; 0 means 64.
	Batch int

	busyUntil clock.Time
	woken     bool
}

type link struct {
	Impairment
	last clock.Time // when the packet before arrives
}

type delivery struct {
	at       clock.Time
	serial   uint64
	from, to *Port
	dst      netip.Addr
	data     []byte
	route    frame.Route
}

// New makes a network whose faults follow from seed.
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

// Wake gives a port a turn in the next step: its engine has work that came from
// elsewhere.
func (p *Port) Wake() { p.woken = true }

// Step does what is due next: turns of woken ports, else the next arrivals or
// timers. It reports false when nothing is left to happen before limit.
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

// Run steps until nothing is left to happen before limit, or done reports true.
func (n *Network) Run(limit clock.Time, done func() bool) {
	for (done == nil || !done()) && n.Step(limit) {
	}
}

// Pass lets d of virtual time pass, with all that happens in it.
func (n *Network) Pass(d time.Duration) {
	end := n.now.Add(d)
	n.Run(end, nil)
	n.now = max(n.now, end)
}

// deliver hands over the packets that arrive now, those to one port in batches.
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
		TrafficClass: d.route.TrafficClass, HopLimit: 64, FlowLabel: d.route.FlowLabel,
	}
}

// turn lets a port transmit all that it has.
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
