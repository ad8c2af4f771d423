package device

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/eth"
)

// largeEnd is a raw packet QP that has room for large sends in its requests.
func (p *program) largeEnd() *rawEnd {
	p.t.Helper()
	r := command.CreateQP{Type: command.RawPacket, SendDepth: 8, RecvDepth: 64, SendSGE: 2, RecvSGE: 1, Inline: 256}
	q := &rawEnd{pair: p.qp(r, p.cq(256)), b: p.buffer(1 << 17)}
	for _, s := range []command.QPState{command.Init, command.RTR, command.RTS} {
		p.check(p.c.ModifyQP(bg, command.ModifyQP{QP: q.q.Handle, Mask: command.MaskState, State: s}))
	}
	return q
}

// tcpHead makes the headers of a TCP packet with FIN and PSH, whose lengths and checksums are nonsense, as a program leaves them.
func tcpHead(dst, src [6]byte, v6, tagged bool) (head []byte) {
	e := eth.Ethernet{Dst: dst, Src: src, Tagged: tagged, TCI: 5, Type: eth.TypeIPv4}
	if v6 {
		e.Type = eth.TypeIPv6
	}
	head = make([]byte, e.Len())
	e.Put(head)
	if v6 {
		head = append(append(head, 0x60, 0, 0, 0, 0xff, 0xff, 6, 64), make([]byte, 32)...)
	} else {
		head = append(head, 0x45, 0, 0xff, 0xff, 0, 7, 0, 0, 64, 6, 1, 2, 10, 0, 0, 1, 10, 0, 0, 2)
	}
	tcp := make([]byte, 32) // with 12 bytes of options
	copy(tcp, []byte{4, 210, 0, 80, 0xff, 0xff, 0xff, 0})
	tcp[12], tcp[13] = 8<<4, 0x19 // FIN, PSH, ACK
	return append(head, tcp...)
}

// TestRawPackets_LargeSend: a large packet of TCP arrives as frames with so much data each as was asked for, each with right
// lengths, checksums, identification and sequence number, FIN and PSH only in the last (WinOF 5.50, 4.6.4), at a program of the
// driver and over the wire; its completion comes when all have left.
func TestRawPackets_LargeSend(t *testing.T) {
	one, two, third := threeEnds(t)
	to, own := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 7}
	rx := one.largeEnd()
	rx.flow(command.CreateFlow{Layers: command.FlowEthernet, Value: command.FlowKey{Dst: to, Src: own},
		Mask: command.FlowKey{Dst: everyMAC, Src: everyMAC}})
	for name, from := range map[string]*program{"inside": two, "over the wire": third} {
		tx := from.largeEnd()
		for _, c := range []struct {
			data, segment int
			v6, tagged    bool
		}{{20000, 1000, false, false}, {20001, 1000, true, false}, {1, 1000, false, true}, {0, 7, false, false}, {9, 4, true, true},
			{60000, 4000, false, false}} {
			head := tcpHead(to, own, c.v6, c.tagged)
			data := tx.b.b[1<<15:][:c.data]
			fill(data, uint64(c.data))
			frames := max(1, (c.data+c.segment-1)/c.segment)
			for i := range frames {
				rx.postRecv(uint64(i), rx.b.sge(4096*i, 4096))
			}
			tx.post(ring.SendWR{ID: 99, Op: ring.OpLargeSend, Flags: ring.Signaled, Imm: uint32(c.segment), Inline: head, NumSGE: 2,
				SGE: [ring.MaxSGE]ring.SGE{tx.b.sge(1<<15, c.data/3), tx.b.sge(1<<15+c.data/3, c.data-c.data/3)}})
			wantSuccess(t, tx.cq.next(), 99, ring.CQLargeSend)
			var all []byte
			for i := range frames {
				e := rx.cq.next()
				wantSuccess(t, e, uint64(i), ring.CQRecv)
				f := rx.b.b[4096*i:][:e.ByteLen]
				var h eth.Headers
				s := sums(f)
				if !h.Parse(f) || h.Data != len(head) || s&(offload.BadIP|offload.BadTransport) != 0 || s&offload.GoodTransport == 0 ||
					len(f) > len(head)+c.segment && len(f) > 60 {
					t.Fatalf("%s, %+v: frame %d of %d bytes has the headers %+v and sums %#x", name, c, i, len(f), h, sums(f))
				}
				tcp := f[h.Transport:]
				if got, want := binary.BigEndian.Uint32(tcp[4:]), uint32(0xffffff00)+uint32(len(all)); got != want ||
					(tcp[13] == 0x19) != (i == frames-1) || !c.v6 && eth.IPv4(f[h.Network:]).ID() != uint16(7+i) {
					t.Errorf("%s, %+v: frame %d has the sequence number %#x, want %#x; flags %#x", name, c, i, got, want, tcp[13])
				}
				all = append(all, f[h.Data:h.End]...)
			}
			if !bytes.Equal(all, data) {
				t.Errorf("%s, %+v: %d bytes arrive, and not those that were sent", name, c, len(all))
			}
		}
	}
}

// TestRawPackets_WrongLargeSend: a large send that cannot be cut ends with an error, and nothing leaves.
func TestRawPackets_WrongLargeSend(t *testing.T) {
	one, _, _ := threeEnds(t)
	to, own := [6]byte{2, 0, 0, 0, 9, 1}, [6]byte{2, 0, 0, 0, 9, 7}
	good := tcpHead(to, own, false, false)
	udp := bytes.Clone(good)
	udp[23] = 17
	for name, c := range map[string]struct {
		head    []byte
		segment uint32
		data    int
		want    ring.Status
	}{
		"no segment size":       {good, 0, 100, ring.LocalLength},
		"segments too long":     {good, 5000, 9000, ring.LocalLength},
		"too many segments":     {good, 1, 5000, ring.LocalLength},
		"headers of UDP":        {udp, 100, 1000, ring.LocalQPOperation},
		"headers cut off":       {good[:50], 100, 1000, ring.LocalQPOperation},
		"no headers":            {nil, 100, 1000, ring.LocalQPOperation},
		"more than headers":     {append(bytes.Clone(good), 1, 2, 3), 100, 1000, ring.LocalQPOperation},
		"headers that are long": {append(bytes.Clone(good), make([]byte, 80)...), 100, 1000, ring.LocalLength},
	} {
		tx := one.largeEnd()
		tx.post(ring.SendWR{ID: 99, Op: ring.OpLargeSend, Imm: c.segment, Inline: c.head, NumSGE: 1,
			SGE: [ring.MaxSGE]ring.SGE{tx.b.sge(0, c.data)}})
		if e := tx.cq.next(); e.Status != c.want || e.Op != ring.CQLargeSend {
			t.Errorf("%s: completion %v of %v, want %v", name, e.Status, e.Op, c.want)
		}
	}
}
