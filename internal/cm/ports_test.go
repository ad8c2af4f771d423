package cm

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

func TestUDPSourcePort(t *testing.T) {
	for _, c := range []struct{ src, dst, want uint16 }{{0, 0, 0xc000}, {0xa01a, 0x1d2f, 0xfd35}, {7, 7, 0xc000}, {0xffff, 0, 0xffff}} {
		if got := udpSourcePort(c.src, c.dst); got != c.want || got != udpSourcePort(c.dst, c.src) {
			t.Errorf("%#x and %#x: %#x, want %#x", c.src, c.dst, got, c.want)
		}
	}
}

// TestEphemeralPorts: a port that a connection was given serves one connection per remote end; a port that was asked
// for serves nobody else.
func TestEphemeralPorts(t *testing.T) {
	const n = lastEphemeral - firstEphemeral + 1
	p := ports{}
	local := netip.MustParseAddrPort("10.0.0.1:0")
	first, second := netip.MustParseAddrPort("10.0.0.2:7"), netip.MustParseAddrPort("10.0.0.2:8")
	seen := map[uint16]bool{}
	var held []*binding
	for range n {
		b, err := p.bind(command.TCP, local, first, BindOptions{}, 12345)
		if err != nil || seen[b.local.Port()] {
			t.Fatal(b, err)
		}
		seen[b.local.Port()] = true
		held = append(held, b)
		if len(held) == 300 { // the search below is quadratic: take the rest by number
			break
		}
	}
	for port := firstEphemeral; port <= lastEphemeral; port++ {
		if !seen[uint16(port)] {
			b, err := p.bind(command.TCP, netip.AddrPortFrom(local.Addr(), uint16(port)), first, BindOptions{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, b)
		}
	}
	if _, err := p.bind(command.TCP, local, first, BindOptions{}, 1); !errors.Is(err, ErrNoPorts) {
		t.Errorf("to the same remote end: error %v, want %v", err, ErrNoPorts)
	}
	if _, err := p.bind(command.TCP, local, netip.AddrPort{}, BindOptions{}, 1); !errors.Is(err, ErrNoPorts) {
		t.Errorf("to any remote end: error %v, want %v", err, ErrNoPorts)
	}
	if b, err := p.bind(command.TCP, local, second, BindOptions{}, 1); err != nil {
		t.Errorf("to another remote end: %v", err)
	} else {
		held = append(held, b)
	}
	if b, err := p.bind(command.UDP, local, first, BindOptions{}, 1); err != nil {
		t.Errorf("in the other space: %v", err)
	} else {
		held = append(held, b)
	}
	for _, b := range held {
		p.release(b)
	}
	if len(p) != 0 {
		t.Errorf("%d ports are still bound after all were released", len(p))
	}
}

func TestCovers(t *testing.T) {
	addr := func(s string) netip.Addr {
		if s == "" {
			return netip.Addr{}
		}
		return netip.MustParseAddr(s)
	}
	for _, c := range []struct {
		listener, at string
		only         bool
		want         bool
	}{
		{"", "10.0.0.1", false, true}, {"", "fd00::1", false, true}, {"::", "10.0.0.1", false, true}, {"::", "fd00::1", false, true},
		{"::", "10.0.0.1", true, false}, {"::", "fd00::1", true, true}, {"::", "0.0.0.0", true, false},
		{"0.0.0.0", "10.0.0.1", false, true}, {"0.0.0.0", "fd00::1", false, false},
		{"10.0.0.1", "10.0.0.1", false, true}, {"10.0.0.1", "10.0.0.2", false, false}, {"10.0.0.1", "0.0.0.0", false, false},
	} {
		b := binding{local: netip.AddrPortFrom(addr(c.listener), 1), BindOptions: BindOptions{IPv6Only: c.only}}
		if got := b.covers(addr(c.at)); got != c.want {
			t.Errorf("%q covers %q (IPv6 only: %t): %t, want %t", c.listener, c.at, c.only, got, c.want)
		}
	}
}

// TestSharedPorts: ids that all have REUSEADDR share a port until one of them listens (rdma_set_option(3)).
func TestSharedPorts(t *testing.T) {
	p := ports{}
	local, reuse := netip.MustParseAddrPort("10.0.0.1:7000"), BindOptions{Reuse: true}
	first, err := p.bind(command.TCP, local, netip.AddrPort{}, reuse, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.bind(command.TCP, local, netip.AddrPort{}, BindOptions{}, 0); !errors.Is(err, ErrPortInUse) {
		t.Errorf("a second id without the option: error %v, want %v", err, ErrPortInUse)
	}
	second, err := p.bind(command.TCP, local, netip.AddrPort{}, reuse, 0)
	if err != nil {
		t.Fatalf("a second id with the option: %v", err)
	}
	if err := p.alone(first); !errors.Is(err, ErrPortInUse) {
		t.Errorf("listening while the port is shared: error %v, want %v", err, ErrPortInUse)
	}
	p.release(second)
	if err := p.alone(first); err != nil {
		t.Errorf("listening alone: %v", err)
	}
	if _, err := p.bind(command.TCP, local, netip.AddrPort{}, reuse, 0); !errors.Is(err, ErrPortInUse) {
		t.Errorf("an id beside one that listens: error %v, want %v", err, ErrPortInUse)
	}
}
