package cm

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// flooded is a listener under a flood of requests, with honest peers beside it.
type flooded struct {
	t        testing.TB
	e        *Engine
	net      *sim.Network
	port     *sim.Port  // of the listener
	now      clock.Time // of net
	random   *rand.Rand
	at       netip.AddrPort
	honest   map[netip.Addr]*caller
	order    []netip.Addr // of the honest peers
	accepted map[ID]bool
	qpn      uint32
	most     int // ids held at a time
	sent     int // answers to the flood
}

// caller is an honest peer: an engine of its own that connects once.
type caller struct {
	e           *Engine
	established bool
	failed      *Event
}

func newFlooded(t testing.TB, backlog, halfOpen int, seed uint64) *flooded {
	f := &flooded{t: t, random: rand.New(rand.NewPCG(seed, 2)), at: netip.MustParseAddrPort("10.0.0.1:7"),
		net: sim.New(seed), honest: map[netip.Addr]*caller{}, accepted: map[ID]bool{}, qpn: 0x100}
	var err error
	if f.e, err = New(Config{GUID: 0xa, Rand: f.random.Uint64, MaxHalfOpen: halfOpen}); err != nil {
		t.Fatal(err)
	}
	f.port = f.net.Add(f.at.Addr(), &carrier{side: &side{addr: f.at.Addr(), e: f.e}})
	l, err := f.e.Open(command.TCP, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.e.Bind(l, f.at); err != nil {
		t.Fatal(err)
	}
	if err := f.e.Listen(l, backlog); err != nil {
		t.Fatal(err)
	}
	return f
}

// flood delivers a request of a peer that never answers.
func (f *flooded) flood(from netip.Addr) { f.deliver(from, f.request(from)) }

// deliver delivers a message of a peer.
func (f *flooded) deliver(from netip.Addr, m *mad.REQ) {
	var b [mad.Len]byte
	m.Append(b[:0])
	f.e.Receive(f.now, b[:], Peer{Local: f.at.Addr(), Remote: from, QPN: 1})
}

// request returns a new request.
func (f *flooded) request(from netip.Addr) *mad.REQ {
	m := mad.REQ{TransactionID: f.random.Uint64(), LocalCommID: f.random.Uint32() | 1, LocalCAGUID: 0xbad,
		LocalQPN:  ib.QPN(2 + f.random.Uint32N(1<<23)),
		ServiceID: mad.ServiceID(mad.PortSpaceTCP, f.at.Port()), TransportType: mad.TransportRC, PathMTU: ib.MTU1024, PKey: ib.PKeyDefault,
		RemoteCMResponseTimeout: 17, LocalCMResponseTimeout: 17, MaxCMRetries: 15}
	m.Primary.LocalGID, m.Primary.RemoteGID, m.Primary.AckTimeout = ib.GIDFromAddr(from), ib.GIDFromAddr(f.at.Addr()), 15
	(&mad.IPHeader{Source: netip.AddrPortFrom(from, 1000), Destination: f.at.Addr()}).Append(m.PrivateData[:0])
	return &m
}

// connect starts an honest attempt.
func (f *flooded) connect(from netip.Addr) {
	e, err := New(Config{GUID: uint64(f.random.Uint32()), Rand: f.random.Uint64})
	if err != nil {
		f.t.Fatal(err)
	}
	id, err := e.Open(command.TCP, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := e.Connect(f.now, id, Connect{Remote: f.at, Local: from, QPN: 0x100}); err != nil {
		f.t.Fatal(err)
	}
	c := &caller{e: e}
	f.honest[from] = c
	f.order = append(f.order, from)
	port := f.net.Add(from, &carrier{side: &side{addr: from, e: e}})
	port.Settle = func(now clock.Time) { c.settle(f.t, now) }
	port.Wake()
}

// settle takes what has happened to a peer.
func (c *caller) settle(t testing.TB, now clock.Time) {
	var got [4]Event
	n := c.e.Events(got[:])
	for _, v := range got[:n] {
		switch v.Type {
		case EventConnectResponse:
			c.established = true
			if err := c.e.Establish(now, v.ID, nil); err != nil {
				t.Fatal(err)
			}
		case EventEstablished:
		default:
			c.failed = &v
		}
	}
}

// pass lets time pass.
func (f *flooded) pass(d time.Duration) {
	f.port.Wake()
	f.net.Pass(d)
	f.now = f.net.Now()
	f.sent = int(f.net.Stats.Unroutable)
}

// exchange moves the messages between the listener and the honest peers, and takes a number of the listener's events:
// its program accepts every request.
func (f *flooded) exchange(events int) {
	f.pass(0)
	var taken [1]Event
	for ; events > 0 && f.e.Events(taken[:]) > 0; events-- {
		switch v := &taken[0]; v.Type {
		case EventConnectRequest:
			f.qpn++
			_, _ = f.e.Accept(f.now, v.ID, Accept{QPN: f.qpn}) // it may have been displaced
		case EventEstablished:
		default:
			_ = f.e.Destroy(f.now, v.ID)
		}
	}
	f.most = max(f.most, f.e.ids.Len())
	f.pass(0)
}

// TestHonestPeersConnectInAFlood (IBA 12.9.8.7: a request that is not answered is repeated): while 47,000 requests a second
// come, of one peer, of some, or each of another address, every honest peer connects, and what is kept and answered is
// bounded. -floodseeds sets how many sequences of random numbers each case is tried with.
func TestHonestPeersConnectInAFlood(t *testing.T) {
	for _, c := range []floodCase{
		{"one peer, a quick program", func(uint32) netip.Addr { return address(11, 1) }, 100, 0},
		{"one peer, a slow program", func(uint32) netip.Addr { return address(11, 1) }, 2, 0},
		{"ten peers, a quick program", func(n uint32) netip.Addr { return address(11, n%10) }, 100, 0},
		{"ten peers, a slow program", func(n uint32) netip.Addr { return address(11, n%10) }, 2, 0},
		{"every request of another address, a quick program", func(n uint32) netip.Addr { return address(11, n) }, 100, 0},
		{"every request of another address, a slow program", func(n uint32) netip.Addr { return address(11, n) }, 2, 0},
		{"every request of another address, for long", func(n uint32) netip.Addr { return address(11, n) }, 100, 6},
	} {
		for seed := range uint64(*floodSeeds) {
			t.Run(fmt.Sprintf("%s, seed %d", c.name, seed+1), func(t *testing.T) { c.test(t, seed+1) })
		}
	}
}

var floodSeeds = flag.Uint("floodseeds", 1, "number of random sequences of each flood of connection requests")

// floodCase is a flood of requests.
type floodCase struct {
	name   string
	source func(n uint32) netip.Addr
	drain  int // events that the program takes in a millisecond
	before int // seconds of the flood before honest peers come
}

// address returns an address of a network 0.0.0.0/8.
func address(net byte, n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{net, byte(n >> 16), byte(n >> 8), byte(n)})
}

func (c *floodCase) test(t *testing.T, seed uint64) {
	const (
		backlog, halfOpen = 128, 512
		rate              = 47 // requests in a millisecond
		seconds           = 6
		honest            = 93
	)
	f := newFlooded(t, backlog, halfOpen, seed)
	n := uint32(0)
	for ms := range (c.before + seconds) * 1000 {
		f.pass(time.Millisecond)
		for range rate {
			n++
			f.flood(c.source(n))
		}
		if ms >= c.before*1000+100 && len(f.order) < honest && ms%20 == 0 {
			f.connect(address(12, uint32(ms)))
		}
		f.exchange(c.drain)
	}
	connected := 0
	for _, from := range f.order {
		p := f.honest[from]
		if p.failed != nil {
			t.Errorf("the attempt of %v ended with %v, reason %v", from, p.failed.Type, p.failed.Reason)
		}
		if p.established {
			connected++
		}
	}
	if connected != honest {
		t.Errorf("%d of %d honest peers connected", connected, honest)
	}
	k := f.e.Counters()
	t.Logf("%d requests, %d honest peers connected, at most %d ids, %d answers: %+v", n, connected, f.most, f.sent, *k)
	if len(f.e.half.of) > halfOpen || len(f.e.opening.ids) > 2*halfOpen+64 || f.e.half.most > halfOpen {
		t.Errorf("%d peers and %d requests are remembered with %d half open", len(f.e.half.of), len(f.e.opening.ids), halfOpen)
	}
	if k.BacklogOverflow+k.HalfOpenLimit == 0 || k.Displaced == 0 {
		t.Errorf("counters %+v: nothing was refused or displaced", *k)
	}
	f.pass(time.Hour)
	for range 100 {
		f.exchange(1 << 20)
	}
	if f.e.half.most != 0 || len(f.e.half.of) != 0 || len(f.e.half.held) != 0 {
		t.Errorf("after the flood peers are left: %v", f.e.half)
	}
}

// BenchmarkFlood measures a request of a flood that finds no room, and one that comes three times.
func BenchmarkFlood(b *testing.B) {
	for _, c := range []struct {
		name   string
		source func(n uint32) netip.Addr
		times  int
	}{
		{"one peer", func(uint32) netip.Addr { return address(11, 1) }, 1},
		{"ten peers", func(n uint32) netip.Addr { return address(11, n%10) }, 1},
		{"ten peers, thrice", func(n uint32) netip.Addr { return address(11, n%10) }, 3},
		{"every request of another address", func(n uint32) netip.Addr { return address(11, n) }, 1},
		{"every request of another address, thrice", func(n uint32) netip.Addr { return address(11, n) }, 3},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := newFlooded(b, defaultMaxHalfOpen, defaultMaxHalfOpen, 1)
			n := uint32(0)
			step := func() {
				n++
				from := c.source(n)
				m := f.request(from)
				for range c.times {
					f.deliver(from, m)
				}
				if n%47 == 0 {
					f.pass(time.Millisecond)
					f.exchange(100)
				}
			}
			for range 5 * defaultMaxHalfOpen {
				step()
			}
			for b.Loop() {
				step()
			}
		})
	}
}
