package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestPortsOfOneDevice: the ports of a device have numbers and GUIDs of their own and the device's node GUID: that of its
// first port, or of its node in the fabric if a port is InfiniBand.
func TestPortsOfOneDevice(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	first := h.add(t, AdapterConfig{Addr: loopback.Addr(), Device: "d", Port: 1})
	second := h.add(t, AdapterConfig{Addr: loopback.Addr(), Device: "d", Port: 2})
	other := h.add(t, AdapterConfig{Addr: loopback.Addr()})
	p := newProgram(t, h, first)
	nodes := map[uint32]uint64{}
	see := func() []AdapterStatus {
		t.Helper()
		for _, i := range []uint32{first, second, other} {
			info, err := p.c.Port(bg, i)
			p.check(err)
			nodes[i] = info.NodeGUID
		}
		return h.Snapshot().Adapters
	}
	s := see()
	if a, b, c := s[first], s[second], s[other]; a.Info.Port != 1 || b.Info.Port != 2 || c.Info.Port != 1 || a.Info.GUID == b.Info.GUID ||
		a.NodeGUID != a.Info.GUID || b.NodeGUID != a.Info.GUID || c.NodeGUID != c.Info.GUID {
		t.Errorf("ports %+v, %+v and %+v", a.Info, b.Info, c.Info)
	}
	if nodes[first] != s[first].Info.GUID || nodes[second] != nodes[first] || nodes[other] != s[other].Info.GUID {
		t.Errorf("the node GUIDs are %x", nodes)
	}
	f := newIBFabric(t, 2, subnet.Config{})
	third := f.add(h, 1, AdapterConfig{Device: "d", Port: 3})
	s = see()
	if node := h.adapters[third].ib.Settings().NodeGUID; node == 0 || nodes[first] != node || nodes[second] != node ||
		s[third].NodeGUID != node || s[third].Info.GUID == node {
		t.Errorf("with an InfiniBand port the node GUIDs are %x, want %x of its node", nodes, node)
	}
}
