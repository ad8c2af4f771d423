package packet_test

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/udp"
	"github.com/softvpi/softvpi/internal/testbed/linktest"
)

// The tests of files link_* see the package at work, in the links that use it.

const usesFrames = "short packets as frames"

// pairOf opens a link on each side.
func pairOf(n *linktest.Namespaces, v6 bool) [2]udp.Link {
	return linktest.Pair(n, v6, func(_ int, addr netip.Addr) (udp.Link, error) { return udp.Open(udp.Config{Addr: addr}) })
}

func routeTo(t testing.TB, from, to udp.Link) *frame.Route {
	t.Helper()
	return linktest.Route(t, from, to.Status().Addr)
}
