package gsi

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/eth"
)

// port is an adapter with nothing but its QP1. It records what QP1 asks of it and the events of its connections.
type port struct {
	t        *testing.T
	qp1      QP1
	addr     netip.Addr
	handed   *port
	refusal  error // the answer to Prepare
	prepared int
	events   []cm.EventType
	failures []cm.Failure
	request  cm.ID
	caughtUp int
	rules    map[uint16]uint8 // priorities of connections by their ports
}

func (p *port) CatchUp(clock.Time) { p.caughtUp++ }

func (p *port) Prepare(r *frame.Route) error {
	p.prepared++
	r.SrcPort, r.DstPort = 0xc000, 4791
	return p.refusal
}

// Mark gives a route its service level as its priority, or that of its port's rule.
func (p *port) Mark(r *frame.Route, m cm.Marks) {
	r.Priority, r.TrafficClass = m.SL, m.TrafficClass
	if m.Port != 0 {
		r.Priority = p.rules[m.Port]
	}
}

func (p *port) SameHost(_, remote netip.Addr) *QP1 {
	if p.handed != nil && p.handed.addr == remote {
		return &p.handed.qp1
	}
	return nil
}

func (p *port) Event(_ clock.Time, e *cm.Event) {
	p.events, p.failures = append(p.events, e.Type), append(p.failures, e.Failure)
	if e.Type == cm.EventConnectRequest {
		p.request = e.ID
	}
}

func newPort(t *testing.T, addr string) *port {
	p := &port{t: t, addr: netip.MustParseAddr(addr)}
	e, err := transport.New(transport.Config{Memory: memory.NewTable(4, func() uint8 { return 1 })})
	p.check(err)
	random := uint64(p.addr.As4()[3])
	c, err := cm.New(cm.Config{GUID: random, Rand: func() uint64 { random += 77; return random }})
	p.check(err)
	p.qp1 = New(Config{Adapter: p, Engine: e, CM: c})
	return p
}

func (p *port) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// listen makes the adapter wait for connections at port 9.
func (p *port) listen() {
	p.t.Helper()
	id, err := p.qp1.CM.Open(command.TCP, 0)
	p.check(err)
	_, err = p.qp1.CM.Bind(id, netip.AddrPortFrom(p.addr, 9))
	p.check(err)
	p.check(p.qp1.CM.Listen(id, 4))
}

func (p *port) connect(to netip.Addr) {
	p.t.Helper()
	id, err := p.qp1.CM.Open(command.TCP, 0)
	p.check(err)
	p.check(p.qp1.CM.Connect(0, id, cm.Connect{Remote: netip.AddrPortFrom(to, 9), Local: p.addr, QPN: 17, RetryCount: 7, RNRRetry: 7}))
}

// TestSameHost_HandsOver: a message for an adapter of the same host is handed over instead of sent, and waits there for Answer or
// Step. Unplug drops what waits.
func TestSameHost_HandsOver(t *testing.T) {
	a, b := newPort(t, "10.0.0.1"), newPort(t, "10.0.0.2")
	a.handed, b.handed = b, a
	b.listen()
	a.connect(b.addr)
	if !a.qp1.Step(0) || a.prepared != 0 || a.qp1.Engine.Pending() != 0 {
		t.Fatal("the request was not handed over")
	}
	if !b.qp1.Waiting() || len(b.events) != 0 {
		t.Fatal("no request waits at the other adapter, or it was handled before Answer")
	}
	if !b.qp1.Answer(0) || b.qp1.Waiting() || !slices.Equal(b.events, []cm.EventType{cm.EventConnectRequest}) {
		t.Fatalf("events %v, want a connect request", b.events)
	}
	_, err := b.qp1.CM.Accept(0, b.request, cm.Accept{QPN: 18})
	b.check(err)
	b.qp1.Flush(0)
	if !a.qp1.Step(0) || !slices.Equal(a.events, []cm.EventType{cm.EventConnectResponse}) {
		t.Fatalf("events %v, want a connect response", a.events)
	}
	a.connect(b.addr)
	a.qp1.Flush(0)
	b.qp1.Unplug()
	if b.qp1.Waiting() || b.qp1.Answer(0) {
		t.Error("a request still waits after Unplug")
	}
}

// TestRoutes: messages for another host are sent as packets with one route, which is made again only after Forget.
func TestRoutes(t *testing.T) {
	a := newPort(t, "10.0.0.1")
	to := netip.MustParseAddr("10.0.0.2")
	for _, c := range []struct{ prepared int }{{1}, {1}, {2}} {
		if c.prepared == 2 {
			a.qp1.Forget()
		}
		a.connect(to)
		if !a.qp1.Step(0) || a.prepared != c.prepared {
			t.Errorf("%d routes were prepared, want %d", a.prepared, c.prepared)
		}
	}
	out := make([]frame.Out, 4)
	if n := a.qp1.Engine.Transmit(0, 0, out); n != 3 || out[0].Route != out[1].Route || out[0].Route.Dst != to ||
		out[0].Route.SrcPort != 0xc000 {
		t.Errorf("%d packets, the first with the route %+v; want 3 with one route", n, out[0].Route)
	}
}

// TestMarks: messages leave with the service level and the traffic class of the path, and those by the rules of a port at the priority
// that these say when they are sent; an answer has the class of what it answers, without its mark of congestion.
func TestMarks(t *testing.T) {
	a, b := newPort(t, "10.0.0.1"), newPort(t, "10.0.0.2")
	a.rules = map[uint16]uint8{9: 6}
	ask := func(sl, class uint8, rule uint16) {
		id, err := a.qp1.CM.Open(command.TCP, 0)
		a.check(err)
		a.check(a.qp1.CM.Connect(0, id, cm.Connect{Remote: netip.AddrPortFrom(b.addr, 9), Local: a.addr, QPN: 17,
			SL: sl, TrafficClass: class, RulePort: rule}))
		a.qp1.Step(0)
	}
	out := make([]frame.Out, 4)
	sent := func(p *port, priority, class uint8) {
		t.Helper()
		if got := p.qp1.Engine.Pending(); got != 1<<priority {
			t.Fatalf("messages wait at the priorities %08b, want one at %d", got, priority)
		}
		if n := p.qp1.Engine.Transmit(0, priority, out); n != 1 || out[0].Route.TrafficClass != class {
			t.Fatalf("%d messages, traffic class %#x, want %#x", n, out[0].Route.TrafficClass, class)
		}
	}
	ask(5, 0x68, 0)
	sent(a, 5, 0x68)
	ask(5, 0x68, 9)
	sent(a, 6, 0x68)
	a.rules[9] = 2
	a.qp1.Remark()
	ask(5, 0x68, 9)
	sent(a, 2, 0x68)

	in := frame.In{Src: a.addr, Dst: b.addr, TrafficClass: 0x68 | eth.ECNMarked, HopLimit: 64}
	in.Data = append(slices.Clone(out[0].Head[frame.HeadRoom:out[0].HeadEnd]), out[0].Payload...)
	b.qp1.Engine.Receive(0, []frame.In{in})
	b.qp1.Step(0)
	sent(b, 0, 0x68) // nobody listens
}

// TestNoRoute: an attempt to connect without a route fails at once, with the class of the system's error.
func TestNoRoute(t *testing.T) {
	for code, want := range map[command.Code]cm.Failure{
		command.NetworkUnreachable: cm.FailureNetwork, command.HostUnreachable: cm.FailureHost, command.AddrNotAvailable: cm.FailureHost,
	} {
		a := newPort(t, "10.0.0.1")
		a.refusal = command.Errorf(code, "no route")
		a.connect(netip.MustParseAddr("10.0.0.2"))
		a.qp1.Step(0)
		if !slices.Equal(a.events, []cm.EventType{cm.EventUnreachable}) || a.failures[0] != want {
			t.Errorf("code %d: events %v, failures %v; want %v", code, a.events, a.failures, want)
		}
	}
}

// TestReceive: a MAD is handled after the adapter has caught up with the packets before it.
func TestReceive(t *testing.T) {
	a, b := newPort(t, "10.0.0.1"), newPort(t, "10.0.0.2")
	b.listen()
	a.connect(b.addr)
	a.qp1.Step(0)
	out := make([]frame.Out, 1)
	if n := a.qp1.Engine.Transmit(0, 0, out); n != 1 {
		t.Fatalf("%d packets, want 1", n)
	}
	o := &out[0]
	bytes := append(slices.Clone(o.Head[o.HeadStart:o.HeadEnd]), o.Payload...)
	b.qp1.Engine.Receive(0, []frame.In{{Data: bytes, Src: a.addr, Dst: b.addr}})
	if !b.qp1.Step(0) || b.caughtUp != 1 || !slices.Equal(b.events, []cm.EventType{cm.EventConnectRequest}) {
		t.Errorf("caught up %d times, events %v; want once, and a connect request", b.caughtUp, b.events)
	}
	if b.qp1.Step(0) {
		t.Error("a second Step does something, but no MAD has arrived")
	}
}
