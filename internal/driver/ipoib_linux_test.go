package driver

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/verbs"
)

// TestInterfaceOfTheSystem: an InfiniBand port that is given an interface name is a network interface of the system,
// with the subnet's MTU, a carrier while its adapter is enabled, and the addresses that the user gives it. What the system sends is the
// adapter's again when it was disabled in between.
func TestInterfaceOfTheSystem(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("needs /dev/net/tun")
	}
	cfg := twoCables(t)
	cfg.Adapters[0].Interface = "ib0"
	d := start(t, cfg)
	defer stop(t, d)
	l, err := netlink.LinkByName("ib0")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		t.Fatal(err)
	}
	running := func() bool {
		l, err := netlink.LinkByName("ib0")
		return err == nil && l.Attrs().MTU == 2044 && l.Attrs().RawFlags&unix.IFF_RUNNING != 0
	}
	await.Eventually(t, "ib0 has a carrier", running)
	addr, _ := netlink.ParseAddr("10.6.0.1/24")
	if err := netlink.AddrAdd(l, addr); err != nil {
		t.Fatal(err)
	}
	h, err := verbs.Within(d.host, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	await.Eventually(t, "the adapter has the address of its interface", func() bool {
		dev, err := h.DeviceByAddr(netip.MustParseAddr("10.6.0.1"))
		return err == nil && dev.Name() == "left"
	})
	if err := d.SetAdapter(AdapterRequest{Adapter: "left"}); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "ib0 loses its carrier", func() bool { return !running() })
	if err := d.SetAdapter(AdapterRequest{Adapter: "left", Enable: true}); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "ib0 gets its carrier again", running)
	c, err := net.Dial("udp", "10.6.0.9:7")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	await.Eventually(t, "the adapter sends what the system sends again", func() bool {
		_, err := c.Write([]byte("somebody"))
		s, runs := d.ipoib.look(0, "left")
		return err == nil && runs && s.Counters.SentPackets > 0
	})
	if _, err := net.InterfaceByName("ib0"); err != nil {
		t.Error(err)
	}
}
