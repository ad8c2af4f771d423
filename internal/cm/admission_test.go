package cm

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// flooded is a listener under a flood of requests, with honest peers beside it.
type flooded struct {
	t        *testing.T
	e        *Engine
	now      clock.Time
	random   *rand.Rand
	at       netip.AddrPort
	honest   map[netip.Addr]*caller
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

func newFlooded(t *testing.T, backlog, halfOpen int) *flooded {
	f := &flooded{t: t, random: rand.New(rand.NewPCG(1, 2)), at: netip.MustParseAddrPort("10.0.0.1:7"),
		honest: map[netip.Addr]*caller{}, accepted: map[ID]bool{}, qpn: 0x100}
	var err error
	if f.e, err = New(Config{GUID: 0xa, Rand: f.random.Uint64, MaxHalfOpen: halfOpen}); err != nil {
		t.Fatal(err)
	}
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
func (f *flooded) flood(from netip.Addr) {
	m := mad.REQ{TransactionID: f.random.Uint64(), LocalCommID: f.random.Uint32() | 1, LocalCAGUID: 0xbad, LocalQPN: ib.QPN(2 + f.random.Uint32N(1<<23)),
		ServiceID: mad.ServiceID(mad.PortSpaceTCP, f.at.Port()), TransportType: mad.TransportRC, PathMTU: ib.MTU1024, PKey: ib.PKeyDefault,
		RemoteCMResponseTimeout: 17, LocalCMResponseTimeout: 17, MaxCMRetries: 15}
	m.Primary.LocalGID, m.Primary.RemoteGID, m.Primary.AckTimeout = ib.GIDFromAddr(from), ib.GIDFromAddr(f.at.Addr()), 15
	(&mad.IPHeader{Source: netip.AddrPortFrom(from, 1000), Destination: f.at.Addr()}).Append(m.PrivateData[:0])
	var b [mad.Len]byte
	m.Append(b[:0])
	f.e.Receive(f.now, b[:], Peer{Local: f.at.Addr(), Remote: from, QPN: 1})
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
	f.honest[from] = &caller{e: e}
}

// exchange moves the messages between the listener and the honest peers, and takes a number of the listener's events:
// its program accepts every request.
func (f *flooded) exchange(events int) {
	var out [64]Datagram
	f.e.Advance(f.now)
	for from, c := range f.honest {
		c.e.Advance(f.now)
		for n := c.e.Transmit(out[:]); n > 0; n = c.e.Transmit(out[:]) {
			for _, d := range out[:n] {
				f.e.Receive(f.now, d.MAD[:], Peer{Local: f.at.Addr(), Remote: from, QPN: 1})
			}
		}
	}
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
	for n := f.e.Transmit(out[:]); n > 0; n = f.e.Transmit(out[:]) {
		for _, d := range out[:n] {
			c := f.honest[d.Remote]
			if c == nil {
				f.sent++
				continue
			}
			c.e.Receive(f.now, d.MAD[:], Peer{Local: d.Remote, Remote: f.at.Addr(), QPN: 1})
		}
	}
	for _, c := range f.honest {
		var got [4]Event
		n := c.e.Events(got[:])
		for _, v := range got[:n] {
			switch v.Type {
			case EventConnectResponse:
				c.established = true
				if err := c.e.Establish(f.now, v.ID, nil); err != nil {
					f.t.Fatal(err)
				}
			case EventEstablished:
			default:
				c.failed = &v
			}
		}
	}
}

// TestHonestPeersConnectInAFlood (IBA 12.9.8.7: a request that is not answered is repeated): while 47,000 requests a second
// come, of one peer, of some, or each of another address, every honest peer connects, and what is kept and answered is
// bounded.
func TestHonestPeersConnectInAFlood(t *testing.T) {
	const (
		backlog, halfOpen = 128, 512
		rate              = 47 // requests in a millisecond
		seconds           = 6
		honest            = 93
	)
	address := func(net byte, n uint32) netip.Addr {
		return netip.AddrFrom4([4]byte{net, byte(n >> 16), byte(n >> 8), byte(n)})
	}
	for _, c := range []struct {
		name   string
		source func(n uint32) netip.Addr
		drain  int // events that the program takes in a millisecond
	}{
		{"one peer, a quick program", func(uint32) netip.Addr { return address(11, 1) }, 100},
		{"one peer, a slow program", func(uint32) netip.Addr { return address(11, 1) }, 2},
		{"ten peers, a slow program", func(n uint32) netip.Addr { return address(11, n%10) }, 2},
		{"every request of another address, a quick program", func(n uint32) netip.Addr { return address(11, n) }, 100},
		{"every request of another address, a slow program", func(n uint32) netip.Addr { return address(11, n) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFlooded(t, backlog, halfOpen)
			n := uint32(0)
			var ends []netip.Addr
			for ms := range seconds * 1000 {
				f.now = f.now.Add(time.Millisecond)
				for range rate {
					n++
					f.flood(c.source(n))
				}
				if ms >= 100 && len(ends) < honest && ms%20 == 0 {
					ends = append(ends, address(12, uint32(ms)))
					f.connect(ends[len(ends)-1])
				}
				f.exchange(c.drain)
			}
			connected := 0
			for _, from := range ends {
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
			f.now = f.now.Add(time.Hour)
			for range 100 {
				f.exchange(1 << 20)
			}
			if f.e.half.most != 0 || len(f.e.half.of) != 0 || len(f.e.half.held) != 0 {
				t.Errorf("after the flood peers are left: %v", f.e.half)
			}
		})
	}
}

// TestRefusalsAreLimited: a peer that fills the backlog alone is told that there is no room, but not more than some
// times a second.
func TestRefusalsAreLimited(t *testing.T) {
	f := newFlooded(t, 4, 512)
	from := netip.MustParseAddr("10.0.0.9")
	for range 3000 {
		f.flood(from)
		f.exchange(0)
	}
	if f.sent != refusalsMost {
		t.Errorf("%d answers, want %d", f.sent, refusalsMost)
	}
	if k := f.e.Counters(); k.BacklogOverflow != 3000-4 || k.Unanswered != 3000-4-refusalsMost || k.FailedAttempts != refusalsMost {
		t.Errorf("counters %+v", *k)
	}
	f.now = f.now.Add(refusalsEvery)
	f.flood(from)
	f.exchange(0)
	if f.sent != refusalsMost+1 {
		t.Error("a second later no refusal is answered")
	}
}

// TestBacklogIsShared: peers share a full backlog equally, and none displaces requests of another that has no more.
func TestBacklogIsShared(t *testing.T) {
	f := newFlooded(t, 12, 512)
	peers := []netip.Addr{netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("10.0.0.12"), netip.MustParseAddr("10.0.0.13")}
	l := f.e.listener(command.TCP, f.at).listen
	has := func() (n []int) {
		for _, p := range peers {
			n = append(n, l.shares.of[p])
		}
		return n
	}
	for _, p := range peers {
		for range 20 {
			f.flood(p)
		}
	}
	if got := has(); !slices.Equal(got, []int{4, 4, 4}) || l.shares.most != 4 || len(l.waiting) != 12 {
		t.Errorf("the peers have %v of 12", got)
	}
	for range 20 {
		f.flood(peers[0])
	}
	if got := has(); !slices.Equal(got, []int{4, 4, 4}) {
		t.Errorf("the peers then have %v of 12", got)
	}
}
