package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/internal/tagmatch"
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

// TestTake_Connected: a message of each service waits that finds no receive: of XRC for one of the shared queue that it names, of a
// queue that matches tags unless a tagged buffer takes it. A second one of a batch waits although the first has taken the only receive.
func TestTake_Connected(t *testing.T) {
	eager := make([]byte, tagmatch.HeaderLen+8)
	tagmatch.Header(eager).Encode(tagmatch.Eager, 0, 7)
	for _, c := range []struct {
		name     string
		typ      command.QPType
		tagged   bool // the receiver matches tags, and waits for tag 7
		data     []byte
		op       ring.WROp
		receives int
		waits    []bool // for each of the messages, if it is handed over alone
		taken    int    // of the batch
	}{
		{"RC", command.RC, false, nil, ring.OpSend, 1, []bool{false, true}, 1},
		{"RC write with immediate data", command.RC, false, nil, ring.OpWriteImm, 1, []bool{false, true}, 1},
		{"RC write", command.RC, false, nil, ring.OpWrite, 0, []bool{false, false}, 2},
		{"UC", command.UC, false, nil, ring.OpSend, 1, []bool{false, true}, 1},
		{"XRC", command.XRCInitiator, false, nil, ring.OpSend, 1, []bool{false, true}, 1},
		{"XRC without receives", command.XRCInitiator, false, nil, ring.OpSend, 0, []bool{true, true}, 0},
		{"tags, nothing tagged", command.RC, true, nil, ring.OpSend, 0, []bool{true, true}, 0},
		{"tags, one matches", command.RC, true, eager, ring.OpSend, 0, []bool{false, true}, 1},
		{"tags, one matches and one has a receive", command.RC, true, eager, ring.OpSend, 1, []bool{false, false}, 2},
	} {
		for _, together := range []bool{true, false} {
			var list *tagmatch.List
			if c.tagged {
				list = tagmatch.New(8)
			}
			a := newHost(t, nil, "10.0.0.1", Config{}).qp(c.typ, QPConfig{})
			b := newHost(t, nil, "10.0.0.2", Config{FirstQPN: 0x100}).qp(c.typ.Counterpart(), QPConfig{Tags: list, SRQ: c.tagged})
			connect(a, b, defaultConnection())
			a.region(regionAt, make([]byte, regionSize), allowAll)
			r := b.region(regionAt, make([]byte, regionSize), allowAll)
			if c.tagged {
				e := tagmatch.Entry{ID: 70, Tag: 7, Mask: ^uint64(0), NumSGE: 1}
				e.SGE[0] = ring.SGE{Addr: regionAt, Length: 64, LKey: r.Key}
				if _, err := list.Add(&e); err != nil {
					t.Fatal(err)
				}
			}
			for range c.receives {
				b.postRecv(ring.RecvWR{NumSGE: 1, SGE: b.sgeAt(regionAt, 64)})
			}
			for range 2 {
				wr := ring.SendWR{Op: c.op, Flags: ring.Inline, RemoteAddr: regionAt, RKey: r.Key, Inline: c.data}
				if c.data == nil {
					wr.Inline = []byte("hello")
				}
				a.post(wr)
			}
			out := newWire().out
			in := arrivals(out[:a.e.Transmit(0, 0, out)])
			if len(in) != 2 {
				t.Fatalf("%s: %d packets", c.name, len(in))
			}
			number := b.q.num
			if c.typ == command.XRCInitiator {
				number = testSRQ
			}
			if together {
				n, queue := b.e.Take(0, in)
				if n != c.taken || n < 2 && queue != number {
					t.Errorf("%s: %d of two are taken, the next waits for %#x", c.name, n, queue)
				}
				continue
			}
			for i := range in {
				n, queue := b.e.Take(0, in[i:i+1])
				if (n == 0) != c.waits[i] || n == 0 && queue != number {
					t.Errorf("%s: message %d: %d are taken, it waits for %#x", c.name, i, n, queue)
				}
				if n == 0 {
					break // the next ones are behind it
				}
			}
			if k := b.e.Counters(); k.ResponderRNRNAK != 0 {
				t.Errorf("%s: %d RNR NAKs", c.name, k.ResponderRNRNAK)
			}
		}
	}
}
