package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// overUDP serves a ground over UDP and returns its address.
func (g *ground) overUDP(at netip.AddrPort, key []byte) (where netip.AddrPort, stop func()) {
	g.Helper()
	u, err := g.ListenUDP(at, key)
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		g.Skip(err) // a host without IPv6
	}
	if err != nil {
		g.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { u.Serve(ctx); close(done) }()
	stop = func() {
		cancel()
		<-done
	}
	g.Cleanup(stop)
	return u.Addr(), stop
}

// anyPort is a port of the kernel's choice at an address that no other test uses.
func anyPort() netip.AddrPort { return netip.AddrPortFrom(loopback.Addr(), 0) }

func udpConfig(at netip.AddrPort, node string) cable.Config {
	return cable.Config{Hello: cable.Hello{Node: node, Program: "test"}, UDP: cable.Scheme + at.String()}
}

// TestFramesCrossUDP: over UDP too the port is as the subnet manager set it, and if the network loses nothing all
// frames arrive unchanged and in order.
func TestFramesCrossUDP(t *testing.T) {
	for _, c := range []struct {
		name     string
		at       netip.AddrPort
		portable bool
	}{
		{"IPv4", anyPort(), false}, {"IPv6", netip.AddrPortFrom(netip.IPv6Loopback(), 0), false}, {"portable", anyPort(), true},
		{"IPv4 to all addresses", netip.AddrPortFrom(netip.IPv6Unspecified(), 0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGround(t, 3, Options{})
			g.manage(2)
			at, _ := g.overUDP(c.at, []byte("a key of the test"))
			if at.Addr().IsUnspecified() {
				at = netip.AddrPortFrom(loopback.Addr(), at.Port())
			}
			var links [2]*cable.Link
			for i := range links {
				cfg := udpConfig(at, fmt.Sprintf("node0000%d", i))
				cfg.Portable, cfg.Key = c.portable, []byte("a key of the test")
				l, news := farAt(t, cfg)
				until(t, news, up(l))
				links[i] = l
			}
			a, b := links[0], links[1]
			if pa, pb := a.Port(), b.Port(); pa.LID == 0 || pa.LID == pb.LID || pa.Fabric == nil || pa.Fabric != pb.Fabric ||
				pa.Speed != mad.SpeedEDR ||
				pa.PKeys[0] != ib.PKeyDefault || pa.GUIDs[0] == 0 || pa.NodeGUID == 0 {
				t.Errorf("the ports are\n%+v\n%+v", pa, pb)
			}
			if c.portable { // its queue is short: it loses what a kernel would keep
				someCross(t, a, b, 2000)
				return
			}
			crosses(t, a, b, 5000)
			crosses(t, b, a, 5000)
		})
	}
}

// TestVirtualPortsCrossUDP: an adapter's virtual ports are known to the fabric, and what the subnet manager makes of them to the adapter,
// also of so many that a message of theirs is longer than the datagrams of frames. When the link is pulled out they are gone, and come
// again.
func TestVirtualPortsCrossUDP(t *testing.T) {
	for _, portable := range []bool{false, true} {
		g := newGround(t, 2, Options{})
		g.manage(1)
		at, _ := g.overUDP(anyPort(), nil)
		cfg := udpConfig(at, "node00000")
		cfg.Portable = portable
		l, news := farAt(t, cfg)
		var want []link.VirtualPort
		for i := range uint16(fabric.MostVirtual) {
			want = append(want, link.VirtualPort{Index: i + 1, GUID: 0x0200_0000_0000_0100 + uint64(i)})
		}
		l.SetVirtual(want)
		all := func() bool {
			have, lids := l.Port().Virtual, map[ib.LID]bool{}
			for i := range have {
				if v := &have[i]; v.Index != want[i].Index || v.GUID != want[i].GUID || v.State != mad.PortActive ||
					v.PKeys[0] != ib.PKeyDefault {
					return false
				}
				lids[have[i].LID] = true
			}
			return len(lids) == len(want) && !lids[0] && l.Port().Virtualized
		}
		until(t, news, all)
		l.SetPlugged(false)
		until(t, news, func() bool { return l.Port().Virtual == nil })
		l.SetPlugged(true)
		until(t, news, all)
	}
}

// someCross sends frames some of which may be lost, checks that those that arrive are in order, and returns their
// number.
func someCross(t testing.TB, a, b *cable.Link, count uint64) (came uint64) {
	t.Helper()
	from, to := a.Port().LID, b.Port().LID
	in := make([]frame.In, 64)
	next := uint64(0)
	receive := func() {
		n, err := b.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in[:n] {
			number := binary.BigEndian.Uint64(in[i].Data[ib.LRHLen+ib.BTHLen:])
			if number < next || len(in[i].Data) != ib.LRHLen+ib.BTHLen+12+4*int(number%1000) {
				t.Fatalf("frame %d arrived, want %d or later; %d bytes", number, next, len(in[i].Data))
			}
			next = number + 1
			came++
		}
	}
	late := time.Now().Add(await.Limit)
	for i := uint64(0); i < count; {
		n, err := a.Send([]frame.Out{packet(from, to, 5, make([]byte, 8+4*int(i%1000)), i)})
		if err != nil {
			t.Fatal(err)
		}
		if i += uint64(n); n == 0 || i%8 == 0 {
			_, _ = a.Receive(make([]frame.In, 1)) // for the credits
			receive()
		}
		if time.Now().After(late) {
			t.Fatalf("%d of %d frames were sent, %d have arrived", i, count, came)
		}
	}
	for i := count; next < count; i++ { // the last one arrives after it was sent often enough
		_, _ = a.Send([]frame.Out{packet(from, to, 5, make([]byte, 8+4*int(i%1000)), i)})
		time.Sleep(time.Millisecond)
		_, _ = a.Receive(make([]frame.In, 1))
		receive()
		if time.Now().After(late) {
			t.Fatalf("%d of %d frames arrived, and then no more", came, count)
		}
	}
	return came
}

// relay carries datagrams between a link and a fabric, as badly as it is told to.
type relay struct {
	conn   *net.UDPConn
	fabric netip.AddrPort
	worse  atomic.Uint32 // of 1000 datagrams so many are lost, repeated, late or changed
	silent atomic.Bool
	ended  sync.WaitGroup
}

func newRelay(t testing.TB, fabric netip.AddrPort) (*relay, netip.AddrPort) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(anyPort()))
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{conn: c, fabric: fabric}
	r.ended.Go(r.run)
	t.Cleanup(func() { c.Close(); r.ended.Wait() })
	return r, c.LocalAddr().(*net.UDPAddr).AddrPort()
}

func (r *relay) run() {
	var adapter netip.AddrPort
	var held []byte
	var heldTo netip.AddrPort
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 1<<16)
	for {
		n, from, err := r.conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		to := r.fabric
		if from == r.fabric {
			to = adapter
		} else {
			adapter = from
		}
		if r.silent.Load() {
			continue
		}
		if worse := r.worse.Load(); random.Uint32N(1000) < worse {
			switch random.IntN(4) {
			case 0:
				continue
			case 1:
				_, _ = r.conn.WriteToUDPAddrPort(b[:n], to)
			case 2:
				held, heldTo = append(held[:0], b[:n]...), to
				continue
			case 3:
				if n > 40 && b[0] == 20 { // what UDP's checksum lets through is left to the VCRC
					b[40+random.IntN(n-40)] ^= 4
				}
			}
		}
		_, _ = r.conn.WriteToUDPAddrPort(b[:n], to)
		if len(held) > 0 {
			_, _ = r.conn.WriteToUDPAddrPort(held, heldTo)
			held = held[:0]
		}
	}
}

// TestUDPLosesDatagrams: a network that loses, repeats, delays and changes datagrams costs the frames in them and no
// credits: frames go on arriving in order.
func TestUDPLosesDatagrams(t *testing.T) {
	t.Parallel()
	g := newGround(t, 3, Options{})
	g.manage(2)
	at, _ := g.overUDP(anyPort(), nil)
	r, through := newRelay(t, at)
	a, newsA := farAt(t, udpConfig(through, "node00000"))
	b, newsB := farAt(t, udpConfig(at, "node00001"))
	until(t, newsA, up(a))
	until(t, newsB, up(b))
	r.worse.Store(50)
	for i := range 3 {
		if came := someCross(t, a, b, 3000); came < 100 || came == 3000 {
			t.Errorf("round %d: %d frames arrived, want some lost", i, came)
		}
		if came := someCross(t, b, a, 3000); came < 100 {
			t.Errorf("round %d: %d frames arrived on the way back", i, came)
		}
	}
	if a.Stats().ReceiveTruncated == 0 {
		t.Error("the link does not count the frames it lost")
	}
	if a.Port().State != mad.PortActive || b.Port().State != mad.PortActive {
		t.Error("the link went down")
	}
}

// TestUDPSilence: if nothing is heard from an adapter, or from the fabric, the port goes down; it comes back by
// itself.
func TestUDPSilence(t *testing.T) {
	t.Parallel()
	g := newGround(t, 2, Options{})
	g.manage(1)
	at, stop := g.overUDP(anyPort(), nil)
	r, through := newRelay(t, at)
	a, news := farAt(t, udpConfig(through, "node00000"))
	until(t, news, up(a))
	r.silent.Store(true)
	until(t, news, func() bool { return a.Port().State == mad.PortDown })
	waitFree(t, g.Rack, "node00000")
	r.silent.Store(false)
	until(t, news, up(a))
	a.SetPlugged(false)
	waitFree(t, g.Rack, "node00000")
	a.SetPlugged(true)
	until(t, news, up(a))
	stop()
	until(t, news, func() bool { return a.Port().State == mad.PortDown })
	again := newGround(t, 2, Options{})
	again.manage(1)
	again.overUDP(at, nil)
	until(t, news, up(a))
	a.Close()
	waitFree(t, again.Rack, "node00000")
}

// TestUDPStartsAnew: a restarted fabric does not know the sessions and says so, and the adapters are back at once. A
// restarted adapter gets its port when the former session has been missed.
func TestUDPStartsAnew(t *testing.T) {
	t.Parallel()
	g := newGround(t, 2, Options{})
	g.manage(1)
	at, _ := g.overUDP(anyPort(), nil)
	r, through := newRelay(t, at)
	a, news := farAt(t, udpConfig(through, "node00000"))
	until(t, news, up(a))
	r.silent.Store(true) // as if its process had been killed
	b, newsB := farAt(t, udpConfig(at, "node00000"))
	until(t, newsB, up(b))
	r.silent.Store(false) // what the other still sends belongs to no session
	if _, err := cable.Open(udpConfig(at, "node00000")); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("plugging in twice: error %v, want one that the place is taken", err)
	}
	if !up(b)() {
		t.Error("the port went down when the former adapter was heard again")
	}
}

// TestUDPRefused: an adapter that the fabric does not admit is refused with the reason.
func TestUDPRefused(t *testing.T) {
	g := newGround(t, 2, Options{})
	at, _ := g.overUDP(anyPort(), []byte("the right key"))
	for why, change := range map[string]func(*cable.Config){
		"no node": func(c *cable.Config) { c.Node = "nobody" }, "the key": func(c *cable.Config) { c.Key = []byte("a wrong key") },
		"key of the adapter": func(c *cable.Config) { c.Key = nil }, "allowed: udp://": func(c *cable.Config) { c.UDP = "udp://" },
	} {
		cfg := udpConfig(at, "node00000")
		cfg.Key = []byte("the right key")
		change(&cfg)
		if l, err := cable.Open(cfg); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("error %v, want one with %q", err, why)
			if l != nil {
				l.Close()
			}
		}
	}
	if _, err := g.ListenUDP(at, nil); err == nil {
		t.Error("a second fabric listens at the same address")
	}
	plain, _ := g.overUDP(anyPort(), nil)
	cfg := udpConfig(plain, "node00000")
	cfg.Key = []byte("the right key")
	if _, err := cable.Open(cfg); err == nil || !strings.Contains(err.Error(), "the key of the adapter is not that of the fabric") {
		t.Errorf("a wrong key: error %v, want one that says so", err)
	}
}

// TestUDPViolation: violations are reported over UDP too, and sent as traps.
func TestUDPViolation(t *testing.T) {
	g := newGround(t, 2, Options{})
	g.manage(1)
	at, _ := g.overUDP(anyPort(), nil)
	traps := make(chan uint16, 64)
	g.mu.Lock()
	g.takers = append([]Taker{takerFunc(func(p *fabric.Packet) {
		if p.MAD[3] == mad.MethodTrap {
			select {
			case traps <- binary.BigEndian.Uint16(p.MAD[64+4:]):
			default:
			}
		}
	})}, g.takers...)
	g.mu.Unlock()
	a, news := farAt(t, udpConfig(at, "node00000"))
	until(t, news, up(a))
	a.Violation(link.Violation{Kind: link.PKeyViolation, Key: 5, SLID: 2, DLID: 1})
	for late := time.After(await.Limit); ; {
		select {
		case n := <-traps:
			if n == mad.TrapBadPKey {
				return
			}
		case <-late:
			t.Fatal("trap 257 was not sent")
		}
	}
}

// TestUDPHostile: whatever strangers send, and whatever an admitted adapter sends, the others continue. Strangers get
// no more bytes than they sent, and no state is kept of them.
func TestUDPHostile(t *testing.T) {
	t.Parallel()
	g := newGround(t, 4, Options{})
	g.manage(3)
	at, _ := g.overUDP(anyPort(), nil)
	a, newsA := farAt(t, udpConfig(at, "node00000"))
	b, newsB := farAt(t, udpConfig(at, "node00001"))
	until(t, newsA, up(a))
	until(t, newsB, up(b))
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	random := rand.New(rand.NewPCG(5, 6))
	noise := make([]byte, 9000)
	for i := range 3000 {
		m := noise[:random.IntN(len(noise))]
		for k := range min(len(m), 200) {
			m[k] = byte(random.Uint32())
		}
		if len(m) > 0 {
			m[0] = byte(9 + i%16)
		}
		_, _ = c.Write(m)
	}
	greeting := cable.Greeting{Session: 5, Size: 1472, Window: 1 << 20, Hello: cable.Hello{Node: "node00002"}}
	for range 3000 { // never with the challenge
		_, _ = c.Write(greeting.Greet([16]byte{}, nil))
	}
	heard(t, at)
	crosses(t, a, b, 500)
	if n := len(g.adapters()); n != 2 {
		t.Errorf("%d adapters are plugged in, want 2", n)
	}
	// An adapter that is admitted and then sends noise in its session.
	session := admitted(t, c, greeting)
	head := make([]byte, 1400)
	for i := range 2000 {
		for k := range head {
			head[k] = byte(random.Uint32())
		}
		head[0] = byte(20 + i%2)
		binary.LittleEndian.PutUint64(head[8:], session)
		binary.LittleEndian.PutUint64(head[16:], uint64(i)*100)
		binary.LittleEndian.PutUint16(head[2:], uint16(i%1368))
		_, _ = c.Write(head)
	}
	waitFree(t, g.Rack, "node00002")
	heard(t, at)
	crosses(t, b, a, 500)
}

// heard waits until the fabric has received all that was sent to it: until then its socket has no room for the frames of others.
func heard(t *testing.T, at netip.AddrPort) {
	t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	greeting := cable.Greeting{Session: 6, Size: 1472, Window: 1 << 20, Hello: cable.Hello{Node: "node00003"}}
	b := make([]byte, 1<<16)
	await.Eventually(t, "the fabric answers", func() bool {
		_, _ = c.Write(greeting.Greet([16]byte{}, nil))
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := c.Read(b)
		return err == nil
	})
}

// adapters returns the adapters that are plugged in.
func (g *ground) adapters() []Adapter {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Adapters()
}

// admitted goes through a greeting by hand and returns the fabric's number of the session.
func admitted(t *testing.T, c *net.UDPConn, g cable.Greeting) uint64 {
	t.Helper()
	b := make([]byte, 1<<16)
	var cookie [16]byte
	for late := time.Now().Add(await.Limit); time.Now().Before(late); {
		_, _ = c.Write(g.Greet(cookie, nil))
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, err := c.Read(b)
		if err != nil {
			continue
		}
		switch {
		case n == 25 && b[0] == 11:
			copy(cookie[:], b[9:])
		case b[0] == 12:
			return binary.LittleEndian.Uint64(b[9:])
		}
	}
	t.Fatal("the adapter was not admitted")
	return 0
}

// BenchmarkUDP carries a batch of frames between two adapters over UDP, with the fabric's pump in between.
func BenchmarkUDP(b *testing.B) {
	for _, size := range []int{64, 1024, 4096} {
		b.Run(sizeName(size), func(b *testing.B) {
			g := newGround(b, 3, Options{})
			g.manage(2)
			at, _ := g.overUDP(anyPort(), nil)
			from, newsA := farAt(b, udpConfig(at, "node00000"))
			to, newsB := farAt(b, udpConfig(at, "node00001"))
			until(b, newsA, up(from))
			until(b, newsB, up(to))
			benchmarkLinks(b, from, to, size)
		})
	}
}
