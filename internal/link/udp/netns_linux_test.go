package udp

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/linktest"
)

// namespaces are two network namespaces, and links in them.
type namespaces struct{ *linktest.Namespaces }

func newNamespaces(t testing.TB, mtu int) *namespaces {
	t.Helper()
	return &namespaces{linktest.NewNamespaces(t, mtu)}
}

// in runs f in one of the namespaces.
func (n *namespaces) in(side int, f func() error) { n.In(side, f) }

// pair opens a link with the same configuration on each side.
func (n *namespaces) pair(cfg Config, v6 bool) (links [2]Link) {
	return n.pairOf([2]Config{cfg, cfg}, v6)
}

// pairOf opens a link on each side, each with its own configuration.
func (n *namespaces) pairOf(cfg [2]Config, v6 bool) [2]Link {
	return linktest.Pair(n.Namespaces, v6, func(side int, addr netip.Addr) (Link, error) {
		c := cfg[side]
		c.Addr = addr
		return Open(c)
	})
}
