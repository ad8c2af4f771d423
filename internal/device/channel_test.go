package device

import (
	"errors"
	"net/netip"
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
)

// TestChannelOfCompletions: a channel raises the events of its CQs and of no others, keeps those that found no room,
// and is Busy while a CQ uses it.
func TestChannelOfCompletions(t *testing.T) {
	x := newChannelProgram(t)
	var raised []command.Handle
	room := true
	ch, err := x.c.CreateChannel(bg, command.CreateChannel{Kind: command.Completions}, func(cq command.Handle) bool {
		if room {
			raised = append(raised, cq)
		}
		return room
	})
	if err != nil {
		t.Fatal(err)
	}
	q, err := x.c.CreateCQ(bg, command.CreateCQ{Depth: 4, Channel: uint32(ch)})
	if err != nil {
		t.Fatal(err)
	}
	cq := x.c.cqs.Get(q.Handle)
	fire := func() {
		x.c.host.lock()
		defer x.c.host.unlock()
		cq.ring.Arm(3)
		cq.fire()
	}
	fire()
	room = false
	fire()
	if len(raised) != 1 || raised[0] != q.Handle {
		t.Fatalf("raised %v, want one event of %v", raised, q.Handle)
	}
	var out [4]command.Event
	if n, err := x.c.ChannelEvents(bg, ch, out[:]); err != nil || n != 1 || out[0].Object != q.Handle {
		t.Fatalf("ChannelEvents: %v %+v %v, want the event that found no room", n, out[0], err)
	}
	if err := x.c.Destroy(bg, command.KindChannel, ch); !errors.Is(err, &command.Error{Code: command.Busy}) {
		t.Fatalf("Destroy of a channel in use: %v, want Busy", err)
	}
	if err := x.c.Destroy(bg, command.KindCQ, q.Handle); err != nil {
		t.Fatal(err)
	}
	if err := x.c.Destroy(bg, command.KindChannel, ch); err != nil {
		t.Fatal(err)
	}
	if _, err := x.c.ChannelEvents(bg, ch, out[:]); err == nil {
		t.Fatal("ChannelEvents of a channel that was destroyed has no error")
	}
}

// TestChannelRefusals: a CQ cannot use a channel of another kind, and channels of unknown kinds cannot be made.
func TestChannelRefusals(t *testing.T) {
	x := newChannelProgram(t)
	ch, err := x.c.CreateChannel(bg, command.CreateChannel{Kind: command.Connections}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint32{uint32(ch), 0xdead} {
		if _, err := x.c.CreateCQ(bg, command.CreateCQ{Depth: 4, Channel: n}); err == nil {
			t.Errorf("CreateCQ with channel %#x: no error", n)
		}
	}
	for _, k := range []command.CreateChannel{{Kind: 0}, {Kind: 4}, {Kind: command.Asynchronous, Adapter: 99}} {
		if _, err := x.c.CreateChannel(bg, k, nil); err == nil {
			t.Errorf("CreateChannel %+v: no error", k)
		}
	}
}

func newChannelProgram(t *testing.T) *program {
	a, _ := overMemory(true)(t, AdapterConfig{})
	return a
}

// TestChannelOfConnections: the events of a CM id go to the channel it is given, also those that were waiting, and
// connection requests inherit the channel of their listener. An address resolves to the adapter that reaches it.
func TestChannelOfConnections(t *testing.T) {
	x, y := overMemory(true)(t, AdapterConfig{})
	ch, err := y.c.CreateChannel(bg, command.CreateChannel{Kind: command.Connections}, nil)
	y.check(err)
	l, err := y.c.CMCreate(bg, command.CMCreate{Adapter: y.adapter, Space: command.TCP, Context: 7})
	y.check(err)
	y.check(y.c.CMSetChannel(bg, command.CMSetChannel{ID: l, Channel: ch}))
	at, err := y.c.CMBind(bg, l, command.Endpoint{Addr: command.AddrFrom(y.addr)})
	y.check(err)
	y.check(y.c.CMListen(bg, l, 4))

	mine, err := x.c.CreateChannel(bg, command.CreateChannel{Kind: command.Connections}, nil)
	x.check(err)
	id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	x.check(err)
	x.check(x.c.CMSetChannel(bg, command.CMSetChannel{ID: id, Channel: mine}))
	next := func(p *program, ch command.Handle, want command.EventType) command.Event {
		t.Helper()
		var out [1]command.Event
		if _, err := p.c.ChannelEvents(bg, ch, out[:]); err != nil || out[0].Type != want {
			t.Fatalf("event %+v, %v; want type %d", out[0], err, want)
		}
		return out[0]
	}
	x.check(x.c.CMResolveAddr(bg, command.CMResolveAddr{ID: id, Remote: at}))
	e := next(x, mine, command.EventAddressResolved)
	if e.Object != id || e.Remote.Port == 0 {
		t.Fatalf("resolved %+v, want an address with a port for %v", e, id)
	}
	x.check(x.c.CMResolveRoute(bg, command.CMResolveRoute{ID: id}))
	next(x, mine, command.EventRouteResolved)
	x.dial(command.CMConnect{ID: id, Remote: at, Param: command.ConnParam{QPN: 0x1234, RetryCount: 7}})
	r := next(y, ch, command.EventConnectRequest)
	if r.Object != l || r.Context != 7 || r.NewID == 0 {
		t.Fatalf("request %+v, want one of listener %v", r, l)
	}
	y.check(y.c.CMReject(bg, command.CMReject{ID: r.NewID}))
	next(x, mine, command.EventRejected)
	for _, h := range []command.Handle{l, r.NewID} {
		y.check(y.c.Destroy(bg, command.KindCM, h))
	}
	y.check(y.c.Destroy(bg, command.KindChannel, ch))
	if err := x.c.Destroy(bg, command.KindChannel, mine); !errors.Is(err, &command.Error{Code: command.Busy}) {
		t.Fatalf("Destroy of a channel with an id: %v, want Busy", err)
	}
}

// TestResolveUnreachable: the resolution of a destination that no adapter reaches ends with an event; the call
// returns no error.
func TestResolveUnreachable(t *testing.T) {
	x := newChannelProgram(t)
	id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	x.check(err)
	six := netip.MustParseAddr("2001:db8::1")
	x.check(x.c.CMResolveAddr(bg, command.CMResolveAddr{ID: id, Remote: command.Endpoint{Addr: command.AddrFrom(six), Port: 1}}))
	if e := <-x.events; e.Type != command.EventAddressError || e.Status != uint32(command.NetworkUnreachable) {
		t.Fatalf("event %+v, want an address error: network unreachable", e)
	}
}

// TestResolveLocalDestination: an address of this host is reached through the adapter that has it, as Linux routes it,
// unless the program names a source.
func TestResolveLocalDestination(t *testing.T) {
	x, y := overUDP(true)(t, AdapterConfig{})
	for _, c := range []struct {
		name string
		from netip.Addr
		want *program
	}{{"no source", netip.IPv6Unspecified(), y}, {"source", x.addr, x}} {
		id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
		x.check(err)
		x.check(x.c.CMResolveAddr(bg, command.CMResolveAddr{
			ID: id, Local: command.Endpoint{Addr: command.AddrFrom(c.from)}, Remote: command.Endpoint{Addr: command.AddrFrom(y.addr),
				Port: 1},
		}))
		e := x.event(command.EventAddressResolved)
		if e.Adapter != c.want.adapter || e.Remote.Addr.IP() != c.want.addr {
			t.Errorf("%s: adapter %d at %v, want %d at %v", c.name, e.Adapter, e.Remote.Addr.IP(), c.want.adapter, c.want.addr)
		}
	}
}

// TestRegisterMemoryAt: a region may have an address range (IOVA) other than its memory's, but not one that wraps.
func TestRegisterMemoryAt(t *testing.T) {
	x := newChannelProgram(t)
	mem := pages(t, 4096)
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	r := command.RegisterMemoryAt{RegisterMemory: command.RegisterMemory{PD: x.pd, Access: remoteAccess, Base: base, Length: 4096},
		IOVA: 1 << 40}
	m, err := x.c.RegisterMemoryAt(bg, r)
	x.check(err)
	region := x.c.mrs.Get(m.Handle).region
	if region.Start() != 1<<40 || region.OwnerAddr(1<<40+5) != base+5 {
		t.Fatalf("region starts at %#x, owner address %#x; want %#x and %#x", region.Start(), region.OwnerAddr(1<<40+5), 1<<40, base+5)
	}
	r.IOVA = ^uint64(0) - 10
	if _, err := x.c.RegisterMemoryAt(bg, r); err == nil {
		t.Fatal("a region that wraps: no error")
	}
}
