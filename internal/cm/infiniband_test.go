package cm

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

var (
	ibLocal  = netip.MustParseAddr("10.1.0.1")
	ibRemote = netip.MustParseAddr("10.1.0.2")
	ibGIDA   = netip.MustParseAddr("fe80::a")
	ibGIDB   = netip.MustParseAddr("fe80::b")
)

// ibPair returns two engines at LIDs 0x11 and 0x22 in partition 0x8001, b with a listener in each port space, and a
// function that delivers a datagram from a side.
func ibPair(t *testing.T) (p *pair, send func(d Datagram, from *side)) {
	t.Helper()
	p = newPair(func(c *Config) { c.PKeys = []ib.PKey{0, 0xffff, 0x8001}; c.MTU = ib.MTU4096 })
	p.a.addr, p.b.addr = frame.LIDAddr(0x11), frame.LIDAddr(0x22)
	for _, space := range []command.PortSpace{command.TCP, command.UDP} {
		id, err := p.b.e.Open(space, 7)
		check(t, err)
		_, err = p.b.e.Bind(id, netip.AddrPortFrom(ibRemote, 7471))
		check(t, err)
		check(t, p.b.e.Listen(id, 4))
	}
	return p, func(d Datagram, from *side) {
		to := p.other(from)
		to.e.Receive(p.now, d.MAD[:], Peer{Local: d.Remote, Remote: d.Local, QPN: 1, SL: d.SL, PKey: d.PKey})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *pair) connectIB(t *testing.T, space command.PortSpace, path Path) ID {
	t.Helper()
	id, err := p.a.e.Open(space, 0)
	check(t, err)
	check(t, p.a.e.Connect(p.now, id, Connect{
		Remote: netip.AddrPortFrom(ibRemote, 7471), Local: ibLocal, LocalGID: ibGIDA, RemoteGID: ibGIDB, QPN: 0x100, RetryCount: 7,
		MTU: ib.MTU2048, SL: 9, Path: path,
	}))
	p.collect()
	return id
}

// TestConnectionByLIDs: a connection within a subnet uses LIDs from the request to the last message (IBA 12.7.10 to
// 12.7.21).
func TestConnectionByLIDs(t *testing.T) {
	p, send := ibPair(t)
	p.connectIB(t, command.TCP, Path{LocalLID: 0x11, RemoteLID: 0x22, Rate: 3, Life: 10, PKey: 0x8001})
	f := p.take(0)
	if d := &f.d; d.Local != p.a.addr || d.Remote != p.b.addr || d.SL != 9 || d.PKey != 0x8001 {
		t.Errorf("the request goes from %v to %v, SL %d, P_Key %v", d.Local, d.Remote, d.SL, d.PKey)
	}
	m, err := mad.ParseREQ(f.d.MAD[:])
	check(t, err)
	want := mad.Path{LocalLID: 0x11, RemoteLID: 0x22, LocalGID: ib.GIDFromAddr(ibGIDA), RemoteGID: ib.GIDFromAddr(ibGIDB),
		FlowLabel:  m.Primary.FlowLabel,
		PacketRate: 3, SL: 9, SubnetLocal: true, AckTimeout: ackTimeout(defaultAckDelay, 10)}
	if m.Primary != want || m.PKey != 0x8001 || m.PathMTU != ib.MTU2048 {
		t.Errorf("REQ %+v, P_Key %v, MTU %v, want %+v", m.Primary, m.PKey, m.PathMTU, want)
	}
	send(f.d, p.a)
	e := p.b.events()[0]
	c := &e.Conn
	if c.LocalLID != 0x22 || c.RemoteLID != 0x11 || c.SL != 9 || c.Global || c.LocalGID != ibGIDB || c.RemoteGID != ibGIDA ||
		c.PKey != 0x8001 || c.MTU != ib.MTU2048 {
		t.Fatalf("the listener's event has %+v", c)
	}
	if e.Remote.Addr() != ibLocal || e.Local != netip.AddrPortFrom(ibRemote, 7471) {
		t.Errorf("the request is from %v to %v", e.Remote, e.Local)
	}
	_, err = p.b.e.Accept(p.now, e.ID, Accept{QPN: 0x200})
	check(t, err)
	p.collect()
	rep := p.take(0)
	if d := &rep.d; d.Local != p.b.addr || d.Remote != p.a.addr || d.SL != 9 || d.PKey != 0x8001 {
		t.Errorf("the answer goes from %v to %v, SL %d, P_Key %v", d.Local, d.Remote, d.SL, d.PKey)
	}
	send(rep.d, p.b)
	r := p.a.events()[0]
	if r.Type != EventConnectResponse || r.Conn.RemoteLID != 0x22 || r.Conn.RemoteQPN != 0x200 {
		t.Fatalf("the answer is %+v", r)
	}
	check(t, p.a.e.Establish(p.now, r.ID, nil))
	p.collect()
	send(p.take(0).d, p.a)
	if e := p.b.events(); len(e) != 1 || e[0].Type != EventEstablished {
		t.Errorf("the listener's events are %v, want established", e)
	}
}

// TestConnectionThroughARouter: a peer in another subnet is answered by way of the router that its request came from,
// with a GRH.
func TestConnectionThroughARouter(t *testing.T) {
	p, _ := ibPair(t)
	p.connectIB(t, command.TCP, Path{LocalLID: 0x11, RemoteLID: 0x99, Global: true, Life: 10, PKey: 0xffff})
	f := p.take(0)
	m, err := mad.ParseREQ(f.d.MAD[:])
	check(t, err)
	if m.Primary.SubnetLocal {
		t.Error("the request says that the path is in the subnet")
	}
	ab := Global{Local: ib.GIDFromAddr(ibGIDA), Remote: ib.GIDFromAddr(ibGIDB), FlowLabel: m.Primary.FlowLabel}
	if f.d.Global != ab {
		t.Errorf("the request has the GRH %+v, want %+v", f.d.Global, ab)
	}
	router, back := frame.LIDAddr(0x77), Global{Local: ab.Remote, Remote: ab.Local, TrafficClass: 5, FlowLabel: 6}
	p.b.e.Receive(p.now, f.d.MAD[:], Peer{Local: p.b.addr, Remote: router, QPN: 1, SL: 2, PKey: 0xffff, Global: back})
	e := p.b.events()[0]
	c := &e.Conn
	if c.LocalLID != 0x22 || c.RemoteLID != 0x77 || !c.Global || c.RemoteGID != ibGIDA {
		t.Errorf("the listener's event has %+v", c)
	}
	_, err = p.b.e.Accept(p.now, e.ID, Accept{QPN: 0x200})
	check(t, err)
	p.collect()
	if d := p.take(0).d; d.Remote != router || d.SL != 2 || d.Global != back {
		t.Errorf("the answer goes to %v, SL %d, GRH %+v, want %v, 2, %+v", d.Remote, d.SL, d.Global, router, back)
	}
}

// TestAnswersHaveTheGRHOfTheQuestion: the answer to a message with a GRH has one too, also where the path is within
// the subnet or unknown (IBA 13.5.4.3).
func TestAnswersHaveTheGRHOfTheQuestion(t *testing.T) {
	back := Global{Local: ib.GIDFromAddr(ibGIDB), Remote: ib.GIDFromAddr(ibGIDA), TrafficClass: 5, FlowLabel: 6}
	for _, s := range []struct {
		name  string
		space command.PortSpace
		port  uint16
	}{{"accepted", command.TCP, 7471}, {"refused", command.TCP, 7}, {"datagrams", command.UDP, 7471},
		{"datagrams refused", command.UDP, 7}} {
		for _, global := range []Global{{}, back} {
			p, _ := ibPair(t)
			id, err := p.a.e.Open(s.space, 0)
			check(t, err)
			check(t, p.a.e.Connect(p.now, id, Connect{Remote: netip.AddrPortFrom(ibRemote, s.port), Local: ibLocal, LocalGID: ibGIDA,
				RemoteGID: ibGIDB,
				QPN:       0x100, Path: Path{LocalLID: 0x11, RemoteLID: 0x22, PKey: 0x8001}}))
			p.collect()
			d := p.take(0).d
			if d.Global != (Global{}) {
				t.Errorf("%s: the request has a GRH", s.name)
			}
			p.b.e.Receive(p.now, d.MAD[:], Peer{Local: d.Remote, Remote: d.Local, QPN: 1, PKey: d.PKey, Global: global})
			for _, e := range p.b.events() {
				if s.space == command.UDP && (e.Conn.Global != (global != Global{})) {
					t.Errorf("%s: the listener's event has %+v", s.name, e.Conn)
				}
				_, err := p.b.e.Accept(p.now, e.ID, Accept{QPN: 0x200})
				check(t, err)
			}
			p.collect()
			if got := p.take(0).d.Global; got != global {
				t.Errorf("%s: the answer has the GRH %+v, want %+v", s.name, got, global)
			}
		}
	}
}

// TestRequestsInOtherPartitions: a request is refused (REJ 5) in a partition that the port does not belong to, and
// between limited members.
func TestRequestsInOtherPartitions(t *testing.T) {
	for _, c := range []struct {
		key ib.PKey
		ok  bool
	}{{0x8001, true}, {0x0001, true}, {0x8002, false}, {0x7fff, true}, {0x8000, false}} {
		p, send := ibPair(t)
		p.connectIB(t, command.TCP, Path{LocalLID: 0x11, RemoteLID: 0x22, PKey: 0x8001})
		f := p.take(0)
		m, err := mad.ParseREQ(f.d.MAD[:])
		check(t, err)
		m.PKey = c.key
		m.Append(f.d.MAD[:0])
		send(f.d, p.a)
		if e := p.b.events(); (len(e) == 1) != c.ok {
			t.Errorf("P_Key %#04x: events %v; a request wanted: %v", uint16(c.key), e, c.ok)
		}
	}
}

// TestDatagramsByLIDs: a SIDR request contains no path; the answer takes the way that the request came.
func TestDatagramsByLIDs(t *testing.T) {
	p, send := ibPair(t)
	p.connectIB(t, command.UDP, Path{LocalLID: 0x11, RemoteLID: 0x22, PKey: 0x8001})
	send(p.take(0).d, p.a)
	e := p.b.events()[0]
	if c := &e.Conn; c.LocalLID != 0x22 || c.RemoteLID != 0x11 || c.SL != 9 || c.PKey != 0x8001 {
		t.Fatalf("the listener's event has %+v", c)
	}
	_, err := p.b.e.Accept(p.now, e.ID, Accept{QPN: 0x200})
	check(t, err)
	p.collect()
	f := p.take(0)
	if f.d.Remote != p.a.addr || f.d.SL != 9 || f.d.PKey != 0x8001 {
		t.Errorf("the answer goes to %v, SL %d, P_Key %v", f.d.Remote, f.d.SL, f.d.PKey)
	}
	send(f.d, p.b)
	if r := p.a.events()[0]; r.Type != EventConnectResponse || r.Conn.RemoteLID != 0x22 || r.Conn.RemoteQPN != 0x200 {
		t.Errorf("the answer is %+v", r)
	}
}
