package driver

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"github.com/softvpi/softvpi/internal/tun"
)

// TestOverlay_Large: TCP of a virtual subnet crosses a TAP to Linux's own VXLAN in super-frames, in both directions, if the system knows
// such in tunnels, with a checksum outside and without; else it crosses it all the same.
func TestOverlay_Large(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	fd, _, err := tun.OpenTAP("probe")
	if err != nil {
		t.Skip("needs /dev/net/tun")
	}
	known := tun.Tunnels(fd)
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	cfg := hosting(t)
	cfg.Adapters = cfg.Adapters[:1]
	cfg.Adapters[0].Link, cfg.Adapters[0].Wire = config.LinkTAP, config.Wire{Prefix: 24}
	cfg.Adapters[0].Interface = "wire0"
	d := start(t, cfg)
	defer func() { stop(t, d) }()
	here, red, wire := hereSpace(t), newSpace(t), newSpace(t)
	wire.gets(here, "wire0")
	wire.address("wire0", "198.18.0.2/24")
	say(t, d, "address adapter=a address=198.18.0.1/24",
		"record vsid=5001 customer=172.16.0.1 mac=00:15:5d:00:00:01 provider=198.18.0.1",
		"record vsid=5001 customer=172.16.0.9 mac=00:15:5d:00:00:09 provider=198.18.0.2")
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: "r1", Settings: []string{"rdma=off", "mac=00:15:5d:00:00:01",
		"vsid=5001", "tap=r1", "netns=" + red.path()}}); err != nil {
		t.Fatal(err)
	}
	red.address("r1", "172.16.0.1/24")
	i, err := wire.h.LinkByName("wire0")
	if err != nil {
		t.Fatal(err)
	}
	for _, sum := range []bool{true, false} {
		v := &netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "vx", HardwareAddr: net.HardwareAddr{0, 0x15, 0x5d, 0, 0, 9}}, VxlanId: 5001,
			VtepDevIndex: i.Attrs().Index, SrcAddr: net.IPv4(198, 18, 0, 2), Group: net.IPv4(198, 18, 0, 1), Port: 4789, UDPCSum: sum}
		if err := wire.h.LinkAdd(v); err != nil {
			t.Skipf("needs the kernel's VXLAN: %v", err)
		}
		wire.address("vx", "172.16.0.9/24")
		frames := func() (sent, received uint64) { // by the system, which counts a super-frame once
			i, err := wire.h.LinkByName("wire0")
			if err != nil {
				t.Fatal(err)
			}
			return i.Attrs().Statistics.TxPackets, i.Attrs().Statistics.RxPackets
		}
		const bytes, most = 4_000_000, 4_000_000 / 1400
		overlay := func(name string) uint64 { return d.Overlay().Switches[0].Counters[name] }
		leave, come, errs := overlay("sent"), overlay("arrived"), d.Status().Adapters[0].Link.SendErrors
		_, n := frames()
		if _, err := red.send(wire, "172.16.0.9", bytes, await.Limit); err != nil {
			t.Fatal(err)
		}
		_, received := frames()
		if n, leave = received-n, overlay("sent")-leave; known && n > most/5 || leave < most {
			t.Errorf("checksum outside %v: the system gets %d frames for %d", sum, n, leave)
		}
		n, _ = frames()
		if _, err := wire.send(red, "172.16.0.1", bytes, await.Limit); err != nil {
			t.Fatal(err)
		}
		sent, _ := frames()
		if n, come = sent-n, overlay("arrived")-come; known && n > most/5 || come < most {
			t.Errorf("checksum outside %v: the system sends %d frames for %d", sum, n, come)
		}
		if now := d.Status().Adapters[0].Link.SendErrors; now != errs {
			t.Errorf("checksum outside %v: %d frames are lost", sum, now-errs)
		}
		if err := wire.h.LinkDel(v); err != nil {
			t.Fatal(err)
		}
	}
}
