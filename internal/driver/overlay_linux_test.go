package driver

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// say adds entries of virtual subnets, each a kind and its settings.
func say(t *testing.T, d *Driver, lines ...string) {
	t.Helper()
	for _, l := range lines {
		words := strings.Fields(l)
		if _, err := d.AddOverlayEntry(api.OverlayRequest{Kind: words[0], Settings: words[1:]}); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
	}
}

// TestOverlay: adapters of a virtual switch that are in virtual subnets reach others there alone, here and on another host, which is
// Linux with its own VXLAN; two subnets have the same customer addresses. What is said of them stays over a restart of the driver.
func TestOverlay(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	cfg := hosting(t)
	cfg.Adapters[1].Host = "tap:wire0"
	d := start(t, cfg)
	defer func() { stop(t, d) }()
	here, red, red2, blue, wire := hereSpace(t), newSpace(t), newSpace(t), newSpace(t), newSpace(t)
	wire.gets(here, "wire0")
	wire.address("wire0", "198.18.0.2/24")
	say(t, d, "address adapter=a address=198.18.0.1/24",
		"record vsid=5001 customer=172.16.0.1 mac=00:15:5d:00:00:01 provider=198.18.0.1",
		"record vsid=5001 customer=172.16.0.2 mac=00:15:5d:00:00:02 provider=198.18.0.1",
		"record vsid=5001 customer=172.16.0.9 mac=00:15:5d:00:00:09 provider=198.18.0.2",
		"record vsid=5002 customer=172.16.0.1 mac=00:15:5d:00:00:03 provider=198.18.0.1",
		"record vsid=5002 customer=172.16.0.7 mac=00:15:5d:00:00:07 provider=198.18.0.2")
	if _, err := d.CreateVirtualSwitch(api.SwitchRequest{Name: "v", Adapter: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, mac, vsid, addr string
		at                    *space
	}{{"r1", "00:15:5d:00:00:01", "5001", "172.16.0.1/24", red}, {"r2", "00:15:5d:00:00:02", "5001", "172.16.0.2/24", red2},
		{"b1", "00:15:5d:00:00:03", "5002", "172.16.0.1/24", blue}} {
		if _, err := d.AddSwitchAdapter(api.SwitchAdapterRequest{Switch: "v", Function: x.name, Settings: []string{"machine=" + x.name, "rdma=off",
			"mac=" + x.mac, "vsid=" + x.vsid, "tap=" + x.name, "netns=" + x.at.path()}}); err != nil {
			t.Fatal(err)
		}
		x.at.address(x.name, x.addr)
		i, err := x.at.h.LinkByName(x.name)
		if err != nil || i.Attrs().MTU != 1500-50 {
			t.Errorf("%s: the MTU is %d, want 1450; %v", x.name, i.Attrs().MTU, err)
		}
	}
	i, err := wire.h.LinkByName("wire0")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, mac, addr string
		id              int
	}{{"vx1", "00:15:5d:00:00:09", "172.16.0.9/24", 5001}} {
		mac, _ := net.ParseMAC(x.mac)
		v := &netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: x.name, HardwareAddr: mac}, VxlanId: x.id, VtepDevIndex: i.Attrs().Index,
			SrcAddr: net.IPv4(198, 18, 0, 2), Group: net.IPv4(198, 18, 0, 1), Port: 4789}
		if err := wire.h.LinkAdd(v); err != nil {
			t.Fatal(err)
		}
		wire.address(x.name, x.addr)
	}
	red.reaches(wire, "172.16.0.9", "Linux, in VXLAN")
	wire.reaches(red, "172.16.0.1", "from Linux, in VXLAN")
	red.reaches(red2, "172.16.0.2", "another one here")
	red.says(red2, "172.16.0.2:4791", "RoCE's port, here")
	wire.says(red, "172.16.0.1:4791", "RoCE's port, from Linux")
	blue.misses(wire, "172.16.0.9", "another subnet there")
	blue.misses(red2, "172.16.0.2", "another subnet here")
	o := d.Overlay()
	await.Eventually(t, "what goes and what does not is counted", func() bool {
		o = d.Overlay()
		n := o.Switches[0].Counters
		return n["sent"] > 0 && n["arrived"] > 0 && n["local"] > 0 && n["dropped_no_record"] > 0
	})
	refusedSubnets(t, d)
	stop(t, d)
	d = start(t, cfg)
	if got := d.Overlay(); len(got.Entries) != len(o.Entries) || len(got.Switches) != 1 {
		t.Errorf("after a restart there are %d entries, were %d; %+v", len(got.Entries), len(o.Entries), got.Switches)
	}
	if list, err := d.RemoveOverlayEntries(api.OverlayRequest{Kind: "record", Settings: []string{"vsid=5001"}}); err != nil || len(list) != 3 {
		t.Errorf("%d records are removed, %v", len(list), err)
	}
}

// says fails unless a datagram to an address in another namespace arrives. Each that is lost is sent again.
func (s *space) says(to *space, addr, what string) {
	s.t.Helper()
	var l net.PacketConn
	var c net.Conn
	err := errors.Join(to.in(func() (err error) { l, err = net.ListenPacket("udp", addr); return err }),
		s.in(func() (err error) { c, err = net.Dial("udp", addr); return err }))
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	defer l.Close()
	defer c.Close()
	await.Eventually(s.t, what+": a datagram arrives", func() bool {
		_, _ = fmt.Fprint(c, what)
		_ = l.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		b := make([]byte, 100)
		n, _, err := l.ReadFrom(b)
		return err == nil && string(b[:n]) == what
	})
}

// refusedSubnets: what does not go with a virtual subnet is refused, and names the field.
func refusedSubnets(t *testing.T, d *Driver) {
	t.Helper()
	for _, words := range [][]string{{"vsid=5"}, {"vsid=5001", "trust=on"}, {"vsid=5001", "rdma=off", "trust=on"}, {"vsid=5001", "vlan=3"}} {
		var field *api.FieldError
		q := api.SwitchAdapterRequest{Switch: "v", Function: "r1", Settings: words}
		err := d.SetSwitchAdapter(q)
		if !errors.As(err, &field) || field.Field != "vsid" {
			t.Errorf("%q: %v", words, err)
		}
	}
	if _, err := d.AddOverlayEntry(api.OverlayRequest{Kind: "address", Settings: []string{"adapter=none", "address=198.18.0.9/24"}}); err == nil {
		t.Error("an address of no adapter is taken")
	}
}
