package cm

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

func zeroRand() uint64 { return 0 }

// TestConfig: invalid fields of Config are refused by name, and zero values get the documented defaults.
func TestConfig(t *testing.T) {
	good := Config{GUID: 1, Rand: zeroRand}
	for _, c := range []struct {
		field string
		edit  func(*Config)
	}{
		{"", func(*Config) {}},
		{"", func(c *Config) { c.MaxRetries, c.ResponseTimeout, c.PacketLifetime, c.AckDelay = 1, 31, 30, 31 }},
		{"GUID", func(c *Config) { c.GUID = 0 }},
		{"Rand", func(c *Config) { c.Rand = nil }},
		{"MTU", func(c *Config) { c.MTU = 6 }},
		{"MaxRetries", func(c *Config) { c.MaxRetries = 16 }},
		{"ResponseTimeout", func(c *Config) { c.ResponseTimeout = 32 }},
		{"PacketLifetime", func(c *Config) { c.PacketLifetime = 31 }},
		{"AckDelay", func(c *Config) { c.AckDelay = 32 }},
		{"MaxHalfOpen", func(c *Config) { c.MaxHalfOpen = -1 }},
		{"MaxIDs", func(c *Config) { c.MaxIDs = -1 }},
		{"RequestLifetime", func(c *Config) { c.RequestLifetime = -1 }},
	} {
		cfg := good
		c.edit(&cfg)
		_, err := New(cfg)
		if field := fieldOf(err); field != c.field {
			t.Errorf("want an error about %q, got %v", c.field, err)
		}
	}
	e, err := New(good)
	if err != nil || e.cfg.MaxRetries != 15 || e.cfg.MTU != ib.MTU1024 || e.cfg.pkey() != 0xffff || e.cfg.DisableFlowControl {
		t.Errorf("defaults are %+v, %v", e.cfg, err)
	}
}

// fieldOf returns the name of the field that an error is about, or the error's text.
func fieldOf(err error) string {
	var f *FieldError
	if errors.As(err, &f) {
		return f.Field
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func newEngine(t *testing.T, edit func(*Config)) *Engine {
	t.Helper()
	cfg := Config{GUID: 1, Rand: zeroRand}
	if edit != nil {
		edit(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestConnectFields: every field of Connect that is out of its range is refused by name.
func TestConnectFields(t *testing.T) {
	for _, c := range []struct {
		field string
		edit  func(*Connect)
	}{
		{"", func(*Connect) {}},
		{"QPN", func(c *Connect) { c.QPN = 1 }},
		{"QPN", func(c *Connect) { c.QPN = 0xffffff }},
		{"Local", func(c *Connect) { c.Local = netip.Addr{} }},
		{"Remote", func(c *Connect) { c.Remote = netip.AddrPort{} }},
		{"Remote", func(c *Connect) { c.Remote = netip.MustParseAddrPort("0.0.0.0:7") }},
		{"Remote", func(c *Connect) { c.Remote = netip.MustParseAddrPort("224.0.0.1:7") }},
		{"Remote", func(c *Connect) { c.Remote = netip.MustParseAddrPort("10.0.0.2:0") }},
		{"Remote", func(c *Connect) { c.Remote = netip.MustParseAddrPort("[fd00::2]:7") }},
		{"RetryCount", func(c *Connect) { c.RetryCount = 8 }},
		{"RNRRetry", func(c *Connect) { c.RNRRetry = 8 }},
		{"MTU", func(c *Connect) { c.MTU = 6 }},
		{"AckTimeout", func(c *Connect) { c.AckTimeout = 32 }},
		{"SL", func(c *Connect) { c.SL = 8 }},
		{"Timeout", func(c *Connect) { c.Timeout = -1 }},
	} {
		e := newEngine(t, nil)
		id, _ := e.Open(command.TCP, 0)
		p := Connect{QPN: 2, Local: netip.MustParseAddr("10.0.0.1"), Remote: netip.MustParseAddrPort("10.0.0.2:7")}
		c.edit(&p)
		if err := e.Connect(0, id, p); fieldOf(err) != c.field {
			t.Errorf("want an error about %q, got %v", c.field, err)
		}
	}
	e := newEngine(t, nil)
	id, _ := e.Open(command.TCP, 0)
	err := e.Connect(0, id, Connect{Private: make([]byte, 57)})
	if !errors.Is(err, errPrivateData) {
		t.Errorf("57 bytes of private data: error %v, want %v", err, errPrivateData)
	}
	if _, err := e.Open(7, 0); fieldOf(err) != "space" {
		t.Errorf("an unknown port space: error %v, want one that names it", err)
	}
	if err := e.Listen(id, 1); !errors.Is(err, ErrState) {
		t.Errorf("Listen without Bind: error %v, want %v", err, ErrState)
	}
	if _, err := e.Attributes(99); !errors.Is(err, ErrNoID) {
		t.Errorf("attributes of an unknown id: error %v, want %v", err, ErrNoID)
	}
}

// TestPathOptions: what Connect says about the path is sent in the REQ, kept in the attributes and shown to the peer.
func TestPathOptions(t *testing.T) {
	e := newEngine(t, func(c *Config) { c.MTU = ib.MTU4096 })
	id, _ := e.Open(command.TCP, 78)
	// With RoCE v1 and MAC-based GIDs the ports' addresses are not those of the programs.
	gid, peer := netip.MustParseAddr("fe80::2:3:4:5"), netip.MustParseAddr("fe80::2:3:4:6")
	err := e.Connect(0, id, Connect{QPN: 2, Local: netip.MustParseAddr("10.0.0.1"), Remote: netip.MustParseAddrPort("10.0.0.2:7"),
		LocalGID: gid.WithZone("eth0"), RemoteGID: peer, TrafficClass: 106, SL: 3, HopLimit: 9, MTU: ib.MTU512, AckTimeout: 20, Type: command.UC})
	if err != nil {
		t.Fatal(err)
	}
	var out [1]Datagram
	if n := e.Transmit(out[:]); n != 1 || out[0].Local != gid || out[0].Remote != peer || out[0].RemoteQPN != 1 {
		t.Fatalf("%d datagrams, %v>%v", n, out[0].Local, out[0].Remote)
	}
	req, err := mad.ParseREQ(out[0].MAD[:])
	if err != nil {
		t.Fatal(err)
	}
	p := req.Primary
	if p.TrafficClass != 106 || p.SL != 3 || p.HopLimit != 9 || p.AckTimeout != 20 || req.PathMTU != ib.MTU512 ||
		req.TransportType != mad.TransportUC ||
		p.LocalGID.Addr() != gid || p.RemoteGID.Addr() != peer || p.LocalLID != 0xffff || p.RemoteLID != 0xffff {
		t.Errorf("the request's path differs from the route: %s", describe(out[0].MAD[:]))
	}
	local, remote, err := e.Addresses(id)
	if err != nil || local.Addr() != netip.MustParseAddr("10.0.0.1") || remote != netip.MustParseAddrPort("10.0.0.2:7") {
		t.Errorf("the private data name %v and %v, %v; want 10.0.0.1 and 10.0.0.2:7", local, remote, err)
	}
	a, _ := e.Attributes(id)
	if a.SrcPort != udpSourcePort(local.Port(), 7) || a.FlowLabel != (uint32(local.Port())*31+7)&0xfffff || a.MTU != ib.MTU512 ||
		a.Type != command.UC {
		t.Errorf("the route is %+v, want the path's port, flow label, MTU and service", a)
	}
	// The passive side of such a port, whose program uses IP addresses.
	b := newEngine(t, func(c *Config) { c.GUID = 2; c.MTU = ib.MTU4096 })
	l, _ := b.Open(command.TCP, 5)
	if _, err := b.Bind(l, netip.MustParseAddrPort("10.0.0.2:7")); err != nil {
		t.Fatal(err)
	}
	if err := b.Listen(l, 0); err != nil {
		t.Fatal(err)
	}
	b.Receive(0, out[0].MAD[:], Peer{Local: peer.WithZone("eth1"), Remote: gid.WithZone("eth1"), QPN: 1})
	var v [1]Event
	if b.Events(v[:]) != 1 || v[0].Type != EventConnectRequest || v[0].Remote != local || v[0].Conn.RemoteGID != gid || v[0].Conn.SL != 3 ||
		v[0].Conn.Type != command.UC {
		t.Errorf("the passive side has the event %v, want a connect request with the path's values", v[0])
	}
}

// TestAckTimeout: the local ACK timeout is rounded as Linux rounds twice the packet life time plus the delay.
func TestAckTimeout(t *testing.T) {
	for delay := range 32 {
		for lifetime := range 31 {
			want := lifetime + 1
			switch {
			case want >= delay && delay >= want-1:
				want++
			case want < delay && want >= delay-1:
				want = delay + 1
			case want < delay:
				want = delay
			}
			if got := ackTimeout(uint8(delay), uint8(lifetime)); int(got) != min(want, 31) {
				t.Errorf("delay %d, lifetime %d: %d, want %d", delay, lifetime, got, want)
			}
		}
	}
}

// TestQueue: values come out in order and once, also while others are added, and the memory does not grow with the
// values that have passed through.
func TestQueue(t *testing.T) {
	var q queue[int]
	next, want := 0, 0
	var out [7]int
	for i := range 10_000 {
		for range i%13 + 1 {
			q.add(next)
			next++
		}
		if next-want > 3000 {
			for range 300 {
				q.take(out[:])
				want += 7
			}
		}
		for _, v := range out[:q.take(out[:])] {
			if v != want {
				t.Fatalf("took %d, want %d", v, want)
			}
			want++
		}
		if cap(q.items) > 16_000 {
			t.Fatalf("the queue has memory for %d values, though it holds %d", cap(q.items), q.len())
		}
	}
	for q.len() > 0 {
		want += q.take(out[:])
	}
	if next != want {
		t.Errorf("%d of %d values came out", want, next)
	}
}

// TestFullOutput: a driver that does not take the answers costs its peers their answers, but takes no more memory.
func TestFullOutput(t *testing.T) {
	e := newEngine(t, nil)
	m := encoded(&mad.DREQ{LocalCommID: 1, RemoteCommID: 2})
	for range maxReplies + 5 {
		e.Receive(0, m[:], Peer{Remote: netip.MustParseAddr("10.0.0.1"), QPN: 1})
	}
	if e.replies.len() != maxReplies || e.Counters().OutputDropped != 5 {
		t.Errorf("%d answers wait, %d dropped; want %d and 5", e.replies.len(), e.Counters().OutputDropped, maxReplies)
	}
}

// TestFullIDs: beyond MaxIDs a program gets an error and a peer gets REJ 3.
func TestFullIDs(t *testing.T) {
	p := newPair(func(c *Config) { c.MaxIDs = 2 })
	l, _ := p.b.e.Open(command.TCP, 0)
	if _, err := p.b.e.Bind(l, netip.MustParseAddrPort("0.0.0.0:7")); err != nil {
		t.Fatal(err)
	}
	if err := p.b.e.Listen(l, 9); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		id, err := p.a.e.Open(command.TCP, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.a.e.Connect(0, id, Connect{QPN: 2 + uint32(i), Local: p.a.addr,
			Remote: netip.MustParseAddrPort("10.0.0.2:7")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.a.e.Open(command.TCP, 0); !errors.Is(err, ErrTooManyIDs) {
		t.Errorf("one id too many: error %v, want %v", err, ErrTooManyIDs)
	}
	for p.collect(); len(p.wire) > 0; p.collect() {
		p.deliver(p.take(0))
	}
	if v := p.a.events(); len(v) != 1 || v[0].Reason != mad.RejectNoResources {
		t.Errorf("events %v, want one rejection for lack of resources", v)
	}
}

// TestSetMTU: new connections use the port's new MTU; an invalid one changes nothing.
func TestSetMTU(t *testing.T) {
	e := newEngine(t, nil)
	e.SetMTU(ib.MTU4096)
	e.SetMTU(9)
	id, _ := e.Open(command.TCP, 0)
	if err := e.Connect(0, id, Connect{QPN: 2, Local: netip.MustParseAddr("10.0.0.1"),
		Remote: netip.MustParseAddrPort("10.0.0.2:7")}); err != nil {
		t.Fatal(err)
	}
	if a, _ := e.Attributes(id); a.MTU != ib.MTU4096 {
		t.Errorf("the MTU is %v, want 4096", a.MTU)
	}
}

// TestNames: every value of the small enumerations has a name, and each event maps to its command.EventType.
func TestNames(t *testing.T) {
	want := map[EventType]command.EventType{
		EventConnectRequest: command.EventConnectRequest, EventConnectResponse: command.EventConnectResponse,
		EventEstablished: command.EventEstablished, EventRejected: command.EventRejected, EventUnreachable: command.EventUnreachable,
		EventConnectError: command.EventConnectError, EventDisconnected: command.EventDisconnected,
		EventTimewaitExit: command.EventTimewaitExit,
	}
	for v, c := range want {
		if v.Command() != c || v.String() == "" {
			t.Errorf("%v is %d, want %d", v, v.Command(), c)
		}
	}
	if s := fmt.Sprint(EventType(99), Failure(99)); s != "event 99 failure 99" {
		t.Errorf("unknown values are named %q", s)
	}
	for s := range stateDone + 1 {
		if s.String() == "" {
			t.Errorf("state %d has no name", s)
		}
	}
}

// TestIdleConnectionSize: an established connection costs at most 512 bytes besides the maps.
func TestIdleConnectionSize(t *testing.T) {
	if size := unsafe.Sizeof(conn{}); size > 512 {
		t.Errorf("a connection takes %d bytes, want at most 512", size)
	}
}

// BenchmarkConnect measures a whole connection: set-up, tear-down and time-wait.
func BenchmarkConnect(b *testing.B) {
	p := newPair(nil)
	l, _ := p.b.e.Open(command.TCP, 0)
	if _, err := p.b.e.Bind(l, netip.MustParseAddrPort("0.0.0.0:7")); err != nil {
		b.Fatal(err)
	}
	if err := p.b.e.Listen(l, 0); err != nil {
		b.Fatal(err)
	}
	flow := func() {
		for p.collect(); len(p.wire) > 0; p.collect() {
			p.deliver(p.take(0))
		}
	}
	for b.Loop() {
		id, _ := p.a.e.Open(command.TCP, 0)
		_ = p.a.e.Connect(p.now, id, Connect{QPN: 2, Local: p.a.addr, Remote: netip.MustParseAddrPort("10.0.0.2:7")})
		flow()
		r := p.b.events()[0].ID
		_, _ = p.b.e.Accept(p.now, r, Accept{QPN: 3})
		flow()
		_ = p.a.e.Establish(p.now, id, nil)
		flow()
		_ = p.a.e.Destroy(p.now, id)
		flow()
		_ = p.b.e.Destroy(p.now, r)
		p.advance(p.now.Add(time.Second))
		p.a.events()
		p.b.events()
	}
	if p.deadline() != clock.Never || p.b.e.Counters().Accepted != uint64(b.N) {
		b.Fatalf("%+v", *p.b.e.Counters())
	}
}
