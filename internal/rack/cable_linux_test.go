package rack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/cable"
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

// far is an adapter's link, as of another process.
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
		n, err := unix.Poll(p, int(patience/time.Millisecond))
		if n == 1 {
			return
		}
		if err != unix.EINTR {
			t.Fatal("nothing comes", err)
		}
	}
}

// farPair is two adapters of other processes, on a fabric with a subnet manager.
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

// Across processes too the port is as the subnet manager set it and frames arrive as they were, in their order, while each
// side is waited for: no ring, no queue overflows.
func TestFramesCrossProcesses(t *testing.T) {
	for _, vcrc := range []bool{false, true} {
		_, a, b := farPair(t, vcrc)
		if pa, pb := a.Port(), b.Port(); pa.LID == 0 || pa.LID == pb.LID || pa.Fabric == nil || pa.Fabric != pb.Fabric || pa.Speed != mad.SpeedEDR ||
			pa.PKeys[0] != ib.PKeyDefault || pa.GUIDs[0] == 0 || pa.NodeGUID == 0 {
			t.Errorf("%+v\n%+v", pa, pb)
		}
		crosses(t, a, b, 5000)
	}
}

// crosses sends frames from one link to the other, which must all come, as they were and in their order.
func crosses(t testing.TB, a, b *cable.Link, count uint64) {
	t.Helper()
	from, to := a.Port().LID, b.Port().LID
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		for i := uint64(0); i < count; {
			n, err := a.Send([]frame.Out{packet(from, to, 5, bytes.Repeat([]byte{byte(i)}, 8+4*int(i%1000)), i)})
			if err != nil {
				return
			}
			if i += uint64(n); n == 0 {
				time.Sleep(50 * time.Microsecond)
			}
		}
	}()
	in := make([]frame.In, 64)
	late := time.Now().Add(patience)
	for want := uint64(0); want < count; {
		n, err := b.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			waitFor(t, b)
			if time.Now().After(late) {
				t.Fatalf("%d of %d have come: %+v, %+v", want, count, a.Stats(), b.Stats())
			}
		}
		for i := range in[:n] {
			d := in[i].Data[ib.LRHLen+ib.BTHLen:]
			if got := binary.BigEndian.Uint64(d); got != want || len(d) != 12+4*int(want%1000) {
				t.Fatalf("%d in place of %d, %d bytes", got, want, len(d))
			}
			want++
		}
	}
}

// waitFor waits for the link's descriptor, or a moment where it has none.
func waitFor(t testing.TB, l *cable.Link) {
	t.Helper()
	p := []unix.PollFd{{Fd: int32(l.Descriptors()[0]), Events: unix.POLLIN}}
	_, _ = unix.Poll(p, 1)
}

// Without a fabric the port is down; when the fabric comes, and comes again after its end, the link is plugged in by itself.
func TestFabricComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cables")
	a, news := far(t, path, "", false)
	if s := a.Port().State; s != mad.PortDown {
		t.Error(s)
	}
	if n, err := a.Send([]frame.Out{packet(1, 2, 5, nil, 0)}); n != 1 || err != nil {
		t.Error(n, err)
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

// An adapter that goes without a word leaves a port that is down, and the place is free again.
func TestFarAdapterLeaves(t *testing.T) {
	g, a, _ := farPair(t, false)
	a.Close()
	deadline := time.Now().Add(patience)
	for {
		var state mad.PortState
		g.Do(func(_ clock.Time, f *fabric.Fabric) { state = f.PortInfo(fabric.Place{Node: 0, Port: 1}).PortState })
		if state == mad.PortDown {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(state)
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := a.Receive(make([]frame.In, 1)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// A link is pulled out and plugged in again by its adapter.
func TestFarUnplugged(t *testing.T) {
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

// hostile is a bare connection that has been let in.
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
		t.Fatal(m, err)
	}
	fds, err := unix.ParseUnixRights(&m[0])
	if err != nil || len(fds) != 2 {
		t.Fatal(fds, err)
	}
	if mem, err = unix.Mmap(fds[0], 0, cable.MemoryLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem); unix.Close(fds[1]) })
	if err := unix.Ftruncate(fds[0], 4096); err == nil {
		t.Error("the memory can be taken away under the fabric")
	}
	unix.Close(fds[0])
	return conn, mem, fds[1]
}

// Whatever an adapter writes where it can, the others go on, and it is cut off where it breaks the rules.
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
			t.Fatal(what, n, err)
		}
		for in := make([]frame.In, 1); ; readable(t, b) {
			if n, err := b.Receive(in); n == 1 || err != nil {
				if err != nil {
					t.Fatal(what, err)
				}
				return
			}
		}
	}
	ended := func(what string, c *net.UnixConn) {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(patience))
		for m := make([]byte, cable.MaxMessage); ; {
			if n, err := c.Read(m); err != nil || n == 0 {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: it goes on", what)
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
	c, mem, bell := hostile(t, socket, "node00002") // frames that are none: they are lost, nothing else
	p := cable.NewProducer(mem, true, false)
	for i := range 200 {
		p.Put(bytes.Repeat([]byte{byte(i)}, i*21), nil, nil)
	}
	p.Publish()
	cable.Ring(bell)
	works("frames that are none")
	_ = c
}

// waitFree waits until a node's port can be had again.
func waitFree(t *testing.T, r *Rack, node string) {
	t.Helper()
	at, err := r.Find(node, 0)
	if err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		free := r.ports[at] == nil
		r.mu.Unlock()
		if free {
			return
		}
		if time.Now().After(late) {
			t.Fatal("the port is still taken")
		}
	}
}

// BenchmarkCable is a batch of frames between two adapters whose frames lie in shared memory, with the fabric's pump between them.
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
	for got, late := 0, time.Now().Add(patience); got < b.N && time.Now().Before(late); {
		n, err := to.Receive(in)
		if err != nil {
			b.Fatal(err)
		}
		if got += n; n == 0 {
			waitFor(b, to)
		}
	}
}
