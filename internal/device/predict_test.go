package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestUnpredictable: what somebody must know to forge a packet or a message of the connection manager is random: QP
// numbers, the PSNs with which connections start, and the ids of connections. Without a seed each adapter has others.
func TestUnpredictable(t *testing.T) {
	sw := memlink.NewSwitch()
	add := func() *program {
		h := newHost(t, Config{})
		addr := loopback.Addr()
		p, err := sw.Port(memlink.PortConfig{Addr: addr, Notify: h.Wake})
		if err != nil {
			t.Fatal(err)
		}
		return newProgram(t, h, h.add(t, AdapterConfig{Addr: addr, Link: p}))
	}
	x, y := add(), add()
	seen := map[string]map[uint32]bool{}
	last, near := map[string]uint32{}, 0
	for range 24 {
		c := connect(x.idleQP(), y.idleQP())
		a, b := c.a.info(), c.b.info()
		ids := func(p *program) (id uint32) {
			p.host.lock()
			defer p.host.unlock()
			for n := range p.host.adapters[p.adapter].ids {
				if !seen["id of "+p.addr.String()][uint32(n)] {
					id = uint32(n)
				}
			}
			return id
		}
		for what, n := range map[string]uint32{
			"QPN of " + x.addr.String(): a.Number, "QPN of " + y.addr.String(): b.Number,
			"PSN of " + x.addr.String(): a.Attr.SQPSN, "PSN of " + y.addr.String(): b.Attr.SQPSN,
			"id of " + x.addr.String(): ids(x), "id of " + y.addr.String(): ids(y),
		} {
			if seen[what] == nil {
				seen[what] = map[uint32]bool{}
			}
			if d := int32(n - last[what]); d < 64 && d > -64 {
				near++
				t.Logf("%s is %#x after %#x", what, n, last[what])
			}
			seen[what][n], last[what] = true, n
		}
	}
	if near > 2 { // one such in 130,000 is chance
		t.Errorf("%d numbers are near the one before", near)
	}
}
