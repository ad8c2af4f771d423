package verbs

import (
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
)

// look prints what programs like ibdev2netdev read: the interface of the first device's port, that of its first GID, and
// the devices of an interface.
const look = "cd /sys/class/infiniband/softvpi0 && ls device/net && cat ports/1/gid_attrs/ndevs/0; ls /sys/class/net/IF/device/infiniband"

func (b *bench) looks(name string) string {
	b.t.Helper()
	p := b.start([]string{"XDG_RUNTIME_DIR=" + b.t.TempDir()}, "sh", "-c", strings.ReplaceAll(look, "IF", name))
	<-p.done
	return p.out.String()
}

// An adapter at a loopback address belongs to the loopback interface, one over Ethernet to that which has its address, and
// each of them leads back to the device.
func TestDeviceInterfaces(t *testing.T) {
	if got, want := newBench(t).looks("lo"), "lo\nlo\nsoftvpi0\n"; got != want {
		t.Errorf("at a loopback address programs see %q, want %q", got, want)
	}
	left, _ := hosts(t)
	if got, want := left.looks("v0"), "v0\nv0\nsoftvpi0\n"; got != want {
		t.Errorf("over Ethernet programs see %q, want %q", got, want)
	}
}

// newIPoIB starts a driver with two InfiniBand ports in a network namespace of its own; the first has the IPoIB interface svib0,
// which is up and has an address.
func newIPoIB(t *testing.T) *bench {
	t.Helper()
	needLibraries(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can make network interfaces")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip(err)
	}
	sides, err := namespaces(t)
	if err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	cfg := driverbed.Config(t, config.Adapter{Name: "left", Link: "cable", Interface: "svib0"}, config.Adapter{Name: "right", Link: "cable"})
	startIn(t, &sides[0], cfg)
	b := benchOf(t, cfg)
	b.side = &sides[0]
	if err := addAddress(sides[0], "svib0", ipoibAddress+"/24"); err != nil {
		t.Fatal(err)
	}
	b.run(nil, "ip", "link", "set", "svib0", "up")
	return b
}

const ipoibAddress = "10.77.4.1"

// An InfiniBand port belongs to its IPoIB interface, and its GIDs to none, as in Linux.
func TestFabricInterface(t *testing.T) {
	b := newIPoIB(t)
	p := b.start(nil, "sh", "-c", "until [ -e /sys/class/infiniband/softvpi0/device/net/svib0 ]; do sleep 0.1; done")
	b.succeeded(p)
	out := b.looks("svib0")
	if !strings.HasPrefix(out, "svib0\n") || !strings.HasSuffix(out, "softvpi0\n") || !strings.Contains(out, "No such file") {
		t.Errorf("programs see %q, want the interface, no interface of the GID, and the device", out)
	}
}

// hardware asks for an interface's link-layer address in all the ways that there are, and prints its type and address.
const hardware = `
import ctypes, fcntl, json, socket, struct, subprocess
name = "svib0"
link = json.loads(subprocess.check_output(["ip", "-j", "link", "show", name]))[0]
print("netlink", link["link_type"], link["address"], link["broadcast"])
everyone = json.loads(subprocess.check_output(["ip", "-j", "link"]))
print("list", *[l["link_type"] for l in everyone if l["ifname"] in (name, "lo")], len(everyone))
r = fcntl.ioctl(socket.socket(), 0x8927, struct.pack("16sH22x", name.encode(), 0))
print("ioctl", struct.unpack("H", r[16:18])[0], r[18:32].hex(":"))
class ifaddrs(ctypes.Structure): pass
ifaddrs._fields_ = [("next", ctypes.POINTER(ifaddrs)), ("name", ctypes.c_char_p), ("flags", ctypes.c_uint), ("addr", ctypes.POINTER(ctypes.c_ubyte * 32))]
c, at = ctypes.CDLL(None), ctypes.POINTER(ifaddrs)()
c.getifaddrs(ctypes.byref(at))
while at:
    a = at.contents
    if a.name.decode() == name and a.addr and bytes(a.addr.contents[:2]) == struct.pack("H", 17):
        b = bytes(a.addr.contents)
        print("getifaddrs", struct.unpack("H", b[8:10])[0], b[11], b[12:32].hex(":"))
    at = a.next
for f in ("type", "addr_len", "address", "broadcast"):
    print(f, open("/sys/class/net/%s/%s" % (name, f)).read().strip())
try:
    print("lo", open("/sys/class/net/lo/address").read().strip())
except OSError:
    pass
`

// rooms asks netlink for an interface with buffers of several sizes, and prints how much came and of which type it is.
const rooms = `
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
def ask(room):
    s.send(struct.pack("IHHIIBxHiII", 32, 18, 1, 1, 0, 0, 0, socket.if_nametoindex("svib0"), 0, 0))
    b = s.recv(room)
    return len(b), struct.unpack("H", b[18:20])[0]
whole, _ = ask(1 << 16)
for room in (whole - 49, whole - 48, whole - 1, whole):
    n, kind = ask(room)
    print(n - whole, kind)
`

// TestFabricLinkAddressRoom: what a program has room for as the system tells it does not become longer than that: the program
// would take it for cut off. One whose buffer is too small in any case learns how much it needs.
func TestFabricLinkAddressRoom(t *testing.T) {
	b := newIPoIB(t)
	b.need("ip", "python3")
	b.run(nil, "sh", "-c", connectedIPoIB)
	if out, want := b.run(nil, "python3", "-c", rooms), "-49 32\n-48 65534\n-48 65534\n0 32\n"; out != want {
		t.Errorf("with buffers of several sizes programs see %q, want %q", out, want)
	}
}

// connectedIPoIB waits until the interface is connected, and so has a broadcast address.
const connectedIPoIB = `until ip -j link show svib0 | grep -q '"broadcast":"00:ff:ff:ff:ff:12:40:1b:'; do sleep 0.1; done`

// An IPoIB interface, which the system takes for one without a link-layer address, has the one by which its peers know it.
func TestFabricLinkAddress(t *testing.T) {
	b := newIPoIB(t)
	b.need("ip", "python3")
	b.run(nil, "sh", "-c", connectedIPoIB)
	out := b.run(nil, "python3", "-c", hardware)
	const hex = `((?:[0-9a-f]{2}:){13}[0-9a-f]{2})((?::[0-9a-f]{2}){6})`
	m := regexp.MustCompile(`^netlink infiniband ` + hex + ` 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff
list loopback infiniband 3
ioctl 32 (.*)
getifaddrs 32 20 (.*)
type 32
addr_len 20
address (.*)
broadcast 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff
lo 00:00:00:00:00:00
$`).FindStringSubmatch(out)
	if m == nil || m[3] != m[1] || m[4] != m[1]+m[2] || m[5] != m[4] || !strings.Contains(m[1], ":fe:80:") {
		t.Errorf("programs see\n%s, want the same address in each way", out)
	}
	// With the namespace's own /sys, which has files of the interface that do not say it.
	p := b.start(nil, "unshare", "-m", "sh", "-c", `mount -t sysfs sysfs /sys && exec python3 -c "$0"`, hardware)
	<-p.done
	switch own := p.out.String(); {
	case p.err != nil && !strings.Contains(own, "netlink"):
		t.Logf("/sys could not be mounted: %v, %s", p.err, own)
	case own != out:
		t.Errorf("with the system's files programs see\n%s, want\n%s", own, out)
	}
	if out := b.run([]string{"LD_PRELOAD="}, "ip", "link", "show", "svib0"); !strings.Contains(out, "link/none") {
		t.Errorf("without the preloaded library ip prints %q: the system knows the address itself", out)
	}
}

// What a program sees follows the addresses of the interface while it runs.
func TestFilesFollowAddresses(t *testing.T) {
	needLibraries(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	sides, err := namespaces(t)
	if err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	cfg := driverbed.Config(t, config.Adapter{Name: "host", Address: address(0), FollowInterface: true})
	startIn(t, &sides[0], cfg)
	b := benchOf(t, cfg)
	b.side = &sides[0]
	const file = "/sys/class/infiniband/softvpi0/ports/1/gids/1"
	p := b.start(nil, "sh", "-c", "read a <"+file+"; echo $a; while read b <"+file+" && [ $a = $b ]; do sleep 0.1; done; echo $b")
	waitFor(t, p, "0000:0000:0000:0000:0000:0000:0000:0000")
	if err := addAddress(sides[0], "v0", "10.77.3.77/24"); err != nil {
		t.Fatal(err)
	}
	b.succeeded(p)
	if want := "0000:0000:0000:0000:0000:ffff:0a4d:034d"; !strings.Contains(p.out.String(), want) {
		t.Errorf("the program sees %q, want the GID %s after zeros", p.out.String(), want)
	}
}

// addAddress adds an address in a network namespace.
func addAddress(side netns.NsHandle, name, addr string) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- func() error {
			if err := netns.Set(side); err != nil {
				return err
			}
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			ip, n, err := net.ParseCIDR(addr)
			if err != nil {
				return err
			}
			return netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: n.Mask}})
		}()
	}()
	return <-done
}
