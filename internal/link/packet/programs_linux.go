package packet

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/softvpi/softvpi/wire/eth"
)

type instructions = asm.Instructions

// The return values of an ingress program (linux/bpf.h, enum tcx_action_base).
const (
	tcxNext = -1
	tcxDrop = 2
)

// wholeMessage is what a socket's filter returns for a message that goes on: longer than any.
const wholeMessage = 0x40000

// fromNetwork makes bpf_skb_load_bytes_relative count from the IP header (BPF_HDR_START_NET).
const fromNetwork = 1

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

const (
	toThisHost  = 0      // PACKET_HOST of linux/if_packet.h
	anyFragment = 0x3fff // more fragments, or an offset
	anyVLAN     = 0x0fff // a VLAN ID: the packet belongs to another interface
)

// The registers that calls preserve; R1 to R5 are the arguments of the system's functions, and R0 the result.
const (
	frameAt = asm.R6
	slotAt  = asm.R6 // once the headers have been examined
	shared  = asm.R7 // the memory
	turn    = asm.R8 // of the slot
	packet  = asm.R9 // the __sk_buff
)

// Places on the stack.
const (
	lengthAt = -8  // UDP length
	flightAt = -16 // where the processor's flights are counted
)

// Labels: the packet is none of the rule's; it goes on; it goes on although a slot was claimed for it.
const (
	other  = "other"
	goesOn = "on"
	void   = "void"
)

// claimTries limits how often a program tries to claim a slot while other processors are quicker.
const claimTries = 4

// gateProgram is the program for the ingress of the rule's interface: if the gate is open, it takes the rule's short
// packets; of those that pass it counts those that the filter will see.
func gateProgram(r Rule, values *ebpf.Map) instructions {
	headers := int32(r.udpAt() + eth.UDPLen)
	code := begin(values)
	code = append(code, reach(headers, "pull")...)
	code = append(code, asm.Ja.Label("reached"))
	// Some interfaces deliver the headers in several pieces.
	code = append(code, asm.Mov.Reg(asm.R1, packet).WithSymbol("pull"), asm.Mov.Imm(asm.R2, headers), asm.FnSkbPullData.Call())
	code = append(code, reach(headers, other)...)
	code = append(code, labelled("reached", r.conditions())...)
	code = append(code, load16(r.udpAt()+4)...)
	code = append(code, asm.StoreMem(asm.RFP, lengthAt, asm.R0, asm.DWord))
	code = append(code, findFlight()...)
	code = append(code,
		asm.StoreMem(asm.RFP, flightAt, asm.R1, asm.DWord),
		asm.LoadMem(asm.R0, shared, openAt, asm.DWord),
		asm.JEq.Imm(asm.R0, 0, goesOn),
		asm.LoadMem(asm.R0, asm.R1, 0, asm.DWord),
		asm.JNE.Imm(asm.R0, 0, goesOn), // something before it has not come to the filter
		asm.LoadMem(asm.R0, asm.RFP, lengthAt, asm.DWord))
	code = append(code, take(r,
		asm.Mov.Reg(asm.R1, packet),
		asm.Mov.Imm(asm.R2, eth.EthernetLen),
		asm.Add.Imm(asm.R4, r.ipLen()),
		asm.FnSkbLoadBytes.Call())...)
	code = append(code, answer(tcxDrop)...)
	code = append(code, labelled(void, empty())...)
	code = append(code,
		asm.LoadMem(asm.R1, asm.RFP, flightAt, asm.DWord).WithSymbol(goesOn),
		asm.Mov.Imm(asm.R2, 1),
		asm.AddAtomic.Mem(asm.R1, asm.R2, asm.DWord, 0))
	return append(code, labelled(other, answer(tcxNext))...)
}

// filterProgram is the filter of the UDP socket that is bound to the rule's address and port: it takes short packets, by
// whatever interface they came, and counts the messages that go on to the socket's queue. If gated, it also counts what
// must have passed the gate. The packet begins at the UDP header, and is as long as that says.
func filterProgram(r Rule, values *ebpf.Map, gated bool) instructions {
	code := begin(values)
	if gated {
		code = append(code,
			asm.LoadMem(asm.R0, packet, skbInterface, asm.Word),
			asm.JNE.Imm(asm.R0, int32(r.Interface), "beside"),
			asm.LoadMem(asm.R0, packet, skbPacketType, asm.Word),
			asm.JNE.Imm(asm.R0, toThisHost, "beside"))
		code = append(code, findFlight()...)
		code = append(code,
			asm.Mov.Imm(asm.R2, -1),
			asm.AddAtomic.Mem(asm.R1, asm.R2, asm.DWord, 0))
	}
	code = append(code, asm.LoadMem(asm.R0, packet, skbLength, asm.Word).WithSymbol("beside"))
	at, plain := int16(0), int32(version4)
	if !r.Addr.Is4() {
		at, plain = 6, eth.ProtocolUDP
	}
	code = append(code, take(r,
		asm.Mov.Reg(asm.R1, packet),
		asm.Mov.Imm(asm.R2, 0),
		asm.Add.Imm(asm.R3, r.ipLen()),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, void),
		asm.Mov.Reg(asm.R1, packet),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Reg(asm.R3, slotAt),
		asm.Add.Imm(asm.R3, slotPacket),
		asm.Mov.Imm(asm.R4, r.ipLen()),
		asm.Mov.Imm(asm.R5, fromNetwork),
		asm.FnSkbLoadBytesRelative.Call(),
		asm.JNE.Imm(asm.R0, 0, void),
		asm.LoadMem(asm.R0, slotAt, slotPacket+at, asm.Byte),
		asm.Sub.Imm(asm.R0, plain))...) // otherwise its header has another length
	code = append(code, add(filteredAt)...)
	code = append(code, answer(0)...)
	code = append(code, labelled(void, empty())...)
	code = append(code, labelled(goesOn, add(queuedAt))...)
	return append(code, answer(wholeMessage)...)
}

// begin keeps the packet and finds the memory.
func begin(values *ebpf.Map) instructions {
	return instructions{asm.Mov.Reg(packet, asm.R1), asm.LoadMapValue(shared, values.FD(), 0)}
}

// take puts the packet, whose UDP length is in R0, into a slot, unless it is long, there is no free slot, or messages
// that came before it have not been handed out. fetch copies R4 bytes, from the UDP header on, to R3, or what else it
// adjusts these to; R0 is 0 then. take jumps to goesOn if the packet was not taken, or to void.
func take(r Rule, fetch ...asm.Instruction) instructions {
	code := instructions{
		asm.JGT.Imm(asm.R0, eth.UDPLen+MostTaken, goesOn),
		asm.JLT.Imm(asm.R0, eth.UDPLen, goesOn),
		asm.StoreMem(asm.RFP, lengthAt, asm.R0, asm.DWord),
		asm.LoadMem(asm.R0, shared, queuedAt, asm.DWord),
		asm.LoadMem(asm.R1, shared, takenAt, asm.DWord),
		asm.JNE.Reg(asm.R0, asm.R1, goesOn),
	}
	code = append(code, claim()...)
	code = append(code,
		// The receiver looks for claims after it has said that it is about to sleep.
		asm.LoadMem(asm.R0, shared, takenAt, asm.DWord).WithSymbol("claimed"),
		asm.JSLT.Imm(asm.R0, 0, void),
		asm.Mov.Reg(asm.R3, slotAt),
		asm.Add.Imm(asm.R3, slotPacket),
		asm.LoadMem(asm.R4, asm.RFP, lengthAt, asm.DWord))
	code = append(code, fetch...)
	return append(code,
		asm.JNE.Imm(asm.R0, 0, void),
		asm.LoadMem(asm.R0, asm.RFP, lengthAt, asm.DWord),
		asm.Add.Imm(asm.R0, r.ipLen()),
		asm.StoreMem(slotAt, slotLength, asm.R0, asm.Word),
		asm.LoadMem(asm.R0, packet, skbSegment, asm.Word),
		asm.StoreMem(slotAt, slotSegment, asm.R0, asm.Word),
		asm.Add.Imm(turn, 1),
		atomically(asm.Xchg, slotAt, turn, slotTurn))
}

// empty gives up a claimed slot, which the receiver passes over.
func empty() instructions {
	return instructions{
		asm.StoreImm(slotAt, slotLength, 0, asm.Word),
		asm.Add.Imm(turn, 1),
		atomically(asm.Xchg, slotAt, turn, slotTurn),
	}
}

// claim claims the next slot and jumps to "claimed", or to goesOn if none is free.
func claim() (code instructions) {
	for i := range claimTries {
		try := instructions{
			asm.LoadMem(turn, shared, headAt, asm.DWord),
			asm.Mov.Reg(slotAt, turn),
			asm.And.Imm(slotAt, slots-1),
			asm.Mul.Imm(slotAt, slotSize),
			asm.Add.Imm(slotAt, slotsAt),
			asm.Add.Reg(slotAt, shared),
			asm.LoadMem(asm.R0, slotAt, slotTurn, asm.DWord),
			asm.JNE.Reg(asm.R0, turn, fmt.Sprint("claim", i+1)), // no slot is free, or another processor was quicker
			asm.Mov.Reg(asm.R2, turn),
			asm.Add.Imm(asm.R2, 1),
			atomically(asm.CmpXchg, shared, asm.R2, headAt),
			asm.JEq.Reg(asm.R0, turn, "claimed"),
		}
		code = append(code, labelled(fmt.Sprint("claim", i), try)...)
	}
	return append(code, asm.Ja.Label(goesOn).WithSymbol(fmt.Sprint("claim", claimTries)))
}

// findFlight sets R1 to where this processor's flights are counted.
func findFlight() instructions {
	return instructions{
		asm.FnGetSmpProcessorId.Call(),
		asm.And.Imm(asm.R0, processors-1),
		asm.Mul.Imm(asm.R0, lineSize),
		asm.Mov.Reg(asm.R1, shared),
		asm.Add.Reg(asm.R1, asm.R0),
		asm.Add.Imm(asm.R1, flightsAt),
	}
}

// add adds one to a number in memory.
func add(at int16) instructions {
	return instructions{asm.Mov.Imm(asm.R2, 1), asm.AddAtomic.Mem(shared, asm.R2, asm.DWord, at)}
}

// conditions jumps to other unless the frame at frameAt is the rule's.
func (r Rule) conditions() instructions {
	code := instructions{
		asm.LoadMem(asm.R0, packet, skbPacketType, asm.Word),
		asm.JNE.Imm(asm.R0, toThisHost, other),
		asm.LoadMem(asm.R0, packet, skbVLAN, asm.Word),
		asm.JSet.Imm(asm.R0, anyVLAN, other),
	}
	const ip = eth.EthernetLen
	if r.Addr.Is4() {
		code = append(code, equal16(12, uint16(eth.TypeIPv4))...)
		code = append(code, equal8(ip, version4)...)
		code = append(code, equal8(ip+9, eth.ProtocolUDP)...)
		code = append(code, load16(ip+6)...)
		code = append(code, asm.JSet.Imm(asm.R0, anyFragment, other))
		b := r.Addr.As4()
		code = append(code, equal32(ip+16, binary.BigEndian.Uint32(b[:]))...)
	} else {
		code = append(code, equal16(12, uint16(eth.TypeIPv6))...)
		code = append(code, equal8(ip+6, eth.ProtocolUDP)...)
		b := r.Addr.As16()
		for i := 0; i < len(b); i += 4 {
			code = append(code, equal32(ip+24+i, binary.BigEndian.Uint32(b[i:]))...)
		}
	}
	return append(code, equal16(r.udpAt()+2, r.Port)...)
}

// equal8 jumps to other unless the frame has this byte at an offset.
func equal8(at int, v byte) instructions {
	return instructions{asm.LoadMem(asm.R0, frameAt, int16(at), asm.Byte), asm.JNE.Imm(asm.R0, int32(v), other)}
}

func equal16(at int, v uint16) instructions {
	return append(load16(at), asm.JNE.Imm(asm.R0, int32(v), other))
}

func equal32(at int, v uint32) instructions {
	return instructions{asm.LoadMem(asm.R0, frameAt, int16(at), asm.Word), asm.HostTo(asm.BE, asm.R0, asm.Word),
		asm.JNE.Imm32(asm.R0, int32(v), other)}
}

// load16 loads a number of the frame into R0.
func load16(at int) instructions {
	return instructions{asm.LoadMem(asm.R0, frameAt, int16(at), asm.Half), asm.HostTo(asm.BE, asm.R0, asm.Half)}
}

// labelled labels the first instruction of code.
func labelled(name string, code instructions) instructions {
	code[0] = code[0].WithSymbol(name)
	return code
}

// reach sets frameAt to the beginning of the frame, and jumps to otherwise if fewer than n bytes are accessible.
func reach(n int32, otherwise string) instructions {
	return instructions{
		asm.LoadMem(frameAt, packet, skbData, asm.Word),
		asm.LoadMem(asm.R2, packet, skbDataEnd, asm.Word),
		asm.Mov.Reg(asm.R3, frameAt),
		asm.Add.Imm(asm.R3, n),
		asm.JGT.Reg(asm.R3, asm.R2, otherwise),
	}
}

// atomically is an atomic operation on a 64-bit word in memory. The instruction's constant selects it (RFC 9669, 5.3),
// which the library leaves at 0, an addition.
func atomically(op asm.AtomicOp, at, with asm.Register, offset int16) asm.Instruction {
	i := op.Mem(at, with, asm.DWord, offset)
	i.Constant = int64(op >> 8)
	return i
}

func answer(what int32) instructions {
	return instructions{asm.Mov.Imm(asm.R0, what), asm.Return()}
}
