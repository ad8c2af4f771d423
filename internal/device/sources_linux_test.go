package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/link"
)

// TestEveryConnectionHasItsSourcePort_WholeFrames: on a wire of whole frames no port is anybody's, so that every connection has
// the one computed for it, and none another.
func TestEveryConnectionHasItsSourcePort_WholeFrames(t *testing.T) {
	eachStation(t, func(t *testing.T, stations [2]link.Station) {
		x, y := whole{"datagrams", overDatagrams}.on(stations).make(t, AdapterConfig{Path: PathWire})
		computed := map[uint32]uint16{}
		for range 40 {
			c := connect(x.idleQP(), y.idleQP())
			i, err := x.c.CMQuery(bg, c.idA)
			x.check(err)
			computed[c.a.q.Number] = i.Local.Port ^ c.serverPort | 0xc000
		}
		for _, q := range x.host.Snapshot().Adapters[x.adapter].QPs {
			if q.SrcPort != computed[q.Number] {
				t.Errorf("a connection sends from port %#x, want %#x", q.SrcPort, computed[q.Number])
			}
		}
		if n := counter(t, x, "Link routes with another source port"); n != 0 {
			t.Errorf("%d have another", n)
		}
	})
}
