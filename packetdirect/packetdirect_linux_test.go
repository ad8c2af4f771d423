package packetdirect_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/packetdirect"
	"github.com/softvpi/softvpi/verbs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var ok, wantErr = testbed.OK, testbed.WantErr

func must[T any](v T, err error) func(testing.TB) T { return testbed.Must(v, err) }

const etherType = 0x88b5 // for local experiments (IEEE 802)

func mac(last byte) [6]byte { return [6]byte{2, 0, 0, 0, 8, last} }

func addr(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 81, 0, last}) }

// wires returns the paths of the two ends of a wire of datagram sockets.
func wires(t testing.TB) (w [2]string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pd") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return [2]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
}

// plugged returns the paths of a wire with somebody at its other end, who neither listens nor answers.
func plugged(t testing.TB) [2]string {
	t.Helper()
	w := wires(t)
	far := must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: w[1], Net: "unixgram"}))(t)
	t.Cleanup(func() { _ = far.Close() })
	return w
}

// driver starts a driver with an adapter of this MAC and address at an end of a wire, and returns its socket.
func driver(t testing.TB, w [2]string, last byte) string {
	t.Helper()
	s := link.Station{MAC: mac(last), Prefixes: []netip.Prefix{netip.PrefixFrom(addr(last), 24)}}
	l := must(datagram.Open(datagram.Config{Local: w[0], Remote: w[1], MTU: 1500, Stations: []link.Station{s},
		Patience: await.Limit}))(t) // the other end may be without a processor for long
	return testbed.DriverOf(t, device.AdapterConfig{Name: "port", Addr: addr(last), MAC: s.MAC, Link: l})
}

// attached opens the adapter of a driver.
func attached(t testing.TB, socket string) *packetdirect.Adapter {
	t.Helper()
	a := must(packetdirect.Open(testbed.Context(t), packetdirect.Options{Socket: socket}))(t)
	t.Cleanup(func() { ok(t, a.Close()) })
	return a
}

// embedded opens an adapter of the test's own at an end of a wire.
func embedded(t testing.TB, w [2]string, last byte) *packetdirect.Adapter {
	t.Helper()
	own := verbs.AdapterConfig{Addr: addr(last), Ethernet: &verbs.Ethernet{Datagram: w[0], Peer: w[1], MAC: mac(last), Prefix: 24}}
	a := must(packetdirect.Open(testbed.Context(t), packetdirect.Options{Own: &own}))(t)
	t.Cleanup(func() { ok(t, a.Close()) })
	return a
}

// each runs a test between two programs of one driver, of two, and between embedded adapters at two ends of a wire.
func each(t *testing.T, test func(t *testing.T, from, to *packetdirect.Adapter)) {
	t.Run("one driver", func(t *testing.T) {
		socket := driver(t, plugged(t), 1)
		test(t, attached(t, socket), attached(t, socket))
	})
	t.Run("two drivers", func(t *testing.T) {
		w := wires(t)
		test(t, attached(t, driver(t, w, 1)), attached(t, driver(t, [2]string{w[1], w[0]}, 2)))
	})
	t.Run("embedded", func(t *testing.T) {
		w := wires(t)
		test(t, embedded(t, w, 1), embedded(t, [2]string{w[1], w[0]}, 2))
	})
}

// receiver is a receive queue with as many buffers as it takes.
type receiver struct {
	*packetdirect.ReceiveQueue
	t    testing.TB
	pool *packetdirect.Pool
}

func receives(t testing.TB, a *packetdirect.Adapter, n int, filters ...packetdirect.Filter) *receiver {
	t.Helper()
	q := must(a.NewReceiveQueue(packetdirect.QueueConfig{Depth: n}))(t)
	pool := must(a.NewPool(n, 0))(t)
	if posted, _, err := q.PostAndDrain(pool.Buffers(), nil); posted != n || err != nil {
		t.Fatalf("%d of %d buffers are posted: %v", posted, n, err)
	}
	for _, f := range filters {
		must(q.AddFilter(f))(t)
	}
	return &receiver{q, t, pool}
}

// gets waits for these frames, in order.
func (r *receiver) gets(frames ...[]byte) {
	r.t.Helper()
	some := make([]*packetdirect.Buffer, 7)
	for len(frames) > 0 {
		ok(r.t, r.Wait(testbed.Context(r.t)))
		_, n, err := r.PostAndDrain(nil, some)
		ok(r.t, err)
		for _, b := range some[:n] {
			if len(frames) == 0 || !bytes.Equal(b.Bytes(), frames[0]) {
				r.t.Fatalf("got a frame of %d bytes: %.20x, %d are still to come", len(b.Bytes()), b.Bytes(), len(frames))
			}
			frames = frames[1:]
		}
		_, _, err = r.PostAndDrain(some[:n], nil)
		ok(r.t, err)
	}
}

// nothing checks that no frame is there.
func (r *receiver) nothing() {
	r.t.Helper()
	some := make([]*packetdirect.Buffer, 1)
	if _, n, err := r.PostAndDrain(nil, some); n > 0 || err != nil {
		r.t.Fatalf("a frame of %d bytes is there (%v)", len(some[0].Bytes()), err)
	}
}

// sends sends frames, and waits until they have left.
func sends(t testing.TB, a *packetdirect.Adapter, frames ...[]byte) {
	t.Helper()
	q := must(a.NewTransmitQueue(packetdirect.QueueConfig{Depth: len(frames)}))(t)
	pool := must(a.NewPool(len(frames), 0))(t)
	for i, b := range pool.Buffers() {
		b.Set(frames[i])
	}
	transmit(t, q, pool.Buffers())
	ok(t, q.Close())
	ok(t, pool.Close())
}

func transmit(t testing.TB, q *packetdirect.TransmitQueue, frames []*packetdirect.Buffer) {
	t.Helper()
	posted, _, err := q.PostAndDrain(frames, nil)
	ok(t, err)
	if posted != len(frames) {
		t.Fatalf("%d of %d frames are posted", posted, len(frames))
	}
	for done := 0; done < posted; {
		ok(t, q.Wait(testbed.Context(t)))
		_, n, err := q.PostAndDrain(nil, make([]*packetdirect.Buffer, 5))
		ok(t, err)
		done += n
	}
}

// frame returns a frame of n bytes.
func frame(to, from [6]byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * n)
	}
	copy(b, to[:])
	copy(b[6:], from[:])
	binary.BigEndian.PutUint16(b[12:], etherType)
	return b
}

// TestFrames: frames of every length arrive whole and in order, in bursts that are larger than what is posted in one piece; a
// short one is filled up. Both queues count them.
func TestFrames(t *testing.T) {
	each(t, func(t *testing.T, from, to *packetdirect.Adapter) {
		rx := receives(t, to, 256, packetdirect.Filter{Dst: to.MAC(), EtherType: etherType})
		if to.LongestFrame() != 1518 {
			t.Fatalf("the longest frame has %d bytes, want those of MTU 1500, a header and a tag", to.LongestFrame())
		}
		var all [][]byte
		bytes := uint64(0)
		for i := range 150 {
			n := 60 + i*9
			if i == 149 {
				n = to.LongestFrame()
			}
			all = append(all, frame(to.MAC(), from.MAC(), n))
			bytes += uint64(n)
		}
		// An embedded adapter loses frames when the other end takes none for 100 ms, which it may be without a processor; as many as a
		// socket has room for wait however long.
		burst := len(all)
		if strings.HasSuffix(t.Name(), "/embedded") {
			burst = 8
		}
		for some := range slices.Chunk(all, burst) {
			sends(t, from, some...)
			rx.gets(some...)
		}
		if c := rx.Counters(); c.Frames != 150 || c.Bytes != bytes || c.Errors != 0 {
			t.Errorf("the receive queue counts %+v, want 150 frames and %d bytes", c, bytes)
		}
		sends(t, from, frame(to.MAC(), from.MAC(), 14))
		rx.gets(append(frame(to.MAC(), from.MAC(), 14), make([]byte, 46)...))
	})
}

// TestChecksums: a queue with Checksums fills in those of a datagram in what leaves, and the receiver is told that they are right.
func TestChecksums(t *testing.T) {
	each(t, func(t *testing.T, from, to *packetdirect.Adapter) {
		rx := receives(t, to, 8, packetdirect.Filter{Dst: to.MAC()})
		f := frame(to.MAC(), from.MAC(), 200)
		copy(f[12:], []byte{8, 0, 0x45, 0, 0, 186, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 7, 0, 166})
		pool := must(from.NewPool(1, 0))(t).Buffers()
		pool[0].Set(f)
		for _, with := range []bool{false, true} {
			transmit(t, must(from.NewTransmitQueue(packetdirect.QueueConfig{Checksums: with}))(t), pool)
			ok(t, rx.Wait(testbed.Context(t)))
			some := make([]*packetdirect.Buffer, 1)
			_, n, err := rx.PostAndDrain(nil, some)
			ok(t, err)
			if got := some[0]; n != 1 || got.GoodChecksums() != with || bytes.Equal(got.Bytes(), f) == with {
				t.Errorf("Checksums is %t: good is %t, %x", with, got.GoodChecksums(), got.Bytes()[:42])
			}
		}
		if !bytes.Equal(pool[0].Bytes(), f) {
			t.Error("the buffer has changed")
		}
	})
}

// TestForward: a buffer that was received is sent as it is from another queue of the adapter, and comes back to the first queue.
func TestForward(t *testing.T) {
	each(t, func(t *testing.T, from, to *packetdirect.Adapter) {
		back := receives(t, from, 8, packetdirect.Filter{Dst: from.MAC(), EtherType: etherType + 1})
		rx := receives(t, to, 8, packetdirect.Filter{Dst: to.MAC(), EtherType: etherType})
		tx := must(to.NewTransmitQueue(packetdirect.QueueConfig{}))(t)
		f := frame(to.MAC(), from.MAC(), 300)
		sends(t, from, f, f, f)
		some, want := make([]*packetdirect.Buffer, 8), frame(from.MAC(), to.MAC(), 300)
		want[13]++
		for got := 0; got < 3; {
			ok(t, rx.Wait(testbed.Context(t)))
			_, n, err := rx.PostAndDrain(nil, some)
			ok(t, err)
			for _, b := range some[:n] {
				copy(b.Bytes(), want[:14])
			}
			transmit(t, tx, some[:n])
			_, _, err = rx.PostAndDrain(some[:n], nil)
			ok(t, err)
			got += n
		}
		back.gets(want, want, want)
	})
}

// TestLost: frames for which there is no buffer are lost and counted by their filter, those that come later arrive; one that is
// too long for its buffer comes as an empty one.
func TestLost(t *testing.T) {
	socket := driver(t, plugged(t), 1)
	from, to := attached(t, socket), attached(t, socket)
	q := must(to.NewReceiveQueue(packetdirect.QueueConfig{}))(t)
	filter := must(q.AddFilter(packetdirect.Filter{Dst: to.MAC(), EtherType: etherType}))(t)
	f := frame(to.MAC(), from.MAC(), 100)
	sends(t, from, f, f, f)
	await.Eventually(t, "frames are counted as lost", func() bool { return must(filter.Counters())(t).Lost == 3 })
	pool := must(to.NewPool(2, 99))(t)
	if _, _, err := q.PostAndDrain(pool.Buffers(), nil); err != nil {
		t.Fatal(err)
	}
	rx := &receiver{q, t, pool}
	short := frame(to.MAC(), from.MAC(), 99)
	sends(t, from, f, short)
	rx.gets(nil, short)
	if c := q.Counters(); c.Errors != 1 || c.Frames != 1 {
		t.Errorf("the queue counts %+v, want 1 error and 1 frame", c)
	}
	if c := must(filter.Counters())(t); c != (packetdirect.FilterCounters{Frames: 1, Bytes: 99, Lost: 4}) {
		t.Errorf("the filter counts %+v", c)
	}
	ok(t, filter.Remove())
	ok(t, filter.Remove())
	sends(t, from, f)
	rx.nothing()
}

// TestRefused: what cannot be is an error that names the field, and changes nothing.
func TestRefused(t *testing.T) {
	socket := driver(t, plugged(t), 1)
	a, other := attached(t, socket), attached(t, socket)
	for _, c := range []struct {
		f    packetdirect.Filter
		want string
	}{
		{packetdirect.Filter{Kind: 9}, "Kind"},
		{packetdirect.Filter{Kind: packetdirect.Rest, Priority: 1}, "Kind"},
		{packetdirect.Filter{VLAN: 4095}, "VLAN"},
		{packetdirect.Filter{DstPort: 80}, "Protocol"},
		{packetdirect.Filter{DstPort: 80, Protocol: 1}, "Protocol"},
		{packetdirect.Filter{EtherType: 0x806, Protocol: 6}, "EtherType"},
		{packetdirect.Filter{EtherType: 0x86dd, SrcNet: netip.MustParsePrefix("10.0.0.0/8")}, "EtherType"},
		{packetdirect.Filter{SrcNet: netip.MustParsePrefix("10.0.0.0/8"), DstNet: netip.MustParsePrefix("fd00::/8")}, "SrcNet"},
	} {
		q := must(a.NewReceiveQueue(packetdirect.QueueConfig{}))(t)
		_, err := q.AddFilter(c.f)
		wantErr(t, err, verbs.ErrInvalid)
		if err != nil && !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
			t.Errorf("%v, want %s named", err, c.want)
		}
		ok(t, q.Close())
	}
	_, err := a.NewReceiveQueue(packetdirect.QueueConfig{Depth: -1})
	wantErr(t, err, verbs.ErrInvalid)
	_, err = a.NewPool(0, 0)
	wantErr(t, err, verbs.ErrInvalid)
	_, err = a.NewPool(1, 13)
	wantErr(t, err, verbs.ErrInvalid)
	_, err = packetdirect.Open(testbed.Context(t), packetdirect.Options{Socket: socket, Adapter: "none"})
	wantErr(t, err, verbs.ErrNotFound)
	_, err = packetdirect.Open(testbed.Context(t), packetdirect.Options{Own: &verbs.AdapterConfig{}})
	wantErr(t, err, verbs.ErrInvalid)

	q := must(a.NewTransmitQueue(packetdirect.QueueConfig{Depth: 2}))(t)
	pool, foreign := must(a.NewPool(3, 0))(t), must(other.NewPool(1, 0))(t)
	b := pool.Buffers()
	for _, n := range []int{13, 1519} {
		if n == 1519 {
			big := must(a.NewPool(1, 2000))(t)
			b[0] = big.Buffers()[0]
		}
		b[0].SetLen(n)
		_, _, err = q.PostAndDrain(b[:1], nil)
		wantErr(t, err, verbs.ErrInvalid)
	}
	_, _, err = q.PostAndDrain(foreign.Buffers(), nil)
	wantErr(t, err, verbs.ErrInvalid)
	b[0].SetLen(14)
	posted, _, err := q.PostAndDrain([]*packetdirect.Buffer{b[0], b[0]}, nil)
	if wantErr(t, err, verbs.ErrBusy); posted != 1 {
		t.Errorf("%d frames are posted, want the first", posted)
	}
	b[1].SetLen(14)
	b[2].SetLen(14)
	if posted, _, err = q.PostAndDrain(b[1:], nil); posted != 1 || err != nil {
		t.Errorf("%d frames are posted (%v), want as many as there is room for", posted, err)
	}
	wantErr(t, pool.Close(), verbs.ErrBusy)
	ok(t, q.Close())
	ok(t, pool.Close())
	_, _, err = q.PostAndDrain(nil, b)
	wantErr(t, err, verbs.ErrClosed)
	wantErr(t, q.Wait(testbed.Context(t)), verbs.ErrClosed)
}

// TestNoFrames: an adapter whose wire carries no whole frames has no queues.
func TestNoFrames(t *testing.T) {
	socket := testbed.Socket(t, testbed.Addrs())
	_, err := packetdirect.Open(testbed.Context(t), packetdirect.Options{Socket: socket})
	wantErr(t, err, verbs.ErrNotFound)
	h := must(verbs.Attach(testbed.Context(t), socket))(t)
	defer h.Close()
	_, err = packetdirect.On(must(h.Devices(testbed.Context(t)))(t)[0])
	wantErr(t, err, verbs.ErrUnsupported)
}

// TestWait: waiting ends with the context.
func TestWait(t *testing.T) {
	each(t, func(t *testing.T, from, to *packetdirect.Adapter) {
		rx := receives(t, to, 1, packetdirect.Filter{EtherType: etherType})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := rx.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting ends with %v", err)
		}
		if rx.Counters().Waits == 0 {
			t.Error("a queue that has waited counts none")
		}
		sends(t, from, frame(to.MAC(), from.MAC(), 64))
		rx.gets(frame(to.MAC(), from.MAC(), 64))
	})
}
