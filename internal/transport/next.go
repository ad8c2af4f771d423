package transport

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// LeadMost is how many middle packets of a message behind its first make it worthwhile to handle the first
// one separately, so that their destination is known. With only so many packets in total, Lead splits off
// none.
const LeadMost = 3

// Place returns how many of the packets in, at least one, are to be received before the rest, and whether it has set next
// to what they are expected to be (port.Placer).
func (e *Engine) Place(next *frame.Next, in []frame.In) (n int, ok bool) {
	if len(in) <= LeadMost {
		return len(in), false
	}
	return Lead(in), e.Next(next, &in[0])
}

// Lead returns how many packets at the front of in should be received before the rest, so that Next knows
// where the rest belongs: up to and including the first packet of a long message, or up to where several
// packets of another queue pair begin.
func Lead(in []frame.In) int {
	for i := 0; i+LeadMost < len(in); i++ {
		p := &in[i]
		if p.Raw {
			break
		}
		if i > 0 && sameStream(p, &in[i-1]) {
			continue
		}
		op := opcodeOf(p)
		middle, first := middleOf(op)
		switch {
		case first && opcodeOf(&in[i+1]) == middle && opcodeOf(&in[i+LeadMost]) == middle:
			return i + 1
		case i > 0 && inMiddle(op) && sameStream(p, &in[i+LeadMost]) && destination(p) != destination(&in[i-1]):
			return i
		}
	}
	return len(in)
}

func opcodeOf(p *frame.In) ib.Opcode {
	if len(p.Data) < ib.BTHLen {
		return 0
	}
	return ib.Opcode(p.Data[0])
}

// sameStream reports whether the packets may be middle packets of one message: their BTHs differ in the
// last word only.
func sameStream(p, other *frame.In) bool {
	return len(p.Data) >= ib.BTHLen && len(other.Data) >= ib.BTHLen &&
		binary.NativeEndian.Uint64(p.Data) == binary.NativeEndian.Uint64(other.Data)
}

// destination returns the number of the queue pair that a packet is for, 0 if there is none.
func destination(p *frame.In) ib.QPN {
	if len(p.Data) < ib.BTHLen {
		return 0
	}
	return ib.BTH(p.Data).DestQP()
}

// middleOf returns the opcode of the packets that follow the first one in a multi-packet RC message, and
// whether op is that of the first.
func middleOf(op ib.Opcode) (middle ib.Opcode, first bool) {
	switch op {
	case ib.RCSendFirst:
		return ib.RCSendMiddle, true
	case ib.RCWriteFirst:
		return ib.RCWriteMiddle, true
	case ib.RCReadResponseFirst:
		return ib.RCReadResponseMiddle, true
	}
	return op, false
}

// inMiddle reports whether op is that of middle packets of an RC message with payload.
func inMiddle(op ib.Opcode) bool {
	return op == ib.RCSendMiddle || op == ib.RCWriteMiddle || op == ib.RCReadResponseMiddle
}

// Next describes the packets that follow the one received last, if its message's payload goes to mapped
// memory. If first, the first of the packets that come and not checked yet, is a middle packet of another
// queue pair's message, it describes what follows in that one.
//
// What arrives may be written to its destination before it is received: the content of a message's memory
// is undefined until the message is complete (IBA 9.5). Therefore it ends before the last packet, as in
// ahead.
func (e *Engine) Next(x *frame.Next, first *frame.In) bool {
	q, op, head := e.received, e.receivedOp, e.receivedHead
	if next := opcodeOf(first); inMiddle(next) && !first.Raw && (q == nil || destination(first) != ib.QPN(q.num)) {
		q, op = e.table.Get(uint32(destination(first))), next
		copy(head[:], first.Data)
	}
	if q == nil || q.typ != command.RC {
		return false
	}
	op, _ = middleOf(op)
	head[0] = byte(op)
	var b [ib.BTHLen]byte
	copy(b[:], head[:])
	if bth := ib.BTH(b[:]); bth.PadCount() != 0 || bth.TVer() != 0 || !ib.PKeyMatch(bth.PKey(), q.pkey) {
		return false
	}
	mem, psn := q.ahead(op)
	if len(mem) < q.mtu {
		return false
	}
	x.Head, x.PSN, x.Src, x.SrcPort = binary.NativeEndian.Uint64(head[:]), psn, q.route.Dst, q.srcPort
	x.Size, x.Memory = q.mtu, mem
	return true
}
