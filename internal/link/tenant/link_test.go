package tenant

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/overlay"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const subnet = 5001

func mac(n byte) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, n} }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// directory returns one in which 10.0.0.2 is at a MAC, and the function with MAC 1 has 10.0.0.1 and fd00::1.
func directory(second eth.MAC, more ...overlay.Record) *overlay.Directory {
	host := addr("192.0.2.2")
	return overlay.NewDirectory(&overlay.Tables{Records: append(more,
		overlay.Record{Subnet: subnet, Customer: addr("10.0.0.1"), MAC: mac(1), Provider: host},
		overlay.Record{Subnet: subnet, Customer: addr("fd00::1"), MAC: mac(1), Provider: host},
		overlay.Record{Subnet: subnet, Customer: addr("10.0.0.2"), MAC: second, Provider: host},
		overlay.Record{Subnet: subnet + 1, Customer: addr("10.0.0.2"), MAC: mac(9), Provider: host})})
}

func newLink(t *testing.T) *Link {
	t.Helper()
	wire, err := memlink.NewSwitch().Port(memlink.PortConfig{Addr: addr("192.0.2.1")})
	if err != nil {
		t.Fatal(err)
	}
	l := New(wire, subnet)
	t.Cleanup(func() { _ = wire.Close() })
	if err := l.Capabilities().Stations.SetStation(link.Station{MAC: mac(1), Prefixes: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("fd00::1/128")}}); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestPrepare: routes go to the MACs of the subnet's records, and follow them; what nobody has, and what is none of the function's, is
// refused.
func TestPrepare(t *testing.T) {
	l := newLink(t)
	route := func(src, dst string) (*frame.Route, error) {
		r := &frame.Route{Dst: addr(dst)}
		if src != "" {
			r.Src = addr(src)
		}
		return r, l.Prepare(r)
	}
	if _, err := route("10.0.0.1", "10.0.0.2"); !errors.Is(err, syscall.ENETUNREACH) {
		t.Errorf("without records: %v", err)
	}
	mtu := l.Capabilities().MTU
	l.Follow(directory(mac(2)), 50)
	if got := l.Capabilities().MTU; got != mtu-50 {
		t.Errorf("the MTU is %d, was %d", got, mtu)
	}
	if got := l.Customers(mac(1)); len(got) != 2 || got[0] != addr("10.0.0.1") {
		t.Errorf("the function has %v", got)
	}
	r, err := route("", "10.0.0.2")
	if err != nil || r.DstMAC != mac(2) || r.SrcMAC != mac(1) || r.Src != addr("10.0.0.1") || r.DstPort != eth.PortRoCEv2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, c := range []struct {
		dst  string
		want eth.MAC
	}{{"10.0.0.1", mac(1)}, {"239.1.2.3", eth.MAC{1, 0, 0x5e, 1, 2, 3}}} {
		if r, err := route("10.0.0.1", c.dst); err != nil || r.DstMAC != c.want {
			t.Errorf("%s: %+v, %v", c.dst, r, err)
		}
	}
	var field *FieldError
	for _, c := range [][2]string{{"10.0.0.7", "10.0.0.2"}, {"fd00::1", "10.0.0.2"}, {"10.0.0.1", "0.0.0.0"}} {
		if _, err := route(c[0], c[1]); !errors.As(err, &field) {
			t.Errorf("%v: %v", c, err)
		}
	}
	other, err := route("10.0.0.1", "10.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	r.Release()
	r.Release()
	l.Follow(directory(mac(3)), 50)
	if other.DstMAC != mac(3) || r.DstMAC != mac(2) {
		t.Errorf("a route goes to %v, one that is released to %v", other.DstMAC, r.DstMAC)
	}
	if err := l.Prepare(other); err != nil || len(l.paths) != 3 {
		t.Errorf("prepared again: %v, %d paths", err, len(l.paths))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l.Link.Capabilities().MTU != mtu {
		t.Error("the wire's link has changed")
	}
}

// TestResolve: it waits for a record, and no longer than it may.
func TestResolve(t *testing.T) {
	l := newLink(t)
	l.Follow(directory(mac(2)), tunnel.HeaderLen)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := l.Resolve(ctx, addr("10.0.0.9")); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("nobody has it: %v", err)
	}
	if err := l.Resolve(t.Context(), addr("10.0.0.2")); err != nil {
		t.Error(err)
	}
	done := make(chan error)
	go func() { done <- l.Resolve(t.Context(), addr("10.0.0.9")) }()
	l.Follow(directory(mac(2)), 50)
	l.Follow(directory(mac(2), overlay.Record{Subnet: subnet, Customer: addr("10.0.0.9"), MAC: mac(5), Provider: addr("192.0.2.3")}), 50)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
