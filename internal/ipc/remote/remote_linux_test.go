package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/remote"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/verbs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// These tests run a relay and an agent against the real device, by a pipe without any room, with programs of this process.

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dialer attaches at a socket.
func dialer(socket string) remote.Dial {
	return func(ctx context.Context, o client.Options) (*client.Client, error) {
		return client.Dial(ctx, socket, o)
	}
}

// away serves programs at the socket that it returns as a driver, which is behind a stream. cut ends the stream.
func away(t testing.TB, driver string) (socket string, cut func()) {
	t.Helper()
	own, other := net.Pipe()
	relayed := make(chan error, 1)
	go func() {
		relayed <- remote.Relay(context.Background(), own, dialer(driver), slog.New(slog.DiscardHandler))
	}()
	a, err := remote.Connect(t.Context(), other, true, slog.New(slog.DiscardHandler))
	ok(t, err)
	s, err := server.New(a, server.Config{Path: command.MemoryProcessVM, NoDirect: true})
	ok(t, err)
	dir, err := os.MkdirTemp("", "away") // t.TempDir may be too long for a socket
	ok(t, err)
	socket = filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	ok(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		ok(t, s.Close())
		ok(t, <-served)
		_ = a.Close()
		if err := <-relayed; err != nil {
			t.Errorf("relay: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	return socket, func() { other.Close() }
}

const everything = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic

// end is one program's end of a connection.
type end struct {
	host *verbs.Host
	cq   *verbs.CQ
	qp   *verbs.QP
	mr   *verbs.MR
	id   *verbs.ID
}

func newEnd(t testing.TB, socket string, addr netip.Addr, n int) *end {
	t.Helper()
	ctx := testbed.Context(t)
	h, err := verbs.Attach(ctx, socket)
	ok(t, err)
	t.Cleanup(func() { _ = h.Close() })
	dev, err := h.DeviceByAddr(addr)
	ok(t, err)
	pd, err := dev.AllocPD()
	ok(t, err)
	e := &end{host: h}
	e.cq, err = dev.CreateCQ(64)
	ok(t, err)
	own, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	ok(t, err)
	e.mr, err = pd.Register(own, everything)
	ok(t, err)
	e.qp, err = pd.CreateQP(verbs.QPConfig{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 16, RecvDepth: 16, SendSGE: 2,
		RecvSGE: 2})
	ok(t, err)
	return e
}

func (e *end) next(ctx context.Context) error {
	var wc [1]verbs.WC
	if _, err := e.cq.Next(ctx, wc[:]); err != nil {
		return err
	}
	if wc[0].Status != verbs.Success {
		return fmt.Errorf("%v: %v", wc[0].Op, wc[0].Status)
	}
	return nil
}

func (e *end) do(t testing.TB, wr verbs.SendWR) {
	t.Helper()
	wr.Flags = verbs.Signaled
	await.Eventually(t, "there is room for a request", func() bool {
		err := e.qp.PostSend(&wr)
		if err != nil && !errors.Is(err, verbs.ErrQueueFull) {
			t.Fatal(err)
		}
		return err == nil
	})
	ok(t, e.next(testbed.Context(t)))
}

var param = verbs.ConnParam{ResponderResources: 4, InitiatorDepth: 4}

func connect(t testing.TB, server, client *end, addr netip.Addr) {
	t.Helper()
	ctx := testbed.Context(t)
	dev, err := server.host.DeviceByAddr(addr)
	ok(t, err)
	l, err := dev.Listen(netip.AddrPortFrom(addr, 0), 0)
	ok(t, err)
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		id, err := l.Request(ctx)
		if err == nil {
			server.id = id
			err = id.Accept(ctx, server.qp, param)
		}
		accepted <- err
	}()
	client.id, err = client.qp.PD().Device().NewID()
	ok(t, err)
	ok(t, client.id.Connect(ctx, l.Addr(), client.qp, param))
	ok(t, client.id.Establish())
	ok(t, <-accepted)
}

// TestAway: programs whose driver is behind a stream connect to others, from either side and with each other, and write, read, send and do
// atomics in memory that the driver's machine does not have.
func TestAway(t *testing.T) {
	for name, at := range map[string][2]bool{"the client": {false, true}, "the server": {true, false}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) {
			addrs := testbed.Addrs()
			driver, _ := testbed.Driver(t, addrs)
			sockets := [2]string{driver, driver}
			for i, is := range at {
				if is {
					sockets[i], _ = away(t, driver)
				}
			}
			const n = 1 << 20
			s, c := newEnd(t, sockets[0], addrs[0], n), newEnd(t, sockets[1], addrs[1], n)
			connect(t, s, c, addrs[0])
			exercise(t, s, c)
			exercise(t, c, s)
		})
	}
}

func exercise(t *testing.T, server, client *end) {
	t.Helper()
	src, dst := client.mr.Bytes(), server.mr.Bytes()
	request := func(op verbs.Opcode, off, n int, at uint64) verbs.SendWR {
		return verbs.SendWR{Op: op, SGE: []verbs.SGE{client.mr.SGE(off, n)}, RemoteAddr: server.mr.RemoteAddr() + at,
			RKey: server.mr.RKey()}
	}
	for i := range src {
		src[i] = byte(i*31 + i>>9)
	}
	for _, n := range []int{1, 9, 4096, 70_000, len(src) - 5} {
		client.do(t, request(verbs.OpWrite, 5, n, 5))
		if !bytes.Equal(dst[5:5+n], src[5:5+n]) {
			t.Errorf("write of %d: bytes differ", n)
		}
	}
	clear(src)
	client.do(t, request(verbs.OpRead, 5, len(src)-5, 5))
	if !bytes.Equal(src[5:], dst[5:]) {
		t.Error("read: bytes differ")
	}
	for i := range 50 { // more than the rings hold
		ok(t, server.qp.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{server.mr.SGE(0, 3000), server.mr.SGE(8000, 60_000)}}))
		src[100] = byte(i)
		client.do(t, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{client.mr.SGE(100, 5_000)}})
		ok(t, server.next(testbed.Context(t)))
		if dst[0] != byte(i) || !bytes.Equal(dst[8000:10_000], src[3100:5_100]) {
			t.Fatal("send: bytes differ")
		}
	}
	for i := range 100 { // without completions: room in the ring is all that tells
		wr := request(verbs.OpWrite, 0, 8, 0)
		await.Eventually(t, fmt.Sprint("room for request ", i), func() bool { return client.qp.PostSend(&wr) == nil })
	}
	copy(dst[64:], []byte{40, 0, 0, 0, 0, 0, 0, 0})
	add := request(verbs.OpFetchAdd, 0, 8, 64)
	add.Add = 2
	client.do(t, add)
	if src[0] != 40 || dst[64] != 42 {
		t.Errorf("fetch and add: old %d, now %d; want 40 and 42", src[0], dst[64])
	}
}

// TestAway_StreamEnds: when the stream ends programs are told that the device is gone, and what they had in the driver goes.
func TestAway_StreamEnds(t *testing.T) {
	addrs := testbed.Addrs()
	driver, host := testbed.Driver(t, addrs)
	socket, cut := away(t, driver)
	s, c := newEnd(t, driver, addrs[0], 4096), newEnd(t, socket, addrs[1], 4096)
	connect(t, s, c, addrs[0])
	cut()
	await.Eventually(t, "the program's objects are gone", func() bool { return host.Overview().Adapters[1].Objects.QP == 0 })
	dev, err := c.host.DeviceByAddr(addrs[1])
	if err == nil {
		_, err = dev.AllocPD()
	}
	if !errors.Is(err, verbs.ErrRemoved) {
		t.Errorf("after the end: %v", err)
	}
}
