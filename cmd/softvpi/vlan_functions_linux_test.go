package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// TestVLAN_OfFunction: a VLAN interface of a virtual function is a device of that one's programs, and a network interface beside its own;
// both reach the VLAN interface of another host's adapter, and nobody outside the VLAN. A program without the function does not find it.
func TestVLAN_OfFunction(t *testing.T) {
	systemtest.Mark(t)
	t.Parallel()
	h := linuxHosts(t, 1500)
	a, b := h[0], h[1]
	for _, x := range h {
		x.up(t)
	}
	a.ok(t, "vf", "create", "port", "red", "address=192.0.2.11/24", "tap=red0", "netns="+a.ns)
	a.ok(t, "vlan_config", "addvlan", "red", "V", "10", "3", "address=198.51.100.1/24")
	b.ok(t, "vlan_config", "addvlan", "port", "V", "10", "0", "address=198.51.100.2/24")
	b.shell(t, "sysctl -q net.ipv4.conf.all.arp_ignore=1; ip addr replace 203.0.113.2/24 dev nic.10; ip link set nic.10 up; "+
		"ip addr replace 203.0.113.3/24 dev nic; ip link set nic up")
	a.shell(t, "ip addr replace 203.0.113.1/24 dev red0.10; ip link set red0.10 up")
	a.shell(t, "ping -c 3 -i 0.05 -W 5 203.0.113.2")
	a.shell(t, "! ping -c 2 -i 0.05 -W 0.2 203.0.113.3")
	mac := strings.Fields(a.shell(t, "cat /sys/class/net/red0.10/address"))[0]
	if near := b.shell(t, "ip neigh show 203.0.113.1"); !strings.Contains(near, mac) {
		t.Errorf("the other host knows %q, want %s", near, mac)
	}
	tenant := a.place
	tenant.env = append(slices.Clone(a.env), "SOFTVPI_FUNCTION=red")
	if list := tenant.ok(t, "ndadapterinfo"); !strings.Contains(list, "198.51.100.1") {
		t.Errorf("the function's programs have %s", list)
	}
	if list := a.ok(t, "ndadapterinfo"); strings.Contains(list, "198.51.100.1") {
		t.Errorf("others have %s", list)
	}
	server := tenant.spawn(t, "nd_rping", "-s", "-a", "198.51.100.1")
	server.until(t, "listening")
	if status, out, errs := b.run(t, "nd_rping", "-c", "-V", "-a", "198.51.100.1", "-I", "198.51.100.2", "-C", "5"); status != 0 {
		t.Fatalf("%d: %s%s", status, out, errs)
	}
	if text := a.ok(t, "vlan_config", "queryvlan", "red", "V"); !strings.Contains(text, "Vlan Id         : 10") {
		t.Errorf("queryvlan prints %s", text)
	}
	a.ok(t, "vlan_config", "removevlan", "red", "V")
	a.shell(t, "! ip link show red0.10")
}
