package transport

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// LeadMost is how many packets in the middle of a message behind its first one make it worth
// its while to take that first, so that it is known where they belong. Of as few packets in all Lead cuts none off.
const LeadMost = 3

// Lead returns how many packets at the front of in are to be received before those behind them, of which Next
// knows then where they belong: up to the first one of a long message.
func Lead(in []frame.In) int {
	for i := 0; i+LeadMost < len(in); i++ {
		op := opcodeOf(&in[i])
		if in[i].Raw {
			break
		}
		if middle, first := middleOf(op); first && opcodeOf(&in[i+1]) == middle && opcodeOf(&in[i+LeadMost]) == middle {
			return i + 1
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

// middleOf returns the opcode of the packets behind the first one of an RC message of several, and whether op is that of the first.
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

// Next says what follows the packet that was received last, if that is of a message whose payload goes to mapped memory.
//
// What comes may be written to its place before it is received, and the content of the memory of a message is undefined
// until it is complete (IBA 9.5): what is next ends before its last packet, as in ahead.
func (e *Engine) Next(x *frame.Next) bool {
	q := e.received
	if q == nil || q.typ != command.RC || q.peer != nil {
		return false
	}
	op, _ := middleOf(e.receivedOp)
	mem, psn := q.ahead(op)
	if len(mem) < q.mtu {
		return false
	}
	head := e.receivedHead
	head[0] = byte(op)
	if head[1]&padBits != 0 {
		return false
	}
	x.Head, x.PSN, x.Src, x.Size, x.Memory = binary.NativeEndian.Uint64(head[:]), psn, q.route.Dst, q.mtu, mem
	return true
}

// padBits are the pad count in the second byte of a BTH.
const padBits = 0x30
