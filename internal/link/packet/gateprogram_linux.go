package packet

import (
	"fmt"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/wire/eth"
)

// alarmType is the Ethernet type of frames that wake a consumer: one for local experiments (IEEE 802, 9.2.3), which a
// host is unlikely to receive otherwise.
const alarmType = 0x88b5

// tcxRedirect is the value that bpf_redirect returns.
const tcxRedirect = 7

// The return values of an ingress program (linux/bpf.h, enum tcx_action_base).
const (
	tcxNext = -1
	tcxDrop = 2
)

// Offsets in struct __sk_buff.
const (
	skbLength     = 0
	skbPacketType = 4
	skbInterface  = 40
	skbVLAN       = 24
	skbData       = 76
	skbDataEnd    = 80
	skbSegment    = 176 // gso_size
)

// The registers that calls preserve. R0 is the classic accumulator and the return value; R1 to R5 are the arguments of
// the system's functions.
const (
	frameAt = asm.R6
	slotAt  = asm.R6 // once the headers have been examined
	shared  = asm.R7 // the memory
	turn    = asm.R8 // of the slot
	packet  = asm.R9 // the __sk_buff
)

// Labels: the packet passes; it is to be copied completely; a mark of it is to be copied; there is no room for it; it is
// dropped.
const (
	wayOn    = "on"
	wayWhole = "whole"
	wayMark  = "mark"
	wayFull  = "full"
	wayDrop  = "drop"
)

// claimTries limits how often the program tries to claim a slot while other processors are quicker.
const claimTries = 4

// gateProgram is the filter of the rule's ring as a program for the ingress of its interface. Unless the gate is shut, it
// copies a packet that the filter takes, or only its headers, into a slot; in the state copyDrops it drops what it copied
// completely, and also a short packet that finds no free slot. Everything else passes. Once the consumer has said that it
// is about to sleep, one frame is sent in again to wake it.
func gateProgram(r Rule, values *ebpf.Map) asm.Instructions {
	headers := int32(r.headers())
	code := asm.Instructions{
		asm.Mov.Reg(packet, asm.R1),
		asm.LoadMapValue(shared, values.FD(), 0),
		asm.LoadMem(asm.R0, shared, gateState, asm.DWord),
		asm.JEq.Imm(asm.R0, int32(shut), wayOn),
	}
	code = append(code, reach(headers, "pull")...)
	code = append(code, asm.Ja.Label(label(0)))
	// Some interfaces deliver the headers in several pieces.
	code = append(code, asm.Mov.Reg(asm.R1, packet).WithSymbol("pull"), asm.Mov.Imm(asm.R2, headers), asm.FnSkbPullData.Call())
	code = append(code, reach(headers, wayOn)...)
	for i, c := range r.ring() {
		code = append(code, marked(label(i), translate(i, c))...)
	}
	code = append(code, marked(wayMark, fill(wayMark, wayOn, asm.Mov.Imm(asm.R4, headers)))...)
	code = append(code, asm.Ja.Label(wayOn))
	code = append(code, marked(wayWhole, fill(wayWhole, wayFull,
		asm.LoadMem(asm.R4, packet, skbLength, asm.Word),
		asm.JLT.Imm(asm.R4, headers, wayOn),
		asm.JLE.Imm(asm.R4, slotMost, "fits"),
		asm.Mov.Imm(asm.R4, slotMost),
		asm.Mov.Reg(asm.R4, asm.R4).WithSymbol("fits")))...)
	code = append(code,
		asm.LoadMem(asm.R0, shared, gateState, asm.DWord),
		asm.JNE.Imm(asm.R0, int32(copyDrops), wayOn),
		asm.LoadMem(asm.R0, shared, gateArmed, asm.DWord),
		asm.JEq.Imm(asm.R0, 0, wayDrop),
		asm.Mov.Imm(asm.R2, 0),
		atomically(asm.Xchg, shared, asm.R2, gateArmed),
		asm.JEq.Imm(asm.R2, 0, wayDrop))
	code = append(code, alarm()...)
	code = append(code,
		asm.LoadMem(asm.R0, shared, gateState, asm.DWord).WithSymbol(wayFull),
		asm.JNE.Imm(asm.R0, int32(copyDrops), wayOn))
	code = append(code, marked(wayDrop, count())...)
	code = append(code, answer(tcxDrop)...)
	return append(code, marked(wayOn, answer(tcxNext))...)
}

// alarm sends the frame in again through its interface, with the type that wakes, or leaves that to the next frame.
func alarm() asm.Instructions {
	code := asm.Instructions{
		asm.StoreImm(asm.RFP, -8, int64(networkOrder(alarmType)), asm.Half),
		asm.Mov.Reg(asm.R1, packet),
		asm.Mov.Imm(asm.R2, eth.EthernetLen-2),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, -8),
		asm.Mov.Imm(asm.R4, 2),
		asm.Mov.Imm(asm.R5, 0),
		asm.FnSkbStoreBytes.Call(),
		asm.JEq.Imm(asm.R0, 0, "stored"),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreMem(shared, gateArmed, asm.R2, asm.DWord),
		asm.Ja.Label(wayDrop),
	}
	code = append(code, marked("stored", count())...)
	return append(code,
		asm.LoadMem(asm.R1, packet, skbInterface, asm.Word),
		asm.Mov.Imm(asm.R2, unix.BPF_F_INGRESS),
		asm.FnRedirect.Call(),
		asm.Return())
}

// count counts a dropped frame.
func count() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R2, 1), asm.AddAtomic.Mem(shared, asm.R2, asm.DWord, gateDropped)}
}

// marked labels the first instruction of code.
func marked(name string, code asm.Instructions) asm.Instructions {
	code[0] = code[0].WithSymbol(name)
	return code
}

// reach sets frameAt to the beginning of the frame, and jumps to other if fewer than n bytes are accessible.
func reach(n int32, other string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(frameAt, packet, skbData, asm.Word),
		asm.LoadMem(asm.R2, packet, skbDataEnd, asm.Word),
		asm.Mov.Reg(asm.R3, frameAt),
		asm.Add.Imm(asm.R3, n),
		asm.JGT.Reg(asm.R3, asm.R2, other),
	}
}

// fill copies the first R4 bytes of the frame, a number that the code length computes, into the next slot. It jumps to
// full if there is none.
func fill(name, full string, length ...asm.Instruction) asm.Instructions {
	code := asm.Instructions(length) // first, because a claimed slot must be filled
	for i := range claimTries {
		claim := asm.Instructions{
			asm.LoadMem(turn, shared, gateHead, asm.DWord),
			asm.Mov.Reg(slotAt, turn),
			asm.And.Imm(slotAt, slots-1),
			asm.Mul.Imm(slotAt, gateSlot),
			asm.Add.Imm(slotAt, gateSlots),
			asm.Add.Reg(slotAt, shared),
			asm.LoadMem(asm.R0, slotAt, slotTurn, asm.DWord),
			asm.JNE.Reg(asm.R0, turn, fmt.Sprint(name, i+1)), // no slot is free, or another processor was quicker
			asm.Mov.Reg(asm.R2, turn),
			asm.Add.Imm(asm.R2, 1),
			atomically(asm.CmpXchg, shared, asm.R2, gateHead),
			asm.JEq.Reg(asm.R0, turn, name+"claimed"),
		}
		code = append(code, marked(fmt.Sprint(name, i), claim)...)
	}
	return append(code,
		asm.Ja.Label(full).WithSymbol(fmt.Sprint(name, claimTries)),
		asm.LoadMem(asm.R2, packet, skbSegment, asm.Word).WithSymbol(name+"claimed"),
		asm.StoreMem(slotAt, slotSegment, asm.R2, asm.Word),
		asm.StoreMem(slotAt, slotLength, asm.R4, asm.Word),
		asm.Mov.Reg(asm.R1, packet),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Reg(asm.R3, slotAt),
		asm.Add.Imm(asm.R3, slotFrame),
		asm.FnSkbLoadBytes.Call(),
		asm.Add.Imm(turn, 1),
		// Publish the frame before looking whether the consumer is about to sleep: see arm.
		atomically(asm.Xchg, slotAt, turn, slotTurn))
}

// atomically is an atomic operation on a 64-bit word in memory. The instruction's constant selects it (RFC 9669, 5.3),
// which the library leaves at 0, an addition.
func atomically(op asm.AtomicOp, at, with asm.Register, offset int16) asm.Instruction {
	i := op.Mem(at, with, asm.DWord, offset)
	i.Constant = int64(op >> 8)
	return i
}

// label returns the label of instruction i of the classic program.
func label(i int) string { return "classic" + strconv.Itoa(i) }

// translate returns the code for instruction i of the classic program, whose accumulator is R0.
func translate(i int, c bpf.Instruction) asm.Instructions {
	switch c := c.(type) {
	case bpf.JumpIf:
		return branch(i, c)
	case bpf.RetConstant:
		way := wayMark
		switch c.Val {
		case whole:
			way = wayWhole
		case 0:
			way = wayOn
		}
		return asm.Instructions{asm.Ja.Label(way)}
	case bpf.LoadExtension:
		at := int16(skbPacketType)
		if c.Num == bpf.ExtVLANTag {
			at = skbVLAN
		}
		return asm.Instructions{asm.LoadMem(asm.R0, packet, at, asm.Word)}
	case bpf.LoadAbsolute:
		size := map[int]asm.Size{1: asm.Byte, 2: asm.Half, 4: asm.Word}[c.Size]
		code := asm.Instructions{asm.LoadMem(asm.R0, frameAt, int16(c.Off), size)}
		if c.Size > 1 {
			code = append(code, asm.HostTo(asm.BE, asm.R0, size))
		}
		return code
	}
	panic(fmt.Sprintf("instruction %v has no translation", c)) // the rule's filters have no other
}

// branch translates a comparison.
func branch(i int, c bpf.JumpIf) asm.Instructions {
	yes, no := label(i+1+int(c.SkipTrue)), label(i+1+int(c.SkipFalse))
	op := asm.JEq
	switch c.Cond {
	case bpf.JumpGreaterThan:
		op = asm.JGT
	case bpf.JumpBitsNotSet:
		op, yes, no = asm.JSet, no, yes
	}
	return asm.Instructions{op.Imm32(asm.R0, int32(c.Val), yes), asm.Ja.Label(no)}
}

func answer(what int32) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, what), asm.Return()}
}
