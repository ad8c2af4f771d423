package client_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/verbs"
)

const hostBytes = 1 << 20

// hosted is a program with memory of its own, in a process of its own, which does as it is told: arg is its socket and
// address.
func hosted(arg string) error {
	f := strings.Split(arg, ",")
	ctx := context.Background()
	addr := netip.MustParseAddr(f[1])
	e, err := newEnd(ctx, f[0], addr, hostBytes, false)
	if err != nil {
		return err
	}
	l, err := e.qp.PD().Device().Listen(netip.AddrPortFrom(addr, 0), 0)
	if err != nil {
		return err
	}
	mem := e.mr.Bytes()
	fmt.Println(l.Addr(), e.mr.RemoteAddr(), e.mr.RKey())
	id, err := l.Request(ctx)
	if err == nil {
		err = id.Accept(ctx, e.qp, param)
	}
	if err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if err := obey(in.Text(), e, mem); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return in.Err()
}

func obey(word string, e *end, mem []byte) error {
	switch word {
	case "receive":
		return e.qp.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{e.mr.SGE(100, 50), e.mr.SGE(3000, 5000)}})
	case "look":
		for i, b := range mem[:4096] {
			if b != byte(i) {
				return fmt.Errorf("byte %d is %d", i, b)
			}
		}
	case "unmap": // the second half, without telling anybody; its place is kept, which the next mapping of this process would get
		if _, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(unsafe.Pointer(&mem[hostBytes/2])), hostBytes/2, unix.PROT_NONE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED, ^uintptr(0), 0); errno != 0 {
			return errno
		}
	case "keep": // deregister the memory, and see that nobody writes to it then
		if err := e.mr.Deregister(); err != nil {
			return err
		}
		clear(mem)
		for end := time.Now().Add(30 * time.Millisecond); time.Now().Before(end); {
			if i := bytes.IndexByte(mem, 0xff); i >= 0 {
				return fmt.Errorf("byte %d was written after the memory had been deregistered", i)
			}
		}
	}
	return nil
}

// process is a hosted program.
type process struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
	at  netip.AddrPort
	mem rkey
}

func startProcess(t *testing.T, socket string, addr netip.Addr) *process {
	t.Helper()
	systemtest.Required(t)
	p := &process{cmd: exec.Command("/proc/self/exe")}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=host,%s,%s", client.TrafficVariable, socket, addr))
	p.cmd.Stderr = os.Stderr
	p.in = get(p.cmd.StdinPipe())(t)
	p.out = bufio.NewReader(get(p.cmd.StdoutPipe())(t))
	ok(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	f := strings.Fields(get(p.out.ReadString('\n'))(t))
	if len(f) != 3 {
		t.Fatalf("the program said %q", f)
	}
	p.at = netip.MustParseAddrPort(f[0])
	p.mem.parse(f[1:])
	return p
}

// do has the program do something, and waits until it has.
func (p *process) do(t *testing.T, word string) {
	t.Helper()
	fmt.Fprintln(p.in, word)
	if line, err := p.out.ReadString('\n'); err != nil || line != "done\n" {
		t.Fatalf("the program said %q (%v), want \"done\"", line, err)
	}
}

// write is a write of n bytes of a program's memory to the process.
func (p *process) write(e *end, off, n int) verbs.SendWR {
	return verbs.SendWR{Op: verbs.OpWrite, SGE: []verbs.SGE{e.mr.SGE(0, n)}, RemoteAddr: p.mem.addr + uint64(off), RKey: p.mem.key}
}

// direct returns how many messages the programs have moved themselves.
func direct(dh *device.Host) (n uint64) {
	for _, a := range dh.Snapshot().Adapters {
		for _, c := range a.Counters {
			if strings.TrimRight(string(c.Name[:]), "\x00") == "Direct messages" {
				n += c.Value
			}
		}
	}
	return n
}

// returned returns why the program with the process id last left a request to the driver.
func returned(dh *device.Host, pid int) string {
	for _, a := range dh.Snapshot().Adapters {
		for _, q := range a.QPs {
			if q.PID == pid && q.Returned != "" {
				return q.Returned
			}
		}
	}
	return ""
}

// meet connects a program of this process to one with a process of its own, and waits until it copies there itself.
func meet(t *testing.T, addrs [2]netip.Addr, socket string, dh *device.Host) (*process, *end) {
	t.Helper()
	ctx := testbed.Context(t)
	p := startProcess(t, socket, addrs[0])
	e := get(newEnd(ctx, socket, addrs[1], hostBytes, false))(t)
	t.Cleanup(func() { e.host.Close() })
	ok(t, e.dial(ctx, p.at))
	was := direct(dh)
	await.Eventually(t, "the program copies itself", func() bool {
		ok(t, e.do(ctx, p.write(e, 0, 64)))
		return direct(dh) > was
	})
	return p, e
}

// TestInitiatorCopiesInTheProcessOfItsPeer: writes, reads and sends to and from memory that a program has allocated
// itself are carried out by the initiator, not by the driver.
func TestInitiatorCopiesInTheProcessOfItsPeer(t *testing.T) {
	systemtest.Mark(t)
	ctx, addrs := testbed.Context(t), testbed.Addrs()
	socket, dh := testbed.Driver(t, addrs)
	p, e := meet(t, addrs, socket, dh)
	mem := e.mr.Bytes()
	for i := range 4096 {
		mem[i] = byte(i)
	}
	was := direct(dh)
	const times = 200
	for range times {
		ok(t, e.do(ctx, p.write(e, 0, 4096)))
	}
	p.do(t, "look")
	read := p.write(e, 0, 4096)
	read.Op, read.SGE[0] = verbs.OpRead, e.mr.SGE(8192, 4096)
	ok(t, e.do(ctx, read))
	if !bytes.Equal(mem[8192:8192+4096], mem[:4096]) {
		t.Error("other bytes were read than had been written")
	}
	p.do(t, "receive")
	ok(t, e.do(ctx, verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{e.mr.SGE(0, 3000)}}))
	read.RemoteAddr += 3000
	ok(t, e.do(ctx, read))
	if !bytes.Equal(mem[8192:8192+2950], mem[50:3000]) {
		t.Error("other bytes arrived in the receive than were sent")
	}
	if n := direct(dh) - was; n < times {
		t.Errorf(
			"the programs moved %d messages themselves, want at least %d; one was left to the driver because: %s",
			n,
			times,
			returned(dh, os.Getpid()),
		)
	}
}

// TestMemoryThatIsNotThereIsLeftToTheDriver: a request that the kernel cannot carry out wholly goes to the driver,
// which fails it as it always has.
func TestMemoryThatIsNotThereIsLeftToTheDriver(t *testing.T) {
	systemtest.Mark(t)
	ctx, addrs := testbed.Context(t), testbed.Addrs()
	socket, dh := testbed.Driver(t, addrs)
	p, e := meet(t, addrs, socket, dh)
	p.do(t, "unmap")
	// The QP's error ends the loan, and with it what the status says of it: only the error can be seen.
	err := e.do(ctx, p.write(e, hostBytes/2-4096, 8192))
	if err == nil || !strings.Contains(err.Error(), "remote") {
		t.Errorf("a write to memory half of which is unmapped: error %v, want a remote error", err)
	}
}

// TestPeerIsKilledWhileItsMemoryIsWritten: the death of the peer's process ends the connection as ever.
func TestPeerIsKilledWhileItsMemoryIsWritten(t *testing.T) {
	systemtest.Mark(t)
	addrs := testbed.Addrs()
	socket, dh := testbed.Driver(t, addrs)
	for range 5 {
		ctx := testbed.Context(t)
		p, e := meet(t, addrs, socket, dh)
		failed := make(chan error, 1)
		began := make(chan struct{})
		go func() {
			for i := 0; ; i++ {
				if err := e.do(ctx, p.write(e, 0, hostBytes)); err != nil {
					failed <- err
					return
				}
				if i == 3 {
					close(began)
				}
			}
		}()
		<-began
		ok(t, p.cmd.Process.Kill())
		if err := <-failed; ctx.Err() != nil {
			t.Fatalf("after the peer's death: %v", err)
		}
		await.Eventually(t, "the QP ends in error", func() bool {
			info, err := e.qp.Query()
			return err == nil && info.State == verbs.StateError
		})
	}
}

// TestNobodyWritesDeregisteredMemory: when the deregistration of memory in no segment has returned, no initiator
// writes to it any more.
func TestNobodyWritesDeregisteredMemory(t *testing.T) {
	systemtest.Mark(t)
	addrs := testbed.Addrs()
	socket, dh := testbed.Driver(t, addrs)
	for range 10 {
		ctx := testbed.Context(t)
		p, e := meet(t, addrs, socket, dh)
		mem := e.mr.Bytes()
		for i := range mem {
			mem[i] = 0xff
		}
		ended, began := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for i := 0; e.do(ctx, p.write(e, 0, hostBytes)) == nil; i++ {
				if i == 3 {
					close(began)
				}
			}
		}()
		<-began
		p.do(t, "keep")
		<-ended
	}
}

// TestDriverCopiesWhereTheKernelForbidsTheInitiator: a program that may not reach its peer's process leaves the
// requests to the driver, and the status says why.
func TestDriverCopiesWhereTheKernelForbidsTheInitiator(t *testing.T) {
	systemtest.Mark(t)
	if os.Geteuid() != 0 {
		t.Skip("needs a driver that may reach processes that its programs may not: run as root")
	}
	ctx, addrs := testbed.Context(t), testbed.Addrs()
	socket, dh := testbed.Driver(t, addrs)
	server := get(newEnd(ctx, socket, addrs[0], 64<<10, false))(t)
	defer server.host.Close()
	l := get(get(server.host.DeviceByAddr(addrs[0]))(t).Listen(netip.AddrPortFrom(addrs[0], 0), 0))(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s,%s,%s,own,%d,%d", client.TrafficVariable,
		socket, addrs[1], l.Addr(), server.mr.RemoteAddr(), server.mr.RKey()))
	cmd.Stderr = os.Stderr
	ok(t, startUnprivileged(cmd))
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	ok(t, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)) // the target is this process, privileged enough for itself
	defer func() { ok(t, unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)) }()
	id := get(l.Request(ctx))(t)
	ok(t, id.Accept(ctx, server.qp, param))
	await.Eventually(t, "the status says why the driver copies", func() bool {
		return strings.Contains(returned(dh, cmd.Process.Pid), "the kernel does not let the program")
	})
	if n := direct(dh); n > 0 {
		t.Errorf("the program moved %d messages itself", n)
	}
}

// startUnprivileged starts a program without the right to reach any process of its user.
func startUnprivileged(cmd *exec.Cmd) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0)
		if err == nil {
			err = cmd.Start()
		}
		done <- err
	}()
	return <-done
}
