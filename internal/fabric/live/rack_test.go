package live

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/service"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// ground is a star of adapters in a rack.
type ground struct {
	testing.TB
	*Rack
}

func newGround(t testing.TB, hosts int, o Options) *ground {
	t.Helper()
	top, err := topology.Star(hosts, topology.Rate{Width: mad.Width4x, Speed: mad.SpeedEDR})
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t, New(fabric.New(top, func() uint64 { return 1 << 63 }), o)}
	t.Cleanup(func() { g.Close() })
	return g
}

// plug plugs an adapter in at a host; news gets a value when there is news for it.
func (g *ground) plug(host int) (p *Port, news chan struct{}) {
	g.Helper()
	news = make(chan struct{}, 1)
	p, err := g.Plug(fabric.Place{Node: host, Port: 1}, func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		g.Fatal(err)
	}
	return p, news
}

// manage runs a subnet manager at a host until the test ends. Switches keep packets however long an adapter has not been
// given a processor, where by default they drop what has waited for a quarter of a second.
func (g *ground) manage(host int) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	limits := subnet.DefaultLimits()
	limits.PacketLife, limits.HOQLife, limits.LeafHOQLife = 20, 20, 20
	cfg := service.Config{Subnet: subnet.Config{Limits: &limits, Virtual: subnet.VirtualEnable}}
	go func() { done <- g.Manage(ctx, fabric.Place{Node: host, Port: 1}, cfg) }()
	g.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			g.Errorf("the manager ended with %v", err)
		}
	})
}

// until waits, at each piece of news, until so reports true.
func until(t testing.TB, news chan struct{}, so func() bool) {
	t.Helper()
	for late := time.After(await.Limit); !so(); {
		select {
		case <-news:
		case <-late:
			t.Fatal("the state that was waited for has not come")
		}
	}
}

func active(p *Port) func() bool { return func() bool { return p.Port().State == mad.PortActive } }

// pair returns two adapters whose ports a subnet manager has brought up.
func pair(t testing.TB, o Options) (g *ground, a, b *Port, news [2]chan struct{}) {
	g = newGround(t, 2, o)
	a, news[0] = g.plug(0)
	b, news[1] = g.plug(1)
	g.manage(0)
	until(t, news[0], active(a))
	until(t, news[1], active(b))
	return g, a, b, news
}

// packet returns a frame of a payload with a number in it.
func packet(from, to ib.LID, qp ib.QPN, payload []byte, number uint64) frame.Out {
	var o frame.Out
	o.Reset(nil)
	o.HeadStart -= ib.LRHLen
	o.HeadEnd += ib.BTHLen
	o.Payload, o.TailLen = payload, ib.ICRCLen
	if len(payload) >= 8 {
		binary.BigEndian.PutUint64(payload, number)
	}
	h := ib.LRH(o.Head[o.HeadStart:][:ib.LRHLen])
	h.SetNextHeader(ib.LNHLocal)
	h.SetDLID(to)
	h.SetSLID(from)
	h.SetPktLen(o.Len() / 4)
	ib.BTH(o.Head[frame.HeadRoom:][:ib.BTHLen]).Encode(ib.RCSendOnly, false, false, 0, ib.PKeyDefault, qp, 0)
	return o
}

func send(t testing.TB, p *Port, frames ...frame.Out) {
	t.Helper()
	for late := time.Now().Add(await.Limit); len(frames) > 0; {
		n, err := p.Send(frames)
		if err != nil {
			t.Fatal(err)
		}
		if frames = frames[n:]; n == 0 && time.Now().After(late) {
			t.Fatal("the port takes no frames")
		}
	}
}

// TestFrameArrives: the port is as the subnet manager set it, and a frame arrives as it was sent but for its lane.
func TestFrameArrives(t *testing.T) {
	for _, timing := range []bool{false, true} {
		_, a, b, news := pair(t, Options{Timing: timing})
		pa, pb := a.Port(), b.Port()
		if pa.LID == 0 || pa.LID == pb.LID || pa.SMLID != pa.LID || pb.SMLID != pa.LID || pa.PKeys[0] != ib.PKeyDefault ||
			pa.Speed != mad.SpeedEDR || pa.Width != mad.Width4x || pa.MTU != ib.MTU4096 || pa.Prefix != 0xfe80<<48 || pa.GUIDs[0] == 0 {
			t.Errorf("the ports are\n%+v\n%+v", pa, pb)
		}
		o := packet(pa.LID, pb.LID, 5, bytes.Repeat([]byte{7}, 1000), 9)
		send(t, a, o)
		var in [4]frame.In
		n := 0
		until(t, news[1], func() bool {
			var err error
			if n, err = b.Receive(in[:]); err != nil {
				t.Fatal(err)
			}
			return n > 0
		})
		want := append(append(bytes.Clone(o.Head[o.HeadStart:o.HeadEnd]), o.Payload...), o.Tail[:4]...)
		if n != 1 || !in[0].Raw || !bytes.Equal(in[0].Data, want) {
			t.Errorf("%d frames arrived, the first % x", n, in[0].Data[:24])
		}
		if s := b.Stats(); s.ReceivedPackets != 1 || s.ReceivedBytes != uint64(len(want)) || a.Stats().SentPackets != 1 {
			t.Errorf("the receiver counts %+v, want one packet", s)
		}
	}
}

// TestLoopback: a packet sent to the port's own LID arrives there.
func TestLoopback(t *testing.T) {
	_, a, _, _ := pair(t, Options{})
	own := a.Port().LID
	send(t, a, packet(own, own, 5, make([]byte, 8), 1))
	var in [4]frame.In
	if n, err := a.Receive(in[:]); n != 1 || err != nil {
		t.Errorf("%d frames arrived (%v), want 1", n, err)
	}
}

// TestBackPressure: a receiver that does not receive stops its sender, and nothing is lost.
func TestBackPressure(t *testing.T) {
	_, a, b, _ := pair(t, Options{})
	from, to := a.Port().LID, b.Port().LID
	sent := uint64(0)
	for {
		n, err := a.Send([]frame.Out{packet(from, to, 5, make([]byte, 4096), sent)})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if sent++; sent > 10_000 {
			t.Fatal("the sender is never stopped")
		}
	}
	in := make([]frame.In, 64)
	for want := uint64(0); want < sent; {
		n, err := b.Receive(in)
		if n == 0 || err != nil {
			t.Fatalf("%d of %d frames arrived (%v)", want, sent, err)
		}
		for i := range in[:n] {
			if got := binary.BigEndian.Uint64(in[i].Data[ib.LRHLen+ib.BTHLen:]); got != want {
				t.Fatalf("frame %d arrived in place of %d", got, want)
			}
			want++
		}
	}
	if n, _ := a.Send([]frame.Out{packet(from, to, 5, make([]byte, 8), 0)}); n != 1 {
		t.Error("after all was received there is still no room")
	}
}

// TestRoomIsTold: an adapter that could not send is notified once when there is room, and not before.
func TestRoomIsTold(t *testing.T) {
	_, a, b, news := pair(t, Options{})
	o := packet(a.Port().LID, b.Port().LID, 5, make([]byte, 4096), 0)
	told := func() bool {
		select {
		case <-news[0]:
			return true
		default:
			return false
		}
	}
	in := make([]frame.In, 64)
	for range 3 {
		for {
			if n, err := a.Send([]frame.Out{o}); err != nil {
				t.Fatal(err)
			} else if n == 0 {
				break
			}
		}
		told()
		for range 5 {
			if n, err := a.Receive(in); n != 0 || err != nil {
				t.Fatalf("received %d (%v), want nothing", n, err)
			}
			if n, err := a.Send([]frame.Out{o}); n != 0 || err != nil {
				t.Fatalf("sent %d (%v), though there is no room", n, err)
			}
			if told() {
				t.Fatal("the sender was notified of room where there is none")
			}
		}
		for !told() {
			if n, err := b.Receive(in); n == 0 || err != nil {
				t.Fatalf("all frames were received (%v) and the sender was not notified", err)
			}
		}
		if n, err := a.Send([]frame.Out{o}); n != 1 || err != nil {
			t.Fatalf("sent %d (%v) after the notification, want 1", n, err)
		}
	}
}

// TestAdapterLeaves: a port without its adapter is down, as is the other end of its link; with another adapter it
// comes up again.
func TestAdapterLeaves(t *testing.T) {
	g, a, b, news := pair(t, Options{})
	at := fabric.Place{Node: 1, Port: 1}
	if _, err := g.Plug(at, nil); !errors.Is(err, errTaken) {
		t.Errorf("plugging in twice: error %v, want %v", err, errTaken)
	}
	b.Close()
	var in [1]frame.In
	if _, err := b.Receive(in[:]); !errors.Is(err, net.ErrClosed) {
		t.Errorf("receiving on a closed port: %v, want %v", err, net.ErrClosed)
	}
	if b.Port().State != mad.PortDown {
		t.Errorf("the closed port is in state %v, want down", b.Port().State)
	}
	state := func(at fabric.Place) (s mad.PortState) {
		g.Do(func(_ clock.Time, f *fabric.Fabric) { s = f.PortInfo(at).PortState })
		return s
	}
	if state(at) != mad.PortDown || state(fabric.Place{Node: 2, Port: 2}) != mad.PortDown {
		t.Error("the link of a closed port is still up")
	}
	before := a.Changes()
	if b, news[1] = g.plug(1); state(at) == mad.PortDown {
		t.Error("the link is still down after another adapter was plugged in")
	}
	until(t, news[1], active(b))
	if a.Changes() != before {
		t.Error("the other port has changed")
	}
}

// TestViolations: a packet that an adapter refuses for its P_Key or Q_Key is reported to the subnet manager by trap
// 257 or 258.
func TestViolations(t *testing.T) {
	g, a, _, _ := pair(t, Options{})
	traps := make(chan uint16, 16)
	g.mu.Lock()
	g.takers = append([]Taker{takerFunc(func(p *fabric.Packet) {
		if p.MAD[3] == mad.MethodTrap {
			traps <- binary.BigEndian.Uint16(p.MAD[64+4:])
		}
	})}, g.takers...)
	g.mu.Unlock()
	for kind, want := range map[link.ViolationKind]uint16{link.PKeyViolation: mad.TrapBadPKey, link.QKeyViolation: mad.TrapBadQKey} {
		a.Violation(link.Violation{Kind: kind, Key: 5, SLID: 2, DLID: 1})
		for got := uint16(0); got != want; {
			select {
			case got = <-traps:
			case <-time.After(await.Limit):
				t.Fatalf("trap %d was not sent", want)
			}
		}
	}
}

// takerFunc sees datagrams and takes none.
type takerFunc func(*fabric.Packet)

func (f takerFunc) Take(_ clock.Time, _ fabric.Place, p *fabric.Packet) bool {
	f(p)
	return false
}

// BenchmarkPort carries a batch of frames between two adapters in one process.
func BenchmarkPort(b *testing.B) {
	for _, size := range []int{64, 1024, 4096} {
		b.Run(sizeName(size), func(b *testing.B) {
			_, from, to, _ := pair(b, Options{})
			frames, in := make([]frame.Out, 32), make([]frame.In, 64)
			for i := range frames {
				frames[i] = packet(from.Port().LID, to.Port().LID, 5, make([]byte, size), 0)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += len(frames) {
				send(b, from, frames...)
				for got := 0; got < len(frames); {
					n, err := to.Receive(in)
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
		})
	}
}

func sizeName(n int) string {
	if n < 1024 {
		return "64"
	}
	return map[int]string{1024: "1K", 4096: "4K"}[n]
}

// TestManagerInSwitch: a subnet manager can run at a switch, where no adapter that leaves takes it away.
func TestManagerInSwitch(t *testing.T) {
	g := newGround(t, 2, Options{})
	at := fabric.Place{Node: 2, Port: 0}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Manage(ctx, at, service.Config{}) }()
	defer func() { stop(); <-done }()
	for range 3 {
		a, news := g.plug(0)
		until(t, news, active(a))
		a.Close()
	}
}

// TestUnplugged: a port that is unplugged is down and still belongs to its adapter; plugged in again it comes up.
func TestUnplugged(t *testing.T) {
	g, a, b, news := pair(t, Options{})
	b.SetPlugged(false)
	if s := b.Port().State; s != mad.PortDown {
		t.Errorf("the unplugged port is in state %v, want down", s)
	}
	if _, err := g.Plug(fabric.Place{Node: 1, Port: 1}, nil); !errors.Is(err, errTaken) {
		t.Errorf("taking the unplugged port: error %v, want %v", err, errTaken)
	}
	var in [1]frame.In
	if n, err := b.Receive(in[:]); n != 0 || err != nil {
		t.Errorf("received %d (%v) while unplugged, want nothing", n, err)
	}
	send(t, a, packet(a.Port().LID, b.Port().LID, 5, make([]byte, 8), 1))
	b.SetPlugged(true)
	until(t, news[1], active(b))
	if n, err := b.Receive(in[:]); n != 0 || err != nil {
		t.Errorf("received %d (%v) of what was sent while unplugged, want nothing", n, err)
	}
}

// TestUnlinkUnderTraffic: a cable pulled out and put back under traffic loses frames and nothing else: what arrives
// is in order, and in the end everything arrives again.
func TestUnlinkUnderTraffic(t *testing.T) {
	t.Parallel()
	g, a, b, news := pair(t, Options{})
	from, to := a.Port().LID, b.Port().LID
	in := make([]frame.In, 64)
	next := uint64(0) // the lowest number that may arrive
	receive := func() (got uint64) {
		t.Helper()
		n, err := b.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in[:n] {
			number := binary.BigEndian.Uint64(in[i].Data[ib.LRHLen+ib.BTHLen:])
			if number < next {
				t.Fatalf("frame %d arrived, want %d or later", number, next)
			}
			next = number + 1
		}
		return uint64(n)
	}
	sent := uint64(0)
	flood := func(frames int) {
		t.Helper()
		for range frames {
			n, err := a.Send([]frame.Out{packet(from, to, 5, make([]byte, 256), sent)})
			if err != nil {
				t.Fatal(err)
			}
			sent += uint64(n)
			if n == 0 {
				receive()
			}
		}
	}
	for range 5 {
		flood(500)
		g.Do(func(now clock.Time, f *fabric.Fabric) { f.Unlink(now, fabric.Place{Node: 1, Port: 1}) })
		flood(100)
		if b.Port().State != mad.PortDown {
			t.Errorf("the port without its cable is in state %v, want down", b.Port().State)
		}
		g.Do(func(now clock.Time, f *fabric.Fabric) { f.Relink(now, fabric.Place{Node: 1, Port: 1}) })
		until(t, news[1], active(b))
	}
	for receive() > 0 {
	}
	before := sent
	flood(100)
	for receive() > 0 {
	}
	if next != before+100 {
		t.Errorf("the last frame that arrived is %d of %d", next, before+100)
	}
}
