package tun

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

func open(t *testing.T, name string) *Device {
	t.Helper()
	d, err := Open(name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
		t.Skip("needs /dev/net/tun")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// The device reports what ip(8) sets: addresses, routes with a gateway, up and down. Packets go both ways.
func TestDevice(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	d := open(t, "ib0")
	if d.Name() != "ib0" {
		t.Fatalf("the device is called %q, want ib0", d.Name())
	}
	changes := make(chan struct{}, 64)
	if err := d.Watch(func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.SetMTU(2044); err != nil {
		t.Fatal(err)
	}
	l, err := netlink.LinkByName("ib0")
	if at, failed := d.Location(); failed != nil || err != nil || at.Name != "ib0" || at.Index != l.Attrs().Index || at.Namespace == 0 {
		t.Errorf("the device is at %+v (%v), want ib0 as ip(8) shows it", at, failed)
	}
	if err != nil || l.Attrs().MTU != 2044 {
		t.Fatalf("the link is %+v, %v; want the MTU 2044", l, err)
	}
	addr, _ := netlink.ParseAddr("10.9.0.1/24")
	if err := errors.Join(netlink.AddrAdd(l, addr), netlink.LinkSetUp(l)); err != nil {
		t.Fatal(err)
	}
	_, dst, _ := net.ParseCIDR("192.0.2.0/24")
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Gw: net.IPv4(10, 9, 0, 254)}); err != nil {
		t.Fatal(err)
	}
	want := Route{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParseAddr("10.9.0.254")}
	for timeout := time.After(time.Minute); ; {
		s, err := d.Settings()
		if err != nil {
			t.Fatal(err)
		}
		if s.Up && slices.Contains(s.Prefixes, netip.MustParsePrefix("10.9.0.1/24")) && slices.Contains(s.Routes, want) {
			break
		}
		select {
		case <-changes:
		case <-timeout:
			t.Fatalf("the settings stay %+v", s)
		}
	}
	if err := d.SetCarrier(false); err != nil {
		t.Error("SetCarrier(false): ", err)
	}
	if err := d.SetCarrier(true); err != nil {
		t.Error("SetCarrier(true): ", err)
	}

	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(10, 9, 0, 1), Port: 4000})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	packets := make(chan []byte, 1)
	go d.Each(func(_ offload.Header, p []byte) {
		if len(p) > 28 && p[9] == 17 && bytes.Equal(p[28:], []byte("out")) {
			select {
			case packets <- bytes.Clone(p):
			default: // a datagram that was sent again
			}
		}
	}, func() {})
	b := sentOut(t, c, packets)
	// The datagram with its addresses swapped is the answer: the IP checksum stays correct, and the UDP checksum may
	// be left out.
	for i := range 4 {
		b[12+i], b[16+i] = b[16+i], b[12+i]
	}
	b[20], b[21], b[22], b[23], b[26], b[27] = b[22], b[23], b[20], b[21], 0, 0
	if err := d.Write(offload.Header{}, [][]byte{b[:9], b[9:]}); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, from, err := c.ReadFromUDP(make([]byte, 100)); err != nil || n != 3 || from.Port != 5000 {
		t.Errorf("%d bytes from %v, %v; want 3 from port 5000", n, from, err)
	}
}

// sentOut sends a datagram until it leaves by the device, and returns it: the kernel drops packets until its link
// watch has seen the carrier.
func sentOut(t *testing.T, c *net.UDPConn, packets <-chan []byte) []byte {
	t.Helper()
	for range 1200 {
		if _, err := c.WriteToUDP([]byte("out"), &net.UDPAddr{IP: net.IPv4(10, 9, 0, 2), Port: 5000}); err != nil {
			t.Fatal(err)
		}
		select {
		case b := <-packets:
			return b
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("no datagram leaves by the device")
	return nil
}

// The device follows an interface that is moved to another network namespace.
func TestMove(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	d := open(t, "ib0")
	changes := make(chan struct{}, 64)
	if err := d.Watch(func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}); err != nil {
		t.Fatal(err)
	}
	l, err := netlink.LinkByName("ib0")
	if err != nil {
		t.Fatal(err)
	}
	ns, err := netns.New() // the thread changes to the new namespace
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	here, err := netlink.NewHandleAt(d.at.space)
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if err := here.LinkSetNsFd(l, int(ns)); err != nil {
		t.Fatal(err)
	}
	if l, err = netlink.LinkByName("ib0"); err != nil {
		t.Fatal(err)
	}
	addr, _ := netlink.ParseAddr("10.9.0.7/24")
	if err := errors.Join(netlink.AddrAdd(l, addr), netlink.LinkSetUp(l)); err != nil {
		t.Fatal(err)
	}
	for timeout := time.After(time.Minute); ; {
		if s, err := d.Settings(); err == nil && s.Up && slices.Contains(s.Prefixes, netip.MustParsePrefix("10.9.0.7/24")) {
			break
		}
		select {
		case <-changes:
		case <-timeout:
			t.Fatal("no change of the interface is reported after the move")
		}
	}
	if err := d.SetMTU(1800); err != nil {
		t.Error("SetMTU after the move: ", err)
	}
	if l, err = netlink.LinkByName("ib0"); err != nil || l.Attrs().MTU != 1800 {
		t.Errorf("the link is %+v, %v; want the MTU 1800", l, err)
	}
}

// Close removes the interface and ends an Each that waits.
func TestClose(t *testing.T) {
	systemtest.Mark(t)
	namespace.Own(t)
	d := open(t, "")
	done := make(chan error)
	go func() {
		done <- d.Each(func(offload.Header, []byte) {}, func() {})
	}()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Errorf("Each ends with %v, want %v", err, os.ErrClosed)
	}
	if _, err := netlink.LinkByName(d.Name()); err == nil {
		t.Error("the interface is still there after Close")
	}
	if _, err := Open("a-name-of-sixteen"); err == nil {
		t.Error("a name that is too long is accepted")
	}
}
