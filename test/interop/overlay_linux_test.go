package interop

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// subnet is a virtual subnet between a function of ours and a tunnel device of Linux in the machine, called as the function is.
type subnet struct {
	function   string
	id         uint32
	kind       tunnel.Kind
	ours, host netip.Addr // provider addresses: ours, and the machine's
	device     string     // what Linux's device is, beside its addresses
	rdma       bool       // RoCE goes through it as well
	// Whether checksums of UDP outside are 0: of what we send, and of what Linux does.
	weOmit, theyOmit bool
}

// subnets have all ways of sums outside: Linux makes them over IPv4 unless it is told not to, and we do not; over IPv6 both do
// (RFC 8200, 8.1). NVGRE has none (RFC 7637, 3.2). There Linux compares the whole key, of which eight bits are a flow's: ours are
// always 0, and Linux's are something else here.
var subnets = []subnet{
	{function: "red", id: 5001, ours: netip.MustParseAddr("10.99.0.7"), host: theirs.v4, device: "vxlan id 5001 dstport 4789", rdma: true,
		weOmit: true},
	{function: "blue", id: 5002, ours: netip.MustParseAddr("10.99.0.7"), host: theirs.v4, device: "vxlan id 5002 dstport 4789 noudpcsum",
		weOmit: true, theyOmit: true},
	{function: "green", id: 5003, ours: netip.MustParseAddr("fd97::7"), host: netip.MustParseAddr("fd97::2"),
		device: "vxlan id 5003 dstport 4789"},
	{function: "gray", id: 5004, kind: tunnel.NVGRE, ours: netip.MustParseAddr("10.97.0.7"), host: netip.MustParseAddr("10.97.0.2"),
		device: fmt.Sprintf("gretap ikey %d okey %d", 5004<<8, 5004<<8|0x5a), rdma: true},
}

// customers are the customer addresses of a subnet.
func (s *subnet) customers() family {
	n := byte(s.id - 5001)
	return family{s.function, netip.AddrFrom4([4]byte{172, 16, n, 1}), netip.AddrFrom4([4]byte{172, 16, n, 2})}
}

// mac is the MAC of the function, and that of Linux's device.
func (s *subnet) mac(n byte) string { return fmt.Sprintf("00:15:5d:00:%02x:%02x", s.id-5001, n) }

// TestOverlay: functions in virtual subnets, with network interfaces on this system's kernel, and Linux's vxlan and gretap devices in a
// machine reach each other by customer addresses, each as who asks and as who answers, and all their data arrive: pings, TCP, and RoCE
// v2 of Linux's Soft-RoCE inside tunnels as Linux makes them. The machine's kernel asks for the functions' addresses through the tunnels.
func TestOverlay(t *testing.T) {
	image := site(t)
	dir, err := os.MkdirTemp("", "overlay") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	env := []string{"SOFTVPI_SOCKET=" + filepath.Join(dir, "s")}
	driver := begin(t, image, env, "up", "--skip-self-check", "--socket", filepath.Join(dir, "s"), "--state", filepath.Join(dir, "state"),
		"--adapter", "pf=10.99.0.1/24,switch=s,mac=02:00:00:99:00:01", "--adapter", "far=10.99.0.9/24,switch=s,mac=02:00:00:99:00:09")
	driver.says(t, "listening")
	t.Cleanup(func() {
		_ = driver.cmd.Process.Signal(syscall.SIGTERM)
		driver.succeeds(t, programLimit)
	})
	does := func(words ...string) { t.Helper(); begin(t, image, env, words...).succeeds(t, programLimit) }
	does("vf", "create", "far", "machine", "mac=52:54:00:99:00:02", "address=10.99.0.2/24", "rdma=off", "host=stream:"+filepath.Join(dir, "m"))
	does("overlay", "add", "address", "adapter=pf", "address=10.99.0.7/24")
	does("overlay", "add", "address", "adapter=pf", "address=fd97::7/64")
	does("overlay", "add", "address", "adapter=pf", "address=10.97.0.7/24", "encapsulation=nvgre")
	g := bootOn(t, 1500, "stream,id=n0,server=off,addr.type=unix,addr.path="+filepath.Join(dir, "m"))
	g.sh(t, "ip addr add 10.97.0.2/24 dev eth0 && ip addr add fd97::2/64 dev eth0")
	for i := range subnets {
		s := &subnets[i]
		t.Run(s.function, func(t *testing.T) {
			f := s.customers()
			id := fmt.Sprintf("vsid=%d", s.id)
			does("overlay", "add", "record", id, "customer="+f.ours.String(), "mac="+s.mac(1), "provider="+s.ours.String())
			does("overlay", "add", "record", id, "customer="+f.theirs.String(), "mac="+s.mac(2), "provider="+s.host.String())
			does("vf", "create", "pf", s.function, "mac="+s.mac(1), id, "tap="+s.function)
			command(t, "ip", "addr", "add", f.ours.String()+"/24", "dev", s.function)
			command(t, "ip", "link", "set", s.function, "up")
			g.sh(t, fmt.Sprintf("ip link add %s address %s type %s local %v remote %v && ip addr add %v/24 dev %[1]s && ip link set %[1]s up",
				s.function, s.mac(2), s.device, s.host, s.ours, f.theirs))
			g.sh(t, fmt.Sprintf("ping -c 3 -i 0.05 -w %d %v", int(programLimit.Seconds()), f.ours))
			command(t, "ping", "-c", "3", "-i", "0.05", "-w", fmt.Sprint(int(programLimit.Seconds())), f.theirs.String())
			g.bulk(t, f)
			if s.rdma {
				s.pings(t, image, env, g)
			}
		})
	}
	g.stop()
	sums(t, g.capture)
}

// pings runs rping in the subnet, in both directions.
func (s *subnet) pings(t *testing.T, image string, env []string, g *guest) {
	t.Helper()
	f := s.customers()
	env = append([]string{"SOFTVPI_FUNCTION=" + s.function}, env...)
	g.sh(t, fmt.Sprintf("rdma link add rxe_%s type rxe netdev %[1]s", s.function))

	asked := begin(t, image, env, "nd_rping", "-s", "-a", f.ours.String(), "-v", "-V", "-C", "50", "-S", "3000")
	asked.says(t, "listening")
	ping := g.program(t, "rping", "-c", "-a", f.ours.String(), "-v", "-V", "-C", "50", "-S", "3000")
	ping.rpingSucceeds(t, programLimit)
	asked.succeeds(t, programLimit)
	count(t, "rping", ping.text(), "ping data: rdma-ping-", 50)

	server := g.program(t, "rping", "-s", "-a", f.theirs.String(), "-v", "-V", "-C", "50", "-S", "3000", "-p", "7174")
	g.listens(t)
	begin(t, image, env, "nd_rping", "-c", "-a", f.theirs.String(), "-v", "-V", "-C", "50", "-S", "3000", "-p", "7174").succeeds(t, programLimit)
	server.succeeds(t, programLimit)
}

// sums looks at the sums outside of all that the machine's card has sent and received: they are right, and there where they are to be.
// Each subnet has frames in both directions, and what RoCE sends is in its tunnel.
func sums(t *testing.T, capture string) {
	t.Helper()
	f, err := os.Open(capture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type way struct {
		id      uint32
		fromUs  bool
		omitted bool
	}
	seen, roce := map[way]int{}, map[uint32]int{}
	_, err = records(f, func(b []byte) {
		var h eth.Headers
		var in tunnel.Frame
		if !h.Parse(b) || !in.Find(&h, b, tunnel.Recognition{VXLANPort: 4789, NVGRE: true}) {
			return
		}
		w := way{id: in.ID, fromUs: b[0] == 0x52}
		if in.Kind == tunnel.VXLAN {
			w.omitted = eth.UDP(b[h.Transport:]).Checksum() == 0
		}
		seen[w]++
		if in.Inner.Protocol == eth.ProtocolUDP && eth.UDP(b[in.Inner.Transport:]).DstPort() == eth.PortRoCEv2 {
			roce[in.ID]++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[way]bool{}
	for _, s := range subnets {
		for _, w := range []way{{s.id, true, s.weOmit}, {s.id, false, s.theyOmit}} {
			want[w] = true
			if seen[w] == 0 {
				t.Errorf("no frames of %s with %+v", s.function, w)
			}
		}
		if (roce[s.id] > 0) != s.rdma {
			t.Errorf("%d packets of RoCE in the tunnel of %s", roce[s.id], s.function)
		}
	}
	for w, n := range seen {
		if !want[w] {
			t.Errorf("%d frames with %+v", n, w)
		}
	}
	if err := errors.Join(trim(capture), decoded(capture)); err != nil {
		t.Error(err)
	}
}

// decoded has tshark decode what is in the tunnels of a capture: none of it is malformed, and no sum of IP, UDP or TCP, outside or
// inside, is wrong.
func decoded(capture string) error {
	out, err := exec.Command("tshark", "-r", capture, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o",
		"tcp.check_checksum:TRUE", "-Y", "(vxlan || gre) && (_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 || "+
			"tcp.checksum.status == 0)").Output()
	if err == nil && len(strings.TrimSpace(string(out))) > 0 {
		err = fmt.Errorf("tshark finds fault with\n%.2000s", out)
	}
	return err
}
