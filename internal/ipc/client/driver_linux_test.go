package client_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/verbs"
)

// These tests run the protocol against the real device, through the public API.

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
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

// newEnd attaches a program and makes a QP on the adapter at addr, with n bytes of memory: shared with the driver, or
// the program's own.
func newEnd(ctx context.Context, socket string, addr netip.Addr, n int, shared bool) (*end, error) {
	h, err := verbs.Attach(ctx, socket)
	if err != nil {
		return nil, err
	}
	dev, err := h.DeviceByAddr(addr)
	if err != nil {
		return nil, err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		return nil, err
	}
	e := &end{host: h}
	if e.cq, err = dev.CreateCQ(64); err != nil {
		return nil, err
	}
	if shared {
		e.mr, err = pd.Allocate(n, everything)
	} else {
		var own []byte // not on the Go heap, where the race detector would miss the order of atomics
		if own, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
			return nil, err
		}
		e.mr, err = pd.Register(own, everything)
	}
	if err != nil {
		return nil, err
	}
	e.qp, err = pd.CreateQP(
		verbs.QPConfig{Type: verbs.RC, SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 16, RecvDepth: 16, SendSGE: 2, RecvSGE: 2},
	)
	return e, err
}

func (e *end) do(ctx context.Context, wr verbs.SendWR) error {
	wr.Flags = verbs.Signaled
	if err := e.qp.PostSend(&wr); err != nil {
		return err
	}
	return e.next(ctx)
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

var param = verbs.ConnParam{ResponderResources: 4, InitiatorDepth: 4}

// TestMemoryPathsCarryData: writes, reads, sends and atomics work with memory that the driver reaches in each way, on
// the wire and where the adapters are on one loop.
func TestMemoryPathsCarryData(t *testing.T) {
	for _, path := range []string{"mapped", "process_vm", "copier"} {
		t.Run(path, func(t *testing.T) {
			ctx := testbed.Context(t)
			if path != "mapped" {
				t.Setenv(client.PathVariable, path)
			}
			addrs := testbed.Addrs()
			socket, _ := testbed.Driver(t, addrs)
			const n = 1 << 20
			server := get(newEnd(ctx, socket, addrs[0], n, path == "mapped"))(t)
			defer server.host.Close()
			client := get(newEnd(ctx, socket, addrs[1], n, path == "mapped"))(t)
			defer client.host.Close()
			if got := client.mr.Path().String(); got != path {
				t.Fatalf("memory is reached by %s, want %s", got, path)
			}
			connect(t, ctx, server, client, addrs[0])
			exercise(t, ctx, server, client)
		})
	}
}

func connect(t testing.TB, ctx context.Context, server, client *end, addr netip.Addr) {
	t.Helper()
	dev := get(server.host.DeviceByAddr(addr))(t)
	l := get(dev.Listen(netip.AddrPortFrom(addr, 0), 0))(t)
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
	ok(t, client.dial(ctx, l.Addr()))
	ok(t, <-accepted)
}

func (e *end) dial(ctx context.Context, to netip.AddrPort) (err error) {
	if e.id, err = e.qp.PD().Device().NewID(); err != nil {
		return err
	}
	if err := e.id.Connect(ctx, to, e.qp, param); err != nil {
		return err
	}
	return e.id.Establish()
}

func exercise(t *testing.T, ctx context.Context, server, client *end) {
	src, dst := client.mr.Bytes(), server.mr.Bytes()
	for i := range src {
		src[i] = byte(i*31 + i>>9)
	}
	want := bytes.Clone(src)
	write := func(off, n int) {
		t.Helper()
		ok(t, client.do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{client.mr.SGE(off, n)},
			RemoteAddr: server.mr.RemoteAddr() + uint64(off), RKey: server.mr.RKey()}))
		if !bytes.Equal(dst[off:off+n], want[off:off+n]) {
			t.Errorf("write of %d at %d: bytes differ", n, off)
		}
	}
	for _, n := range []int{1, 7, 8, 9, 1000, 4096, 70_000, len(src) - 5} {
		write(5, n)
	}
	clear(src)
	ok(t, client.do(ctx, verbs.SendWR{Op: verbs.OpRead, SGE: []verbs.SGE{client.mr.SGE(5, len(src)-5)},
		RemoteAddr: server.mr.RemoteAddr() + 5, RKey: server.mr.RKey()}))
	if !bytes.Equal(src[5:], dst[5:]) {
		t.Error("read: bytes differ")
	}
	ok(t, server.qp.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{server.mr.SGE(0, 3000), server.mr.SGE(8000, 60_000)}}))
	ok(t, client.do(ctx, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{client.mr.SGE(100, 50_000)}}))
	ok(t, server.next(ctx))
	if !bytes.Equal(dst[:3000], src[100:3100]) || !bytes.Equal(dst[8000:55_000], src[3100:50_100]) {
		t.Error("send: bytes differ")
	}
	old, now := (*uint64)(unsafe.Pointer(&src[0])), (*uint64)(unsafe.Pointer(&dst[64]))
	atomic.StoreUint64(now, 40)
	ok(t, client.do(ctx, verbs.SendWR{Op: verbs.OpFetchAdd, Add: 2, SGE: []verbs.SGE{client.mr.SGE(0, 8)},
		RemoteAddr: server.mr.RemoteAddr() + 64, RKey: server.mr.RKey()}))
	if old, now := atomic.LoadUint64(old), atomic.LoadUint64(now); old != 40 || now != 42 {
		t.Errorf("fetch and add: old %d, now %d; want 40 and 42", old, now)
	}
	ok(t, client.do(ctx, verbs.SendWR{Op: verbs.OpCompareSwap, Compare: 42, Swap: 7, SGE: []verbs.SGE{client.mr.SGE(0, 8)},
		RemoteAddr: server.mr.RemoteAddr() + 64, RKey: server.mr.RKey()}))
	if old, now := atomic.LoadUint64(old), atomic.LoadUint64(now); old != 42 || now != 7 {
		t.Errorf("compare and swap: old %d, now %d; want 42 and 7", old, now)
	}
}

func init() { client.Traffic = traffic }

// traffic is a program that attaches, connects and writes until it is killed. arg: socket, own address, peer,
// "shared" or "own" memory, and the rkey to write with.
func traffic(arg string) error {
	if host, is := strings.CutPrefix(arg, "host,"); is {
		return hosted(host)
	}
	f := strings.Split(arg, ",")
	ctx := context.Background()
	e, err := newEnd(ctx, f[0], netip.MustParseAddr(f[1]), 64<<10, f[3] == "shared")
	if err != nil {
		return err
	}
	var to rkey
	to.parse(f[4:])
	if err := e.dial(ctx, netip.MustParseAddrPort(f[2])); err != nil {
		return err
	}
	for i := 0; ; i++ {
		err := e.do(ctx, verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{e.mr.SGE(0, 64<<10)}, RemoteAddr: to.addr, RKey: to.key})
		if err != nil {
			return err
		}
		if i == 3 {
			fmt.Println("running")
		}
	}
}

// rkey is the address and key with which a program may write to its peer.
type rkey struct {
	addr uint64
	key  uint32
}

func (r *rkey) parse(f []string) {
	r.addr, _ = strconv.ParseUint(f[0], 0, 64)
	k, _ := strconv.ParseUint(f[1], 0, 32)
	r.key = uint32(k)
}

// TestKillUnderTraffic: a program that is killed in the middle of its traffic leaves no object in the adapters and no
// descriptor in the driver, and its peer's QP ends with an error.
func TestKillUnderTraffic(t *testing.T) {
	systemtest.Mark(t)
	n, err := strconv.Atoi(os.Getenv("SOFTVPI_TEST_KILLS"))
	if err != nil {
		n = 40
	}
	for _, kind := range []struct{ memory, path string }{{"shared", ""}, {"own", "process_vm"}, {"own", "copier"}} {
		t.Run(strings.TrimSpace(kind.memory+" "+kind.path), func(t *testing.T) {
			addrs := testbed.Addrs()
			socket, dh := testbed.Driver(t, addrs)
			var fds int
			for i := range max(n/4, 1) {
				killOne(t, dh, socket, addrs, kind.memory, kind.path)
				await.Eventually(t, "no objects left", func() bool {
					s := dh.Snapshot()
					return len(s.Clients) == 0 && s.Adapters[0].Objects == (device.ObjectCounts{}) &&
						s.Adapters[1].Objects == (device.ObjectCounts{})
				})
				if i == 0 {
					fds = openFDs(t)
				}
			}
			await.Eventually(t, "descriptors closed", func() bool { return openFDs(t) <= fds })
		})
	}
}

// openFDs returns the number of this process's descriptors other than UDP sockets, of which the adapters keep a pool
// that grows to its size.
func openFDs(t testing.TB) (n int) {
	t.Helper()
	for _, e := range get(os.ReadDir("/proc/self/fd"))(t) {
		fd := get(strconv.Atoi(e.Name()))(t)
		d, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil || d == unix.AF_UNIX {
			n++
		}
	}
	return n
}

func killOne(t *testing.T, dh *device.Host, socket string, addrs [2]netip.Addr, memory, path string) {
	systemtest.Required(t)
	ctx := testbed.Context(t)
	server := get(newEnd(ctx, socket, addrs[0], 64<<10, true))(t)
	defer server.host.Close()
	dev := get(server.host.DeviceByAddr(addrs[0]))(t)
	l := get(dev.Listen(netip.AddrPortFrom(addrs[0], 0), 0))(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), client.PathVariable+"="+path, fmt.Sprintf("%s=%s,%s,%s,%s,%d,%d", client.TrafficVariable,
		socket, addrs[1], l.Addr(), memory, server.mr.RemoteAddr(), server.mr.RKey()))
	cmd.Stderr = os.Stderr
	out := get(cmd.StdoutPipe())(t)
	ok(t, cmd.Start())
	id, err := l.Request(ctx)
	if err == nil {
		err = id.Accept(ctx, server.qp, param)
	}
	var line string
	if err == nil {
		line, err = bufio.NewReader(out).ReadString('\n')
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || line != "running\n" {
		t.Fatalf("the program said %q (%v), want \"running\"", line, err)
	}
	await.Eventually(t, "the peer's QP ends in error", func() bool {
		info, err := server.qp.Query()
		return err == nil && info.State == verbs.StateError
	})
}

// TestScribblersHarmNobody: programs that write random bytes into everything they share with the driver do not
// disturb the traffic of others.
func TestScribblersHarmNobody(t *testing.T) {
	systemtest.Mark(t)
	ctx := testbed.Context(t)
	addrs := testbed.Addrs()
	socket, dh := testbed.Driver(t, addrs)
	scribbles := client.ScribbleVariable + "=" + socket
	server := get(newEnd(ctx, socket, addrs[0], 1<<20, true))(t)
	defer server.host.Close()
	client := get(newEnd(ctx, socket, addrs[1], 1<<20, true))(t)
	defer client.host.Close()
	connect(t, ctx, server, client, addrs[0])
	for range 5 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), scribbles)
		cmd.Stderr = os.Stderr
		out := get(cmd.StdoutPipe())(t)
		ok(t, cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		for range 20 {
			exercise(t, ctx, server, client)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err != nil || line != "scribbling\n" {
			t.Fatalf("the program said %q (%v), want \"scribbling\"", line, err)
		}
	}
	await.Eventually(t, "scribblers torn down", func() bool { return len(dh.Snapshot().Clients) == 2 })
	for _, c := range dh.Snapshot().Adapters[0].Counters {
		if strings.TrimRight(string(c.Name[:]), "\x00") == "Bad doorbells" && c.Value > 0 {
			return
		}
	}
	t.Error("the driver noticed no rubbish: nothing was tested")
}
