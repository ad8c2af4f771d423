package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestNearRoutes: a route is near if its destination is an adapter of the same host in the same network and at the
// same UDP port.
func TestNearRoutes(t *testing.T) {
	h, g := newHost(t, Config{Seed: 1}), newHost(t, Config{Seed: 2})
	a := h.add(t, AdapterConfig{Addr: loopback.Addr(), Path: PathWire})
	own, other := loopback.Addr(), loopback.Addr()
	h.add(t, AdapterConfig{Addr: own})
	h.add(t, AdapterConfig{Addr: other, UDPPort: 4799})
	far := loopback.Addr()
	g.add(t, AdapterConfig{Addr: far})
	h.lock()
	defer h.unlock()
	x := h.adapters[a]
	for _, c := range []struct {
		name string
		addr command.Addr
		near bool
	}{
		{"itself", command.AddrFrom(x.cfg.Addr), true},
		{"an adapter of this host", command.AddrFrom(own), true},
		{"one with another UDP port", command.AddrFrom(other), false},
		{"an adapter of another host", command.AddrFrom(far), false},
		{"nobody", command.AddrFrom(loopback.Addr()), false},
	} {
		r, err := x.route(command.AddressVector{Addr: c.addr})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r.Near != c.near {
			t.Errorf("%s: near is %v, want %v", c.name, r.Near, c.near)
		}
	}
}
