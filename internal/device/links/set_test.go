package links

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

func config(addr netip.Addr) Config {
	return Config{
		Framing: Framing{Mode: encap.RoCEv2, UDPPort: 4791, MAC: [6]byte{2, 1}}, Addr: addr,
		Now: func() clock.Time { return 0 }, Log: slog.New(slog.DiscardHandler),
	}
}

func open(t *testing.T, cfg Config) *Set {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// sender is a function that has frames for routes, one each.
type sender []*frame.Route

func (s *sender) Receive(clock.Time, []frame.In) {}
func (s *sender) Advance(clock.Time)             {}
func (s *sender) Deadline() clock.Time           { return clock.Never }

func (s *sender) Pending() uint8 {
	if len(*s) > 0 {
		return 1
	}
	return 0
}

func (s *sender) Transmit(_ clock.Time, _ uint8, out []frame.Out) int {
	n := min(len(*s), len(out))
	for i, r := range (*s)[:n] {
		out[i].Reset(r)
		out[i].HeadEnd += 12
	}
	*s = (*s)[n:]
	return n
}

// send makes a port of the set that sends a frame by each route.
func send(p *Set, routes ...*frame.Route) (o *port.Port, out []frame.Out) {
	s := sender(routes)
	o, out = new(port.Port), make([]frame.Out, len(routes))
	p.Attach(o.Attach(&s, port.Station{}))
	o.Transmit(0, out)
	return o, out
}

// TestServe: a port has a socket for each address it serves. Sockets of removed addresses are closed, the others
// stay, and a frame leaves by the socket of its source.
func TestServe(t *testing.T) {
	addrs := loopback.Addrs(3)
	first, second, third := addrs[0], addrs[1], addrs[2]
	p := open(t, config(first))
	foreign := netip.MustParseAddr("192.0.2.1") // not of this host
	served, closed := p.Serve([]netip.Addr{first, second, third, foreign})
	if want := []netip.Addr{first, second, third}; !slices.Equal(served, want) || !slices.Equal(p.Addrs(), want) || closed {
		t.Errorf("served %v, closed %v", served, closed)
	}
	if len(p.Descriptors(nil)) == 0 {
		t.Log("the links have no descriptors here")
	}
	kept := p.For(third)
	if served, closed = p.Serve([]netip.Addr{first, third}); !closed || len(served) != 2 || p.For(second) != nil || p.For(third) != kept ||
		!kept.Socket() {
		t.Errorf("served %v, closed %v", served, closed)
	}
	a, b := &frame.Route{Src: first}, &frame.Route{Src: third}
	pull, frames := send(p, a, a, &frame.Route{Src: first}, b, &frame.Route{Src: second})
	if w, n := pull.Run(frames); p.By(w) != p.For(first) || n != 3 {
		t.Errorf("the first run is %d long", n)
	}
	if w, n := pull.Run(frames[3:]); p.By(w) != kept || n != 1 {
		t.Errorf("the second run is %d long", n)
	}
	if w, n := pull.Run(frames[4:]); w != nil || n != 1 {
		t.Errorf("an address that is gone has a wire, and a run of %d", n)
	}
	if _, err := New(config(first)); !errors.Is(err, &command.Error{Code: command.InUse}) {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := New(config(foreign)); !errors.Is(err, &command.Error{Code: command.AddrNotAvailable}) {
		t.Errorf("a foreign address: %v", err)
	}
}

// TestUnplug: what links have counted is kept when they are closed, and they return with the settings made meanwhile.
func TestUnplug(t *testing.T) {
	p := open(t, config(loopback.Addr()))
	r := &frame.Route{Src: p.cfg.Addr, Dst: p.cfg.Addr, SrcPort: 50000, DstPort: 4791}
	if err := p.For(r.Src).Link.Prepare(r); err != nil {
		t.Fatal(err)
	}
	_, out := send(p, r)
	await.Eventually(t, "a packet is sent", func() bool {
		if _, err := p.All()[0].Link.Send(out); err != nil {
			t.Fatal(err)
		}
		return p.Stats().SentPackets > 0
	})
	sent := p.Stats().SentPackets
	p.Unplug()
	if p.Stats().SentPackets != sent || p.All()[0].Link != nil || p.All()[0].Socket() || len(p.Descriptors(nil)) != 0 || p.Raw() {
		t.Errorf("unplugged: %+v", p.Stats())
	}
	p.SetImpairment(impair.Impairment{Rate: 1e9})
	if err := p.Reframe(Framing{Mode: encap.RoCEv2, UDPPort: 4792}); err != nil {
		t.Fatal(err)
	}
	if err := p.PlugAgain(); err != nil {
		t.Fatal(err)
	}
	if !p.All()[0].Socket() || p.Stats().SentPackets != sent || p.Impairment().Rate != 1e9 {
		t.Errorf("plugged in again: %+v", p.Stats())
	}
	old := open(t, config(p.cfg.Addr)) // its port is free: the links are at another one
	if old.MTU() <= 0 || old.Status().Addr.Port() != 4791 || p.Status().Addr.Port() != 4792 {
		t.Errorf("the ports are %v and %v", old.Status().Addr, p.Status().Addr)
	}
}

// TestGiven: a link that was given serves only its own address, stays open when the port is unplugged, and carries no
// more than it can.
func TestGiven(t *testing.T) {
	cfg := config(netip.MustParseAddr("192.0.2.1"))
	l, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: cfg.Addr, Notify: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Given = l
	p := open(t, cfg)
	if served, _ := p.Serve([]netip.Addr{cfg.Addr, cfg.Addr.Next()}); !slices.Equal(served, []netip.Addr{cfg.Addr}) {
		t.Errorf("served %v", served)
	}
	p.Unplug()
	if o := p.For(cfg.Addr); o == nil || o.Link == nil || o.Socket() {
		t.Error("the link is gone")
	}
	if !p.Raw() {
		if err := p.Reframe(Framing{Mode: encap.RoCEv1}); !errors.Is(err, &command.Error{Code: command.Unsupported}) {
			t.Errorf("RoCE v1 over datagrams: %v", err)
		}
	}
}

// TestLimit: a wire that is limited carries no more than that, whatever impairment is set, and packets must go by it.
func TestLimit(t *testing.T) {
	cfg := config(loopback.Addr())
	cfg.Limit = 1e9
	p := open(t, cfg)
	if !p.Slowed() || p.Impairment().Enabled() || p.All()[0].impair.Idle() {
		t.Error("the limit does not hold")
	}
	for rate, want := range map[uint64]uint64{0: 1e9, 5e8: 5e8, 2e9: 1e9} {
		p.SetImpairment(impair.Impairment{Rate: rate})
		if got := p.cfg.limited(*p.Impairment()).Rate; got != want || p.All()[0].impair.Idle() {
			t.Errorf("with a rate of %d it is %d, want %d", rate, got, want)
		}
	}
}
