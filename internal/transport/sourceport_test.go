package transport

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestSourcePort: packets from another UDP port than the first one carried out came from are dropped and counted, of
// RC in both directions and of UC, one by one and in the middle of a message, unless the check is off.
func TestSourcePort(t *testing.T) {
	for _, typ := range []command.QPType{command.RC, command.UC} {
		for _, any := range []bool{false, true} {
			n := sim.New(1)
			n.Default.Delay = time.Microsecond
			ha, hb := newHost(t, n, "10.0.0.1", Config{AnySourcePort: any}), newHost(t, n, "10.0.0.2",
				Config{FirstQPN: 0x1000, AnySourcePort: any})
			a, b := ha.qp(typ, QPConfig{}), hb.qp(typ, QPConfig{})
			connect(a, b, defaultConnection())
			mem := make([]byte, regionSize)
			a.region(regionAt, pattern(regionSize, 3), allowAll)
			key := b.region(regionAt, mem, allowAll).Key
			a.do(ring.OpWrite, 3000)
			n.Pass(time.Millisecond)
			if len(a.comps) != 1 || a.comps[0].Status != ring.Success {
				t.Fatalf("%v: completions %+v", typ, a.comps)
			}
			forged := writeOnly(b, b.q.resp.psn, key)
			if typ == command.UC {
				forged[0] |= byte(ucBits)
			}
			forged[len(forged)-1] = 0xee
			ack := make([]byte, ib.BTHLen+ib.AETHLen)
			ib.BTH(ack).Encode(ib.RCAcknowledge, false, false, 0, ib.PKeyDefault, ib.QPN(a.q.num), a.q.req.una)
			n.Inject(b.port, netip.AddrPortFrom(a.addr, pairPort+1), n.Now(), forged)
			want := uint64(1)
			if typ == command.RC {
				n.Inject(a.port, netip.AddrPortFrom(b.addr, pairPort+1), n.Now(), ack)
				want++
			}
			n.Pass(time.Millisecond)
			got := ha.e.counters.WrongSourcePort + hb.e.counters.WrongSourcePort
			if any {
				want = 0
			}
			if got != want || (mem[3] == 0xee) != any {
				t.Errorf("%v, any port %v: %d packets count as from a wrong port, want %d; carried out: %v", typ, any, got, want,
					mem[3] == 0xee)
			}
		}
	}
}
