package udp

import (
	"errors"
	"net/netip"
	"runtime"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/packet"
	"github.com/softvpi/softvpi/internal/testbed/linktest"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// variant is one way to open a link. Every test of behaviour runs on each.
type variant struct {
	name string
	v6   bool
	cfg  Config
}

// variants returns the ways to open a link on this platform.
func variants() []variant {
	all := []variant{
		{"portable/v4", false, Config{Portable: true}},
		{"portable/v6", true, Config{Portable: true}},
	}
	if runtime.GOOS != "linux" {
		return all
	}
	return append(all, []variant{
		{"bursts/v4", false, Config{}},
		{"bursts/v6", true, Config{}},
		{"bursts, no frames/v4", false, Config{Frames: packet.Off}},
		{"bursts, no frames/v6", true, Config{Frames: packet.Off}},
		{"no segmentation/v4", false, Config{NoSegmentation: true}},
		{"no coalescing/v4", false, Config{NoCoalescing: true}},
		{"singly/v4", false, Config{NoSegmentation: true, NoCoalescing: true}},
		{"singly/v6", true, Config{NoSegmentation: true, NoCoalescing: true}},
	}...)
}

// each runs a test on every variant.
func each(t *testing.T, test func(t *testing.T, v variant)) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) { test(t, v) })
	}
}

// open opens a link at an address of its own, or on [::1] at a port of its own.
func (v variant) open(t testing.TB) Link {
	t.Helper()
	cfg := v.cfg
	if cfg.Port == 0 {
		cfg.Port = loopback.Port()
	}
	cfg.Addr = loopback.Addr()
	if v.v6 {
		cfg.Addr = netip.IPv6Loopback()
	}
	if runtime.GOOS == "darwin" && !v.v6 {
		cfg.Addr = netip.MustParseAddr("127.0.0.1")
	}
	l, err := Open(cfg)
	if v.v6 && errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Skip("this host has no IPv6 loopback address")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// What tests of links share.
var (
	packets     = linktest.Packets
	packetBytes = linktest.Bytes
	numbered    = linktest.Numbered
	payloadsOf  = linktest.Payloads
	sendAll     = linktest.SendAll
	receiveN    = linktest.ReceiveN
	receiveSome = linktest.ReceiveSome
	drain       = linktest.Drain
	tend        = linktest.Tend
)

func routeTo(t testing.TB, from, to Link) *frame.Route {
	t.Helper()
	return linktest.Route(t, from, to.Status().Addr)
}

// socketOf returns the number of the socket that sends for a prepared route.
func socketOf(r *frame.Route) uint16 { return r.Path.(*path).socket }
