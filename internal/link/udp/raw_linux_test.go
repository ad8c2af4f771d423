package udp

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// linuxVariants runs a test on the variants that use raw system calls.
func linuxVariants(t *testing.T, test func(t *testing.T, v variant)) {
	each(t, func(t *testing.T, v variant) {
		if v.cfg.Portable {
			t.SkipNow()
		}
		test(t, v)
	})
}

// errorsOf waits for errors as the owner of a link does, in poll on its descriptors, and returns them.
func errorsOf(t *testing.T, l Link) []link.Unreachable {
	t.Helper()
	out := make([]link.Unreachable, maxErrors)
	var poll []unix.PollFd
	for _, fd := range l.Descriptors() {
		poll = append(poll, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	deadline := time.Now().Add(await.Limit)
	for time.Now().Before(deadline) {
		if n := l.Errors(out); n > 0 {
			return out[:n]
		}
		if _, err := unix.Poll(poll, 5000); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
	}
	t.Fatal("no error was reported")
	return nil
}

// TestPortUnreachable: if nothing listens at the destination's port, the ICMP error is reported with the QP of the
// packet, whichever socket sent it, and costs no other packet (RFC 1122 4.1.3.3).
func TestPortUnreachable(t *testing.T) {
	linuxVariants(t, func(t *testing.T, v variant) {
		a, b, gone := v.open(t), v.open(t), v.open(t)
		toB := routeTo(t, a, b)
		at := gone.Status().Addr
		gone.Close()
		for _, source := range []uint16{0, 0xc00f} {
			r := &frame.Route{Dst: at.Addr(), DstPort: at.Port(), SrcPort: source}
			if err := a.Prepare(r); err != nil {
				t.Fatal(err)
			}
			sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(1, 50)...))
			want := []link.Unreachable{{Dst: at.Addr(), Kind: link.PortUnreachable, QPN: 0x2a}}
			if d := cmp.Diff(want, errorsOf(t, a), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
				t.Errorf("source port %d: %s", source, d)
			}
			// The kernel reports the error to the next send instead of sending: nothing may be lost by that.
			for range 50 {
				sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(1, 50)...))
				sendAll(t, a, packets(toB, a.Capabilities(), payloadsOf(2, 500)...))
				receiveN(t, b, 2)
			}
			errorsOf(t, a)
		}
		if s := a.Stats(); s.SendErrors != 0 {
			t.Errorf("%d send errors", s.SendErrors)
		}
	})
}

// TestReceiveGoesOnAfterErrors: an ICMP error does not hide packets that have arrived.
func TestReceiveGoesOnAfterErrors(t *testing.T) {
	linuxVariants(t, func(t *testing.T, v variant) {
		a, b, gone := v.open(t), v.open(t), v.open(t)
		r, toA := routeTo(t, a, gone), routeTo(t, b, a)
		gone.Close()
		for range 20 {
			sendAll(t, a, packets(r, a.Capabilities(), payloadsOf(1, 50)...))
			sendAll(t, b, packets(toA, b.Capabilities(), payloadsOf(1, 50)...))
			if n := receiveSome(t, a); n != 1 {
				t.Fatalf("received %d packets, want 1", n)
			}
		}
	})
}

// TestSegmentationRefused: if a device or the kernel refuses to segment, the burst's packets and those that follow
// are sent singly. (A socket without checksums is refused segmentation.)
func TestSegmentationRefused(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		v := variant{v6: v6}
		a, b := v.open(t), v.open(t)
		if !a.Status().Segmentation {
			t.Skip("this kernel has no UDP_SEGMENT")
		}
		if err := unix.SetsockoptInt(a.(*socketLink).fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
			t.Fatal(err)
		}
		if v6 {
			if err := unix.SetsockoptInt(a.(*socketLink).fd, unix.SOL_UDP, unix.UDP_NO_CHECK6_TX, 1); err != nil {
				t.Fatal(err)
			}
		}
		r := routeTo(t, a, b)
		for round := range 3 {
			frames := packets(r, a.Capabilities(), payloadsOf(80, 300)...)
			sendAll(t, a, frames)
			for i, p := range receiveN(t, b, len(frames)) {
				// Over IPv4 the ICRC of later segments changes, and nothing else.
				n := len(p.Data) - 4
				if !bytes.Equal(p.Data[:n], packetBytes(&frames[i])[:n]) || !bytes.Equal(p.Data, packetBytes(&frames[i])) {
					t.Fatalf("v6 %v: round %d: packet %d differs", v6, round, i)
				}
			}
		}
		if s := a.Stats(); s.SendErrors != 0 || s.SentBursts != s.SentPackets {
			t.Errorf("v6 %v: stats %+v, want no errors and as many bursts as packets", v6, s)
		}
		if a.Status().SingleDestinations != 1 {
			t.Errorf("v6 %v: status %+v, want one destination that is sent to singly", v6, a.Status())
		}
		// A new route to the same destination must send singly from the start.
		if again := routeTo(t, a, b); !again.Path.(*path).single {
			t.Errorf("v6 %v: a new route tries bursts again", v6)
		}
	}
}

// TestZeroChecksumIPv6: packets over IPv6 without a UDP checksum, as cards and Soft-RoCE send them, are received (RFC
// 6935).
func TestZeroChecksumIPv6(t *testing.T) {
	b := variant{v6: true}.open(t)
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_NO_CHECK6_TX, 1); err != nil {
		t.Fatal(err)
	}
	at := b.Status().Addr
	if err := unix.Sendto(fd, []byte("no checksum"), 0, &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}); err != nil {
		t.Fatal(err)
	}
	if p := receiveN(t, b, 1)[0]; string(p.Data) != "no checksum" {
		t.Errorf("got %q", p.Data)
	}
}

// TestCloseWakesPoll: a thread that sleeps in poll on the descriptors wakes when the link is closed.
func TestCloseWakesPoll(t *testing.T) {
	a := variant{}.open(t)
	woken := make(chan error, 1)
	fds := []unix.PollFd{{Fd: int32(a.Descriptors()[0]), Events: unix.POLLIN}}
	go func() {
		for {
			if _, err := unix.Poll(fds, 10000); err != unix.EINTR {
				woken <- err
				return
			}
		}
	}()
	time.Sleep(10 * time.Millisecond) // usually it sleeps by now; the test holds either way
	start := time.Now()
	a.Close()
	if err := <-woken; err != nil && err != unix.EBADF {
		t.Fatal(err)
	}
	if time.Since(start) > 5*time.Second {
		t.Error("poll did not wake when the link was closed")
	}
}

// TestNoDescriptorLeft: closing a link leaves no descriptor behind.
func TestNoDescriptorLeft(t *testing.T) {
	open := func() int {
		all, _ := filepath.Glob("/proc/self/fd/*")
		return len(all)
	}
	var all [10]Config // first, since the allocators of addresses and ports may open descriptors, which they keep
	for i := range all {
		all[i] = Config{Addr: loopback.Addr(), Port: loopback.Port()}
	}
	before := 0
	for i, cfg := range all {
		l, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 20 {
			if err := l.Prepare(&frame.Route{Dst: l.Status().Addr.Addr(), SrcPort: 0xc000 | uint16(k)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Capabilities().Multicaster.Join(netip.MustParseAddr("239.1.2.3")); err != nil {
			t.Fatal(err)
		}
		l.Close()
		if i == 0 {
			before = open()
		}
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors are open, were %d", after, before)
	}
}

// TestOwnerIsNamed: the error for an address in use names the process that has it.
func TestOwnerIsNamed(t *testing.T) {
	systemtest.Mark(t)
	if os.Getenv("SOFTVPI_TEST_HOLD") != "" {
		a, err := Open(Config{Addr: netip.MustParseAddr(os.Getenv("SOFTVPI_TEST_HOLD")), Port: 4791})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		os.Stdout.WriteString("held\n")
		os.Stdin.Read(make([]byte, 1))
		return
	}
	addr := loopback.Addr()
	cmd := exec.Command(os.Args[0], "-test.run=TestOwnerIsNamed$")
	cmd.Env = append(os.Environ(), "SOFTVPI_TEST_HOLD="+addr.String())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	line := make([]byte, 5)
	if _, err := out.Read(line); err != nil || string(line) != "held\n" {
		t.Skipf("the other process could not open its address: %q, %v", line, err)
	}
	_, err = Open(Config{Addr: addr})
	e, ok := err.(*AddressInUseError)
	if !ok || e.Owner.PID != cmd.Process.Pid || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("error %v, want one that names the other process", err)
	}
}

const procNetUDP = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  352: 0200007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 424242 2 0000000000000000 0
  353: 00000000:12B8 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 777 2 0000000000000000 0
  354: 0100007F:12B9 00000000:0000 07 00000000:00000000
  355: rubbish
`

const procNetUDP6 = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  352: 00000000000000000000000001000000:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5001 2 0000000000000000 0
  353: 00000000000000000000000000000000:12B8 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     7        0 5002 2 0000000000000000 0
`

func TestFindSocket(t *testing.T) {
	for _, c := range []struct {
		table, at, inode string
		uid              int
	}{
		{procNetUDP, "127.0.0.2:4791", "424242", 1000},
		{procNetUDP, "127.0.0.3:4791", "", 0},
		{procNetUDP, "10.0.0.1:4792", "777", 0}, // bound to every address
		{procNetUDP, "127.0.0.1:4793", "", 0},   // a line that was cut off
		{procNetUDP6, "[::1]:4791", "5001", 0},
		{procNetUDP6, "[fe80::1%lo]:4792", "5002", 7},
		{"", "127.0.0.2:4791", "", 0},
	} {
		inode, uid, ok := findSocket(strings.NewReader(c.table), netip.MustParseAddrPort(c.at))
		if inode != c.inode || uid != c.uid || ok != (c.inode != "") {
			t.Errorf("%s: inode %q of user %d, want %q of %d", c.at, inode, uid, c.inode, c.uid)
		}
	}
}

func TestOwnerString(t *testing.T) {
	for _, c := range []struct {
		o    Owner
		want string
	}{
		{Owner{PID: 12, Process: "softvpi"}, "another softvpi, process 12"},
		{Owner{PID: 12, Process: "ib_send_bw"}, "process 12 (ib_send_bw)"},
		{Owner{Kernel: true}, "the kernel, most likely its Soft-RoCE driver (rdma_rxe)"},
		{Owner{UID: 7}, "a process of user 7, or the kernel"},
		{Owner{UID: -1}, "another socket"},
	} {
		if c.o.String() != c.want {
			t.Errorf("%+v: %q, want %q", c.o, c.o, c.want)
		}
	}
}

// FuzzNextControl: control messages that were cut off or have a wrong length end the list.
func FuzzNextControl(f *testing.F) {
	var b [controlSpace]byte
	putControl(b[:], unix.IPPROTO_IP, unix.IP_TOS, 5, 4)
	f.Add(b[:])
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		aligned := make([]byte, len(b)) // as the kernel's buffers are
		copy(aligned, b)
		for rounds := 0; ; rounds++ {
			_, _, data, rest := nextControl(aligned)
			if data == nil {
				return
			}
			if len(rest) >= len(aligned) || rounds > len(b) {
				t.Fatal("reading a control message made no progress")
			}
			controlInt(data)
			aligned = rest
		}
	})
}

func FuzzFindSocket(f *testing.F) {
	f.Add(procNetUDP)
	f.Add(procNetUDP6)
	at := netip.MustParseAddrPort("127.0.0.2:4791")
	f.Fuzz(func(t *testing.T, table string) {
		if inode, _, ok := findSocket(strings.NewReader(table), at); ok && inode == "" {
			t.Fatal("a socket was found, but without an inode")
		}
	})
}
