package transport

import (
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestConnectedPacketsAreChecked: a packet for a connected queue pair that has the wrong partition, sender or
// service, or that comes in a state which takes none, is dropped and counted. It is not answered and changes nothing
// (IBA 9.6.1).
func TestConnectedPacketsAreChecked(t *testing.T) {
	for _, typ := range []command.QPType{command.RC, command.UC} {
		service, other := ib.Opcode(0), ib.Opcode(ucBits)
		if typ == command.UC {
			service, other = other, service
		}
		_, a, b := newPair(t, 1, typ)
		connect(a, b, defaultConnection())
		b.region(regionAt, make([]byte, regionSize), allowAll)
		packet := func(op ib.Opcode, key ib.PKey, qpn uint32) []byte {
			p := make([]byte, ib.BTHLen)
			ib.BTH(p).Encode(op, false, true, 0, key, ib.QPN(qpn), ib.PSN(100))
			return p
		}
		send := ib.RCSendOnly | service
		c := &b.e.counters
		for _, x := range []struct {
			name   string
			packet []byte
			src    netip.Addr
			count  *uint64
		}{
			{"another partition", packet(send, 0x8001, b.q.num), a.addr, &c.PKeyViolations},
			{"another sender", packet(send, ib.PKeyDefault, b.q.num), netip.MustParseAddr("10.0.0.7"), &c.WrongSource},
			{"another service", packet(ib.RCSendOnly|other, ib.PKeyDefault, b.q.num), a.addr, &c.WrongService},
			{"no such queue pair", packet(send, ib.PKeyDefault, b.q.num+1), a.addr, &c.UnknownQP},
			{"a reserved opcode", packet(0x1f|service, ib.PKeyDefault, b.q.num), a.addr, &c.Malformed},
			{"half a header", packet(send, ib.PKeyDefault, b.q.num)[:7], a.addr, &c.Malformed},
		} {
			before := *x.count
			b.e.Receive(0, []frame.In{{Data: x.packet, Src: x.src, Dst: b.addr}})
			if *x.count != before+1 {
				t.Errorf("type %d, %s: counted %d times, want once", typ, x.name, *x.count-before)
			}
			var out [4]frame.Out
			if n := b.e.Transmit(0, 0, out[:]); n != 0 || b.q.State() != command.RTS {
				t.Errorf("type %d, %s: %d answers, state %s; want no answer and an unchanged state", typ, x.name, n, stateName(b.q.State()))
			}
		}
		// A limited member of a partition may talk to full members only.
		b.e.SetPKeys([]ib.PKey{0x7fff})
		before := c.PKeyViolations
		b.e.Receive(0, []frame.In{{Data: packet(send, 0x7fff, b.q.num), Src: a.addr, Dst: b.addr}})
		if c.PKeyViolations != before+1 {
			t.Errorf("type %d: a limited member took a packet of another limited member", typ)
		}
		b.modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
		before = c.WrongState
		b.e.Receive(0, []frame.In{{Data: packet(send, 0xffff, b.q.num), Src: a.addr, Dst: b.addr}})
		if c.WrongState != before+1 {
			t.Errorf("type %d: a packet in state Error was counted %d times, want once", typ, c.WrongState-before)
		}
	}
}
