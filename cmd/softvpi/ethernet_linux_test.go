package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// linuxHost is a network namespace with a driver, whose adapter has the namespace's stack as its host.
type linuxHost struct {
	place
	ns, ip, ip6, mac string
	driver           *process
}

// linuxHosts are two namespaces that a veth pair joins, "wire" on both sides.
func linuxHosts(t *testing.T, mtu int) (h [2]*linuxHost) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	systemtest.Programs(t, "ip", "ping", "iperf3", "tshark", "ethtool")
	mark := fmt.Sprintf("e%05x", rand.N(1<<20))
	for i := range h {
		h[i] = &linuxHost{place: newPlace(t), ns: fmt.Sprint(mark, i), ip: fmt.Sprintf("192.0.2.%d", i+1), ip6: fmt.Sprintf("fd00::%d", i+1),
			mac: fmt.Sprintf("02:00:00:00:00:0%d", i+1)}
		if out, err := exec.Command("ip", "netns", "add", h[i].ns).CombinedOutput(); err != nil {
			t.Skipf("needs the right to make network namespaces: %s", out)
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", h[i].ns).Run() })
		h[i].place.start = h[i].within
	}
	h[0].shell(t, fmt.Sprintf("ip link add wire mtu %d type veth peer name wire mtu %[1]d netns %s", mtu, h[1].ns))
	for _, x := range h {
		// The system itself must not answer for the host's address on the wire: frames would go past the adapter.
		x.shell(t, "sysctl -q net.ipv4.conf.wire.arp_ignore=1; ip link set lo up; ip link set wire up")
	}
	return h
}

// within starts a command in the host's namespace.
func (h *linuxHost) within(c *exec.Cmd) error { return h.inside(c.Start) }

// inside calls f on a thread in the host's namespace.
func (h *linuxHost) inside(f func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		n, err := netns.GetFromName(h.ns)
		if err == nil {
			defer n.Close()
			if err = netns.Set(n); err == nil {
				err = f()
			}
		}
		failed <- err
	}()
	return <-failed
}

// shell runs a line in the host's namespace until it succeeds, and returns its output.
func (h *linuxHost) shell(t *testing.T, line string) string {
	t.Helper()
	var out []byte
	var err error
	if !await.Until(func() bool {
		out, err = exec.Command("ip", "netns", "exec", h.ns, "sh", "-c", line).CombinedOutput()
		return err == nil
	}) {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// begin starts a program in the host's namespace, which ends with the test.
func (h *linuxHost) begin(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("ip", append([]string{"netns", "exec", h.ns}, words...)...)
	// No Pdeathsig: it would come with the end of this thread, and those of within end.
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// up starts the host's driver.
func (h *linuxHost) up(t *testing.T) {
	t.Helper()
	h.driver = h.spawn(t, "up", "--adapter", fmt.Sprintf("port=%s/24,interface=wire,mac=%s,host=tap:nic", h.ip, h.mac))
	h.driver.until(t, "listening")
}

// address gives the host its IP addresses.
func (h *linuxHost) address(t *testing.T) {
	t.Helper()
	h.shell(t, fmt.Sprintf("ip addr replace %s/24 dev nic; ip addr replace %s/64 dev nic nodad", h.ip, h.ip6))
}

// TestEthernet_LinuxOnBothSides: the stacks of Linux behind the adapters of two drivers reach each other by IPv4 and IPv6, with
// small and with large frames, beside RDMA with the same addresses and on the same ports; large packets cross a veth unsplit, and
// every checksum on a wire that does not take them so is right.
func TestEthernet_LinuxOnBothSides(t *testing.T) {
	systemtest.Mark(t)
	for _, mtu := range []int{1500, 9000} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			h := linuxHosts(t, mtu)
			for _, x := range h {
				x.up(t)
				x.address(t)
			}
			a, b := h[0], h[1]
			if s := a.status(t).Adapters[0].Ethernet; s == nil || s.MTU != mtu || s.MAC != a.mac || !s.Up {
				t.Fatalf("%+v", s)
			}
			a.shell(t, "ping -c 3 -i 0.2 "+b.ip)
			a.shell(t, fmt.Sprintf("ping -c 2 -i 0.2 -M do -s %d %s", mtu-28, b.ip))
			b.shell(t, "ping -6 -c 3 -i 0.2 "+a.ip6)
			b.begin(t, "iperf3", "-s")
			a.shell(t, "iperf3 -c "+b.ip+" -t 1")
			a.shell(t, "iperf3 -6 -c "+b.ip6+" -t 1")
			a.shell(t, "iperf3 -R -c "+b.ip+" -t 1")
			c := a.status(t).Adapters[0].Ethernet.Counters
			if c["sent_large_frames"] == 0 || c["sent_segments"] != 0 || c["received_large_frames"] == 0 || c["bad_header_frames"] != 0 {
				t.Errorf("%v", c)
			}
			datagramBursts(t, a, b)
			besideRDMA(t, a, b)
			checkedOnTheWire(t, a, b)
			hostileFrames(t, a, b)
		})
	}
}

// besideRDMA runs an RDMA program between the hosts while one floods the other with TCP.
func besideRDMA(t *testing.T, a, b *linuxHost) {
	t.Helper()
	b.begin(t, "iperf3", "-s", "-1", "-p", "5300") // which does not outlive a client that is killed
	b.shell(t, "ss -ltn | grep :5300")
	flood := a.begin(t, "iperf3", "-c", b.ip, "-p", "5300", "-t", "60", "-P", "2")
	await.Eventually(t, "TCP flows", func() bool {
		return a.status(t).Adapters[0].Ethernet.Counters["sent_bytes"] > 1e8
	})
	s := b.spawn(t, "nd_rping", "-s", "-a", b.ip)
	s.until(t, "listening")
	if status, out, errs := a.run(t, "nd_rping", "-c", "-V", "-a", b.ip, "-C", "200"); status != 0 {
		t.Errorf("RDMA beside TCP: %s%s", out, errs)
	}
	_ = flood.Process.Kill()
	var all api.AdapterStatus // what TCP has still to send moves both while they are read
	if !await.Until(func() bool {
		all = a.status(t).Adapters[0]
		return all.Ethernet.Counters["sent_bytes"] > 1e8 && all.Link.SentBytes >= all.Ethernet.Counters["sent_bytes"]
	}) {
		t.Errorf("%+v, of which %v", all.Link, all.Ethernet.Counters)
	}
}

// datagramBursts sends bursts of UDP datagrams (UDP_SEGMENT), which leave their host unsplit where the system can do that, and
// arrive as the datagrams that they are.
func datagramBursts(t *testing.T, a, b *linuxHost) {
	t.Helper()
	const size, datagrams, rounds = 1000, 20, 10
	before := a.status(t).Adapters[0].Ethernet.Counters
	var in int
	err := b.inside(func() (err error) {
		in, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(in, &unix.SockaddrInet4{Port: 5301})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(in)
	_ = unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(await.Limit / time.Second)})
	burst := make([]byte, size*datagrams-300)
	for i := range burst {
		burst[i] = byte(i / 7)
	}
	var out int
	err = a.inside(func() (err error) {
		if out, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
			err = unix.SetsockoptInt(out, unix.SOL_UDP, unix.UDP_SEGMENT, size)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(out)
	got := make([]byte, 65536)
	for range rounds { // a burst has room in the receiver's socket
		if err := unix.Sendto(out, burst, 0, &unix.SockaddrInet4{Port: 5301, Addr: [4]byte{192, 0, 2, 2}}); err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(burst); at += size {
			n, err := unix.Read(in, got)
			for err == unix.EINTR { // the runtime's own signals end a call with a time limit
				n, err = unix.Read(in, got)
			}
			if err != nil || !bytes.Equal(got[:n], burst[at:min(at+size, len(burst))]) {
				t.Fatalf("of a burst, %d bytes arrive from %d on, or others than were sent: %v", n, at, err)
			}
		}
	}
	c := a.status(t).Adapters[0].Ethernet.Counters
	large := c["sent_large_frames"] - before["sent_large_frames"]
	if features := a.shell(t, "ethtool -k nic"); strings.Contains(features, "tx-udp-segmentation: on") != (large == rounds) ||
		c["bad_header_frames"] != 0 || c["refused_sends"] != before["refused_sends"] {
		t.Errorf("%d bursts sent unsplit, of %d; %v\n%s", large, rounds, c, features)
	}
}

// checkedOnTheWire looks with tshark at what leaves by an interface that takes neither large packets nor unmade checksums.
func checkedOnTheWire(t *testing.T, a, b *linuxHost) {
	t.Helper()
	a.shell(t, "ethtool -K wire tx off tso off gso off")
	file := filepath.Join(b.dir, "wire.pcapng")
	sniffer := b.begin(t, "tshark", "-q", "-s", "0", "-B", "64", "-i", "wire", "-f", "ether src "+a.mac, "-w", file)
	await.Eventually(t, "tshark captures", func() bool {
		a.shell(t, "ping -c 1 "+b.ip)
		s, err := os.Stat(file)
		return err == nil && s.Size() > 1000
	})
	// With short buffers: what is in them when iperf3 has written enough is never sent.
	a.shell(t, "iperf3 -c "+b.ip+" -n 2M -w 64K && iperf3 -6 -c "+b.ip6+" -n 2M -w 64K && iperf3 -u -b 5M -l 1000 -n 500K -c "+
		b.ip+" && iperf3 -6 -u -b 5M -l 1000 -n 100K -c "+b.ip6)
	// It has all of it when it has what was sent after it: what it has not read when it ends it leaves out.
	await.Eventually(t, "tshark has captured everything", func() bool {
		a.shell(t, "ping -c 1 -p e7d15a4e7d15a4ff "+b.ip)
		got, err := os.ReadFile(file)
		return err == nil && bytes.Contains(got, []byte("\xe7\xd1\x5a\x4e\x7d\x15\xa4\xff"))
	})
	_ = sniffer.Process.Signal(syscall.SIGINT)
	_ = sniffer.Wait()
	read := "tshark -r " + file + " -o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE -o ip.check_checksum:TRUE -Y "
	// Linux, which makes them where the interface takes none unmade, writes 0xffff for 0: that is right (RFC 1624), but not to tshark.
	wrong := b.shell(t, read+"'(tcp.checksum.status==0 && tcp.checksum!=0xffff) || udp.checksum.status==0 || ip.checksum.status==0'"+
		" 2>/dev/null")
	if lines := strings.Split(strings.TrimSpace(wrong), "\n"); wrong != "" {
		t.Errorf("%d frames with wrong checksums:\n%s", len(lines), lines[0])
	}
	if n := strings.Count(b.shell(t, read+"'ipv6 && udp.checksum.status==1 && udp.length>500' 2>/dev/null"), "\n"); n < 50 {
		t.Errorf("%d datagrams of IPv6 with right checksums", n)
	}
	good := strings.Count(b.shell(t, read+"'tcp.checksum.status==1 && tcp.len>500' 2>/dev/null"), "\n")
	if datagrams := strings.Count(b.shell(t, read+"'udp.checksum.status==1 && udp.length>500' 2>/dev/null"), "\n"); good < 200 || datagrams < 100 {
		t.Errorf("%d segments and %d datagrams with right checksums", good, datagrams)
	}
	a.shell(t, "ethtool -K wire tx on tso on gso on")
}

// hostileFrames sends frames that cannot be, by the wire to one host, and by the other host to its adapter: they are counted,
// and everything goes on.
func hostileFrames(t *testing.T, a, b *linuxHost) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(os.Getpid())))
	ipv4 := []byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x09\x08\x00\x45\x00\x00\x54\x00\x00\x40\x00\x40\x06\x00\x00" +
		"\xc0\x00\x02\x02\xc0\x00\x02\x01")
	for _, place := range []struct {
		host *linuxHost
		at   string
	}{{b, "wire"}, {a, "nic"}} {
		var sent int
		err := place.host.inside(func() error {
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			i, err := interfaceNumber(place.at)
			if err != nil {
				return err
			}
			for range 3000 {
				f := append([]byte(nil), ipv4...)
				f = append(f, make([]byte, r.IntN(1400))...)
				for range r.IntN(12) {
					f[6+r.IntN(len(f)-6)] = byte(r.Uint32())
				}
				if unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: i}) == nil {
					sent++
				}
			}
			return nil
		})
		if err != nil || sent < 1000 {
			t.Fatalf("%d frames sent on %s, %v", sent, place.at, err)
		}
	}
	a.shell(t, "ping -c 2 -i 0.2 "+b.ip)
	b.shell(t, "ping -6 -c 2 -i 0.2 "+a.ip6)
	if c := a.status(t).Adapters[0].Ethernet.Counters; c["received_checksum_errors"] == 0 {
		t.Errorf("%v", c)
	}
}

func interfaceNumber(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, r)
	}
	if err != nil {
		return 0, err
	}
	return int(r.Uint32()), nil
}

// TestEthernet_KilledDriver: the host's interface stays when the driver is killed, without a carrier, with its address, MAC and
// routes, and works again with the next driver; one that ends removes it, and the next gives it its addresses again. An interface
// that was deleted meanwhile costs nothing else, and comes back with its adapter's restart.
func TestEthernet_KilledDriver(t *testing.T) {
	systemtest.Mark(t)
	h := linuxHosts(t, 1500)
	for _, x := range h {
		x.up(t)
		x.address(t)
	}
	a, b := h[0], h[1]
	a.shell(t, "ping -c 1 "+b.ip)
	_ = a.driver.cmd.Process.Kill()
	<-a.driver.ended
	var shown string // the kernel tells of a carrier that is gone within a second or so
	if !await.Until(func() bool {
		shown = a.shell(t, "ip addr show nic")
		return strings.Contains(shown, "NO-CARRIER") && strings.Contains(shown, a.ip) && strings.Contains(shown, a.ip6) &&
			strings.Contains(shown, a.mac)
	}) {
		t.Fatal(shown)
	}
	a.up(t)
	a.shell(t, "ping -c 1 "+b.ip)
	b.shell(t, "ping -6 -c 1 "+a.ip6)
	a.shell(t, "ip link del nic")
	await.Eventually(t, "the driver notices", func() bool {
		s := a.status(t).Adapters[0]
		return strings.Contains(s.Ethernet.Host, "deleted") && s.Up
	})
	if status, out, errs := a.run(t, "adapter", "restart", "port"); status != 0 {
		t.Fatal(out, errs)
	}
	a.address(t)
	a.shell(t, "ping -c 1 "+b.ip)
	_ = a.driver.cmd.Process.Signal(syscall.SIGTERM)
	if status, _, errs := a.driver.wait(t); status != 0 {
		t.Fatal(errs)
	}
	if out := a.shell(t, "ip link show"); strings.Contains(out, "nic") {
		t.Errorf("an interface is left:\n%s", out)
	}
	a.up(t) // with the addresses that it had
	a.shell(t, "ping -c 1 "+b.ip)
	b.shell(t, "ping -6 -c 1 "+a.ip6)
	if out := a.shell(t, "ip addr show nic"); !strings.Contains(out, a.mac) || strings.Count(out, "inet6 fd00:") != 1 {
		t.Errorf("another interface than before:\n%s", out)
	}
}
