package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestTake: of packets those wait that find no receive, and those behind them; such as take none do not: with another Q_Key or P_Key, for
// no queue pair, or of another operation. Nothing has happened for a packet that waits.
func TestTake(t *testing.T) {
	n := sim.New(1)
	var routes []*frame.Route
	a, _ := datagramEnd(t, n, "10.0.0.1", &routes)
	b, _ := datagramEnd(t, n, "10.0.0.2", &routes)
	packet := func(op ib.Opcode, qpn uint32, pkey ib.PKey, qkey uint32) frame.In {
		d := make([]byte, ib.BTHLen+ib.DETHLen+8)
		ib.BTH(d).Encode(op, false, false, 0, pkey, ib.QPN(qpn), 0)
		ib.DETH(d[ib.BTHLen:]).Encode(qkey, ib.QPN(a.q.num))
		return frame.In{Data: d, Src: a.addr, Dst: b.addr}
	}
	const qkey = 0x11111111
	good := packet(ib.UDSendOnly, b.q.num, ib.PKeyDefault, qkey)
	for _, c := range []struct {
		name     string
		receives int
		in       []frame.In
		want     int
	}{
		{"no receive", 0, []frame.In{good}, 0},
		{"one of two", 1, []frame.In{good, good}, 1},
		{"one behind one that waits", 0, []frame.In{good, packet(ib.UDSendOnly, 0x777, ib.PKeyDefault, qkey)}, 0},
		{"others before it", 0, []frame.In{packet(ib.UDSendOnly, b.q.num, ib.PKeyDefault, 5), packet(ib.UDSendOnly, b.q.num, 0x1234, qkey),
			packet(ib.UDSendOnly, 0x777, ib.PKeyDefault, qkey), packet(ib.RCAcknowledge, b.q.num, ib.PKeyDefault, qkey),
			{Data: good.Data[:5]}, {Data: good.Data[:ib.BTHLen+2]}, good}, 6},
	} {
		for i := range c.receives {
			b.postRecv(ring.RecvWR{ID: uint64(i), NumSGE: 1, SGE: b.sgeAt(0x2000, 200)})
		}
		before := b.e.counters
		got, queue := b.e.Take(0, c.in)
		if got != c.want || got < len(c.in) && queue != b.q.num {
			t.Errorf("%s: %d are taken, and one waits for QP %#x", c.name, got, queue)
		}
		if x := b.e.counters; x.InboundPackets-before.InboundPackets != uint64(c.want) || x.DiscardedUD != before.DiscardedUD {
			t.Errorf("%s: %d packets counted, %d datagrams lost", c.name, x.InboundPackets-before.InboundPackets, x.DiscardedUD)
		}
	}
}
