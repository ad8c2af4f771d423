package overlay

import (
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// TestRoute: what is sent to the router goes where the routes of the domain say, into another virtual subnet too, with one hop less, and
// never into another domain.
func TestRoute(t *testing.T) {
	for _, c := range []struct {
		what, to string
		from     Port
		ttl      uint8
		subnet   uint32
		dst      eth.MAC
		why      Reason
	}{
		{"to another subnet", "10.0.1.23", redA, 64, green, mac(23), 0},
		{"by a next hop", "203.0.113.5", redA, 64, red, mac(21), 0},
		{"in its own", "10.0.0.21", redA, 64, red, mac(21), 0},
		{"where nobody is", "10.0.1.99", redA, 64, 0, eth.MAC{}, NoRecord},
		{"with no hop left", "10.0.1.23", redA, 1, 0, eth.MAC{}, HopLimit},
		{"of a domain without routes", "10.0.1.23", blueA, 64, 0, eth.MAC{}, NoRoute},
	} {
		h := newHost(t, tunnel.VXLAN, true)
		v, w := h.send(c.from, packet(Router, mac(11), c.to, "10.0.0.11", 5, 0, c.ttl))
		if v.Why != c.why || (w != nil) != (c.why == 0) {
			t.Errorf("%s: %+v", c.what, v)
			continue
		}
		if w == nil {
			continue
		}
		var x eth.Headers
		var f tunnel.Frame
		x.Parse(w)
		if f.Find(&x, w, tunnel.Recognition{VXLANPort: 4789}); f.ID != c.subnet {
			t.Errorf("%s: into %d", c.what, f.ID)
		}
		in := w[f.At:]
		ip := eth.IPv4(in[eth.EthernetLen:])
		if eth.MAC(in) != c.dst || eth.MAC(in[6:]) != Router || ip.TTL() != c.ttl-1 || !ip.ChecksumOK() || !v.Changed ||
			h.Counters().Routed != 1 {
			t.Errorf("%s: the frame inside is % x", c.what, in)
		}
	}
	h := newHost(t, tunnel.VXLAN, true)
	if v, _ := h.send(redA, packet(Router, mac(11), "10.0.0.12", "10.0.0.11", 5, 0, 9)); !v.Local || v.To != redB || !v.Changed {
		t.Errorf("to an adapter here: %+v", v)
	}
	if v, _ := h.send(redA, append(append([]byte{}, Router[:]...), make([]byte, 60)...)); v.Why != Malformed {
		t.Errorf("no packet: %+v", v)
	}
}
