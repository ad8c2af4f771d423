package packet

import (
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// The return values of an ingress program (linux/bpf.h, enum tcx_action_base).
const (
	tcxNext = -1
	tcxDrop = 2
)

// Offsets in struct __sk_buff.
const (
	skbPacketType = 4
	skbVLAN       = 24
	skbData       = 76
	skbDataEnd    = 80
)

// The registers other than R0, the classic accumulator and return value, and R1, the packet's __sk_buff.
const (
	frameAt = asm.R6
	state   = asm.R7 // shared with the gate
)

// wayOn is the label of the end that lets a frame pass.
const wayOn = "on"

// gateProgram is the filter of the rule's ring for the ingress of its interface: what the ring takes
// completely is dropped and counted while the map's value says so, and everything else passes. A packet
// that is not contiguous up to its payload also passes.
func gateProgram(r Rule, values *ebpf.Map) asm.Instructions {
	code := asm.Instructions{
		asm.LoadMapValue(state, values.FD(), gateOpen),
		asm.LoadMem(asm.R0, state, 0, asm.DWord),
		asm.JEq.Imm(asm.R0, 0, wayOn),
		asm.LoadMem(frameAt, asm.R1, skbData, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, skbDataEnd, asm.Word),
		asm.Mov.Reg(asm.R3, frameAt),
		asm.Add.Imm(asm.R3, int32(r.headers())),
		asm.JGT.Reg(asm.R3, asm.R2, wayOn),
	}
	for i, c := range r.ring() {
		piece := translate(i, c)
		piece[0] = piece[0].WithSymbol(label(i))
		code = append(code, piece...)
	}
	on := answer(tcxNext)
	on[0] = on[0].WithSymbol(wayOn)
	return append(code, on...)
}

// label returns the label of instruction i of the classic program.
func label(i int) string { return "classic" + strconv.Itoa(i) }

// translate is what instruction i of the classic machine does. Its accumulator is R0.
func translate(i int, c instruction) asm.Instructions {
	switch c.Code {
	case equal:
		return branch(asm.JEq, i, c)
	case greater:
		return branch(asm.JGT, i, c)
	case anySet:
		return branch(asm.JSet, i, c)
	case take:
		if c.K != whole {
			return answer(tcxNext)
		}
		count := asm.Instructions{asm.Mov.Imm(asm.R2, 1), asm.AddAtomic.Mem(state, asm.R2, asm.DWord, gateDropped)}
		return append(count, answer(tcxDrop)...)
	}
	return load(c)
}

func load(c instruction) asm.Instructions {
	switch {
	case c.K == kindOfPacket:
		return asm.Instructions{asm.LoadMem(asm.R0, asm.R1, skbPacketType, asm.Word)}
	case c.K == tagOf:
		return asm.Instructions{asm.LoadMem(asm.R0, asm.R1, skbVLAN, asm.Word)}
	case c.Code == loadWord:
		return asm.Instructions{asm.LoadMem(asm.R0, frameAt, int16(c.K), asm.Word), asm.HostTo(asm.BE, asm.R0, asm.Word)}
	case c.Code == loadHalf:
		return asm.Instructions{asm.LoadMem(asm.R0, frameAt, int16(c.K), asm.Half), asm.HostTo(asm.BE, asm.R0, asm.Half)}
	}
	return asm.Instructions{asm.LoadMem(asm.R0, frameAt, int16(c.K), asm.Byte)}
}

// branch goes both ways.
func branch(op asm.JumpOp, i int, c instruction) asm.Instructions {
	return asm.Instructions{op.Imm32(asm.R0, int32(c.K), label(i+1+int(c.Jt))), asm.Ja.Label(label(i + 1 + int(c.Jf)))}
}

func answer(what int32) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, what), asm.Return()}
}
