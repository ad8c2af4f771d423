package ib

import (
	"net/netip"
	"testing"
)

func TestGIDs(t *testing.T) {
	v4 := GIDFromAddr(netip.MustParseAddr("192.0.2.1"))
	if got := v4.String(); got != "0000:0000:0000:0000:0000:ffff:c000:0201" {
		t.Errorf("v4 GID prints %s", got)
	}
	if !v4.IsIPv4() || v4.Addr() != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("address of %v is %v", v4, v4.Addr())
	}
	v6 := GIDFromAddr(netip.MustParseAddr("2001:db8::1%eth0"))
	if v6.IsIPv4() || v6.Addr() != netip.MustParseAddr("2001:db8::1") {
		t.Errorf("address of %v is %v", v6, v6.Addr())
	}
	if !GIDFromAddr(netip.Addr{}).IsZero() {
		t.Error("no address must be the reserved GID")
	}
	mac := [6]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}
	if got := GIDFromMAC(mac, 0).Addr().String(); got != "fe80::11:22ff:fe33:4455" {
		t.Errorf("MAC GID is %s", got)
	}
	if got := GIDFromMAC(mac, 0x123).Addr().String(); got != "fe80::11:2201:2333:4455" {
		t.Errorf("MAC GID on VLAN 0x123 is %s", got)
	}
	for addr, want := range map[string]bool{"224.0.0.1": true, "ff02::1": true, "10.0.0.1": false, "fe80::1": false} {
		if got := GIDFromAddr(netip.MustParseAddr(addr)).IsMulticast(); got != want {
			t.Errorf("%s multicast: %v", addr, got)
		}
	}
}

// TestGID_MAC: a MAC-based GID tells MAC and VLAN; no other does (annex A16).
func TestGID_MAC(t *testing.T) {
	mac := [6]byte{0x02, 1, 2, 3, 4, 5}
	for _, vlan := range []uint16{0, 1, 0x123, 4094} {
		if m, v, ok := GIDFromMAC(mac, vlan).MAC(); !ok || m != mac || v != vlan {
			t.Errorf("VLAN %d: %x, %d, %v", vlan, m, v, ok)
		}
	}
	for _, a := range []string{"fe80::1", "2001:db8::1:2ff:fe03:405", "::ffff:192.0.2.1", "fe80:0:0:1:1:2ff:fe03:405", "fe80::1:20f:ff03:405"} {
		if m, v, ok := GIDFromAddr(netip.MustParseAddr(a)).MAC(); ok {
			t.Errorf("%s is made of %x, %d", a, m, v)
		}
	}
}
