package sim_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/transport"
)

const (
	messageAt   = 0x10000
	messageSize = 4096
	pathMTU     = 1024
	deep        = 4 // writes that each requester has outstanding
)

// peer is a port with a real engine and two RC queue pairs: one that writes to the next peer, and one that the peer
// before writes to.
type peer struct {
	t testing.TB
	*ground
	e         *transport.Engine
	port      *sim.Port
	addr      netip.Addr
	key       uint32
	out, in   *transport.QP
	work      *ring.Send
	completed uint64
	posted    uint64
	most      uint64 // writes to post in all; 0: no limit
	own, rkey uint32 // of the memory that is written to: its own, and that of the next
}

// ground is what all peers of a test share, so that it stays in the cache.
type ground struct {
	source, target []byte                   // they write from, and to
	comps          [64]transport.Completion // they take completions with
}

// grounds are those of the tests that run, some of which do at once.
var grounds sync.Map

func groundOf(t testing.TB) *ground {
	g, there := grounds.LoadOrStore(t, &ground{source: make([]byte, messageSize), target: make([]byte, messageSize)})
	if !there {
		t.Cleanup(func() { grounds.Delete(t) })
	}
	return g.(*ground)
}

func newPeer(t testing.TB, addr netip.Addr) *peer {
	p := &peer{t: t, addr: addr, ground: groundOf(t)}
	mem := memory.NewTable(64, nil)
	e, err := transport.New(transport.Config{Memory: mem, MaxQPs: 64})
	if err != nil {
		t.Fatal(err)
	}
	p.e = e
	for _, b := range [][]byte{p.source, p.target} {
		r, err := mem.Register(memory.Region{PD: 1, Base: messageAt, Length: messageSize, Bytes: b,
			Access: memory.LocalWrite | memory.RemoteWrite | memory.RemoteRead})
		if err != nil {
			t.Fatal(err)
		}
		p.key, p.own = p.own, r.Key
	}
	p.out, p.work = p.qp(16)
	p.in, _ = p.qp(16)
	return p
}

func (p *peer) qp(sends int) (*transport.QP, *ring.Send) {
	g := ring.SendGeometry(sends, 1, 0)
	s, err := ring.OpenSend(make([]byte, g.Size()), g)
	if err != nil {
		p.t.Fatal(err)
	}
	g = ring.RecvGeometry(16, 1)
	r, err := ring.OpenRecv(make([]byte, g.Size()), g)
	if err != nil {
		p.t.Fatal(err)
	}
	q, err := p.e.CreateQP(0, transport.QPConfig{Type: command.RC, PD: 1, Send: &transport.SendRing{Send: s}, Recv: r})
	if err != nil {
		p.t.Fatal(err)
	}
	return q, s
}

// connect makes p write to x.
func (p *peer) connect(x *peer, there, back frame.Route) {
	p.ready(p.out, x.e.Query(x.in).Number, there)
	x.ready(x.in, p.e.Query(p.out).Number, back)
	p.rkey = x.own
}

func (p *peer) ready(q *transport.QP, dest uint32, route frame.Route) {
	const (
		toInit = command.MaskState | command.MaskPKey | command.MaskAccess
		toRTR  = command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN |
			command.MaskResponderResources | command.MaskMinRNRTimer
		toRTS = command.MaskState | command.MaskSQPSN | command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry |
			command.MaskInitiatorDepth
	)
	for _, m := range []command.ModifyQP{
		{Mask: toInit, State: command.Init, Access: uint32(memory.RemoteWrite)},
		{Mask: toRTR, State: command.RTR, MTU: pathMTU, DestQPN: dest, RQPSN: 1, ResponderResources: 4, MinRNRTimer: 1},
		{Mask: toRTS, State: command.RTS, SQPSN: 1, Timeout: 14, Retry: 7, RNRRetry: 7, InitiatorDepth: 4},
	} {
		var r *frame.Route
		if m.State == command.RTR {
			r = &route
		}
		if err := p.e.Modify(0, q, m, r); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *peer) post() {
	p.posted++
	wr := ring.SendWR{ID: p.posted, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: messageAt, RKey: p.rkey}
	wr.SGE[0] = ring.SGE{Addr: messageAt, Length: messageSize, LKey: p.key}
	if err := p.work.Post(&wr); err != nil {
		p.t.Fatal(err)
	}
	p.e.Doorbell(p.out)
	p.port.Wake()
}

// settle takes the completions, and posts as many writes again.
func (p *peer) settle(clock.Time) {
	for n := p.e.Completions(p.comps[:]); n > 0; n = p.e.Completions(p.comps[:]) {
		for i := range p.comps[:n] {
			if s := p.comps[i].Status; s != ring.Success {
				p.t.Fatalf("%v: a write ended with %v", p.addr, s)
			}
			p.completed++
			if p.most == 0 || p.posted < p.most {
				p.post()
			}
		}
	}
}

// circle returns a network of ports each of which writes to the next.
func circle(t testing.TB, ports int) (*sim.Network, []*peer) {
	n := sim.New(1)
	n.Closed = true
	all := make([]*peer, ports)
	for i := range all {
		all[i] = newPeer(t, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		all[i].port = n.AddApart(all[i].addr, sim.Alone(all[i].e))
		all[i].port.Settle = all[i].settle
	}
	for i, p := range all {
		x := all[(i+1)%ports]
		// No two cables are of the same length, so that ports do not all have their turns at the same moments.
		n.Link(p.port, x.port).Set(impair.Impairment{Delay: 2*time.Microsecond + time.Duration(i%997)})
		n.Link(x.port, p.port).Set(impair.Impairment{Delay: 2*time.Microsecond + time.Duration(i%991)})
		p.connect(x, frame.Route{Src: p.addr, Dst: x.addr, SrcPort: 0xc000}, frame.Route{Src: x.addr, Dst: p.addr, SrcPort: 0xc000})
	}
	return n, all
}

// BenchmarkHops reports how many packets a second pass from a real RC engine to another, for numbers of ports each of
// which keeps writes of 4 KB outstanding to the next, with payloads lent to the network, and copied by it.
func BenchmarkHops(b *testing.B) {
	for _, lends := range []bool{true, false} {
		for _, ports := range []int{2, 100, 1000} {
			name := fmt.Sprint(ports, " ports")
			if !lends {
				name += ", copying"
			}
			b.Run(name, func(b *testing.B) {
				n, all := circle(b, ports)
				for _, p := range all {
					p.port.Lends = lends
					for range deep {
						p.post()
					}
				}
				n.Pass(200 * time.Microsecond)
				done := n.Stats.Delivered
				b.ReportAllocs()
				b.ResetTimer()
				for n.Stats.Delivered-done < uint64(b.N) {
					n.Pass(400 * time.Microsecond)
				}
				b.ReportMetric(float64(n.Stats.Delivered-done)/b.Elapsed().Seconds()/1e6, "Mhops/s")
			})
		}
	}
}

// TestRC_AllocatesNothingPerPacket: with real RC engines, a network in its stride allocates nothing.
func TestRC_AllocatesNothingPerPacket(t *testing.T) {
	n, all := circle(t, 10)
	for i, p := range all {
		p.port.Lends = i%2 == 0
		for range deep {
			p.post()
		}
	}
	n.Pass(10 * time.Millisecond)
	before := n.Stats.Delivered
	if a := testing.AllocsPerRun(10, func() { n.Pass(time.Millisecond) }); a != 0 {
		t.Errorf("%v allocations in a millisecond with %d packets, want none", a, (n.Stats.Delivered-before)/11)
	}
	for i, p := range all {
		if p.completed < 1000 {
			t.Errorf("port %d: %d writes completed, want thousands", i, p.completed)
		}
	}
}
