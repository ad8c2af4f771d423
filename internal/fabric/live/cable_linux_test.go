package live

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/cable"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
	"golang.org/x/sys/unix"
)

// outside serves a ground at a socket, for links as other processes have them.
func (g *ground) outside(path string) (socket string, stop func()) {
	g.Helper()
	if path == "" {
		path = filepath.Join(g.TempDir(), "cables")
	}
	l, err := Listen(path, 0o600)
	if err != nil {
		g.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, l) }()
	ended := false
	stop = func() {
		if cancel(); !ended {
			ended = true
			if err := <-done; err != nil {
				g.Errorf("serving ended with %v", err)
			}
		}
	}
	g.Cleanup(stop)
	return path, stop
}

// far returns an adapter's link as in another process, and the channel of its news.
func far(t testing.TB, socket, node string, vcrc bool) (*cable.Link, chan struct{}) {
	t.Helper()
	return farAt(t, cable.Config{Hello: cable.Hello{Node: node, VCRC: vcrc, Program: "test"}, Socket: socket})
}

func farAt(t testing.TB, cfg cable.Config) (*cable.Link, chan struct{}) {
	t.Helper()
	news := make(chan struct{}, 1)
	cfg.Notify = func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	l, err := cable.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, news
}

func up(l *cable.Link) func() bool { return func() bool { return l.Port().State == mad.PortActive } }

// readable waits for the link's descriptor.
func readable(t testing.TB, l *cable.Link) {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(l.Descriptors()[0]), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(p, int(await.Limit/time.Millisecond))
		if n == 1 {
			return
		}
		if err != unix.EINTR {
			t.Fatalf("the link's descriptor does not become readable: %v", err)
		}
	}
}

// farPair returns two adapters as in other processes, on a fabric with a subnet manager.
func farPair(t testing.TB, vcrc bool) (g *ground, a, b *cable.Link) {
	g = newGround(t, 3, Options{})
	g.manage(2)
	socket, _ := g.outside("")
	a, newsA := far(t, socket, "node00000", vcrc)
	b, newsB := far(t, socket, "node00001", vcrc)
	until(t, newsA, up(a))
	until(t, newsB, up(b))
	return g, a, b
}

// TestFramesCrossProcesses: across processes too the port is as the subnet manager set it, and frames arrive
// unchanged and in order. Each side waits for the other: no ring and no queue overflows.
func TestFramesCrossProcesses(t *testing.T) {
	for _, vcrc := range []bool{false, true} {
		_, a, b := farPair(t, vcrc)
		if pa, pb := a.Port(), b.Port(); pa.LID == 0 || pa.LID == pb.LID || pa.Fabric == nil || pa.Fabric != pb.Fabric ||
			pa.Speed != mad.SpeedEDR ||
			pa.PKeys[0] != ib.PKeyDefault || pa.GUIDs[0] == 0 || pa.NodeGUID == 0 {
			t.Errorf("the ports are\n%+v\n%+v", pa, pb)
		}
		crosses(t, a, b, 5000)
	}
}

// crosses sends frames from one link to the other and checks that all arrive unchanged and in order.
func crosses(t testing.TB, a, b *cable.Link, count uint64) {
	t.Helper()
	from, to := a.Port().LID, b.Port().LID
	var over atomic.Bool // of a test that fails nobody may take what is sent
	done := make(chan struct{})
	defer func() { over.Store(true); <-done }()
	go func() {
		defer close(done)
		var none [1]frame.In
		for i := uint64(0); i < count && !over.Load(); {
			n, err := a.Send([]frame.Out{packet(from, to, 5, bytes.Repeat([]byte{byte(i)}, 8+4*int(i%1000)), i)})
			if err != nil {
				return
			}
			if i += uint64(n); n == 0 {
				_, _ = a.Receive(none[:]) // for the credits
				time.Sleep(50 * time.Microsecond)
			}
		}
	}()
	in := make([]frame.In, 64)
	late := time.Now().Add(await.Limit)
	for want := uint64(0); want < count; {
		n, err := b.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			waitFor(t, b)
			if time.Now().After(late) {
				t.Fatalf("%d of %d frames have arrived: %+v, %+v", want, count, a.Stats(), b.Stats())
			}
		}
		for i := range in[:n] {
			d := in[i].Data[ib.LRHLen+ib.BTHLen:]
			if got := binary.BigEndian.Uint64(d); got != want || len(d) != 12+4*int(want%1000) {
				t.Fatalf("frame %d arrived in place of %d, with %d bytes", got, want, len(d))
			}
			want++
		}
	}
}

// waitFor waits a moment for the link's descriptor.
func waitFor(t testing.TB, l *cable.Link) {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(l.Descriptors()[0]), Events: unix.POLLIN}}
	_, _ = unix.Poll(p, 1)
}

// TestFabricComesAndGoes: without a fabric the port is down. When the fabric starts, and starts again, the link
// connects by itself.
func TestFabricComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cables")
	a, news := far(t, path, "", false)
	if s := a.Port().State; s != mad.PortDown {
		t.Errorf("without a fabric the port is in state %v, want down", s)
	}
	if n, err := a.Send([]frame.Out{packet(1, 2, 5, nil, 0)}); n != 1 || err != nil {
		t.Errorf("sending without a fabric: took %d, %v; want 1 and no error", n, err)
	}
	for range 2 {
		g := newGround(t, 2, Options{})
		g.manage(1)
		_, stop := g.outside(path)
		until(t, news, up(a))
		stop()
		until(t, news, func() bool { return a.Port().State == mad.PortDown })
	}
}

// TestFarAdapterLeaves: if an adapter's process ends without notice, its port goes down and the place is free again.
func TestFarAdapterLeaves(t *testing.T) {
	t.Parallel()
	g, a, _ := farPair(t, false)
	a.Close()
	await.Eventually(t, "the port of an adapter that has left is down", func() bool {
		var state mad.PortState
		g.Do(func(_ clock.Time, f *fabric.Fabric) { state = f.PortInfo(fabric.Place{Node: 0, Port: 1}).PortState })
		return state == mad.PortDown
	})
	if _, err := a.Receive(make([]frame.In, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("receiving on a closed link: %v, want %v", err, net.ErrClosed)
	}
}

// TestFarUnplugged: an adapter can pull its link out and plug it in again.
func TestFarUnplugged(t *testing.T) {
	t.Parallel()
	g := newGround(t, 2, Options{})
	g.manage(1)
	socket, _ := g.outside("")
	a, news := far(t, socket, "node00000", false)
	for range 3 {
		until(t, news, up(a))
		a.SetPlugged(false)
		until(t, news, func() bool { return a.Port().State == mad.PortDown })
		waitFree(t, g.Rack, "node00000")
		a.SetPlugged(true)
	}
	until(t, news, up(a))
}

// hostile returns a bare connection that has been admitted, its memory and its bell.
func hostile(t *testing.T, socket, node string) (conn *net.UnixConn, mem []byte, bell int) {
	t.Helper()
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	h := cable.Hello{Node: node}
	if _, err := conn.Write(h.Append(nil)); err != nil {
		t.Fatal(err)
	}
	b, oob := make([]byte, cable.MaxMessage), make([]byte, 128)
	_, n, _, _, err := conn.ReadMsgUnix(b, oob)
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(m) != 1 {
		t.Fatalf("the answer has %d parts (%v), want 1", len(m), err)
	}
	fds, err := unix.ParseUnixRights(&m[0])
	if err != nil || len(fds) != 2 {
		t.Fatalf("the answer has descriptors %v (%v), want 2", fds, err)
	}
	if mem, err = unix.Mmap(fds[0], 0, cable.MemoryLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem); unix.Close(fds[1]) })
	if err := unix.Ftruncate(fds[0], 4096); err == nil {
		t.Error("the adapter could shrink the memory that the fabric uses")
	}
	unix.Close(fds[0])
	return conn, mem, fds[1]
}

// TestHostileAdapter: whatever an adapter writes where it can, the others continue, and it is disconnected if it
// breaks the rules.
func TestHostileAdapter(t *testing.T) {
	g := newGround(t, 4, Options{})
	g.manage(3)
	socket, _ := g.outside("")
	a, news := far(t, socket, "node00000", false)
	b, newsB := far(t, socket, "node00001", false)
	until(t, news, up(a))
	until(t, newsB, up(b))
	works := func(what string) {
		t.Helper()
		if n, err := a.Send([]frame.Out{packet(a.Port().LID, b.Port().LID, 5, make([]byte, 8), 1)}); n != 1 || err != nil {
			t.Fatalf("%s: sending took %d frames (%v), want 1", what, n, err)
		}
		for in := make([]frame.In, 1); ; readable(t, b) {
			if n, err := b.Receive(in); n == 1 || err != nil {
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				return
			}
		}
	}
	ended := func(what string, c *net.UnixConn) {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(await.Limit))
		for m := make([]byte, cable.MaxMessage); ; {
			if n, err := c.Read(m); err != nil || n == 0 {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: the adapter was not disconnected", what)
				}
				return
			}
		}
	}
	word := binary.LittleEndian
	for what, do := range map[string]func(mem []byte){
		"more frames than there are slots":  func(mem []byte) { word.PutUint32(mem, 1000) },
		"a frame longer than its slot":      func(mem []byte) { word.PutUint32(mem[256:], 1<<15); word.PutUint32(mem, 1) },
		"everything in the memory is noise": func(mem []byte) { copy(mem, bytes.Repeat([]byte{0x5a}, len(mem))) },
	} {
		c, mem, bell := hostile(t, socket, "node00002")
		do(mem)
		cable.Ring(bell)
		ended(what, c)
		works(what)
		waitFree(t, g.Rack, "node00002")
	}
	c, _, bell := hostile(t, socket, "node00002")
	for range 1000 {
		cable.Ring(bell)
	}
	if _, err := c.Write([]byte{9, 9, 9}); err != nil {
		t.Error(err)
	}
	ended("a message of no kind", c)
	works("a message of no kind")
	waitFree(t, g.Rack, "node00002")
	c, mem, bell := hostile(t, socket, "node00002") // invalid frames: they are lost, and nothing else
	p := cable.NewProducer(mem, true, false)
	for i := range 200 {
		p.Put(bytes.Repeat([]byte{byte(i)}, i*21), nil, nil)
	}
	p.Publish()
	cable.Ring(bell)
	works("frames that are none")
	_ = c
}

// waitFree waits until a node's port can be taken again.
func waitFree(t *testing.T, r *Rack, node string) {
	t.Helper()
	at, err := r.Find(node, 0)
	if err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the port is free", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.ports[at] == nil
	})
}

// BenchmarkCable carries a batch of frames between two adapters through shared memory, with the fabric's pump in
// between.
func BenchmarkCable(b *testing.B) {
	for _, vcrc := range []bool{false, true} {
		for _, size := range []int{64, 1024, 4096} {
			name := sizeName(size)
			if vcrc {
				name += "/VCRC"
			}
			b.Run(name, func(b *testing.B) {
				_, from, to := farPair(b, vcrc)
				benchmarkLinks(b, from, to, size)
			})
		}
	}
}

func benchmarkLinks(b *testing.B, from, to *cable.Link, size int) {
	frames, in := make([]frame.Out, 32), make([]frame.In, 64)
	for i := range frames {
		frames[i] = packet(from.Port().LID, to.Port().LID, 5, make([]byte, size), 0)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		for done := 0; done < b.N; {
			n, err := from.Send(frames[:min(len(frames), b.N-done)])
			if err != nil {
				return
			}
			if done += n; n == 0 {
				time.Sleep(20 * time.Microsecond)
				_, _ = from.Receive(make([]frame.In, 1))
			}
		}
	}()
	for got, late := 0, time.Now().Add(await.Limit); got < b.N && time.Now().Before(late); {
		n, err := to.Receive(in)
		if err != nil {
			b.Fatal(err)
		}
		if got += n; n == 0 {
			waitFor(b, to)
		}
	}
}
