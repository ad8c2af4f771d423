package packet

// bpfInstruction is one of the extended BPF machine (linux/bpf.h, struct bpf_insn).
type bpfInstruction struct {
	Code      uint8
	Registers uint8 // destination in the low four bits, source in the others
	Offset    int16
	Value     int32
}

// Operations of the extended machine (Documentation/bpf/standardization/instruction-set.rst of Linux).
const (
	bpfLoadByte  = 0x71 // destination = what source + offset points at
	bpfLoadHalf  = 0x69
	bpfLoadWord  = 0x61
	bpfLoadLong  = 0x79
	bpfAddress   = 0x18 // destination = an address, in two instructions
	bpfMove      = 0xbf
	bpfMoveValue = 0xb7
	bpfAddValue  = 0x07
	bpfBigEndian = 0xdc // between the host's and the network's byte order, value bits
	bpfAtomic    = 0xdb // adds source to what destination + offset points at
	bpfJump      = 0x05
	bpfIfAbove   = 0x2d // source
	bpfIfEqual   = 0x15 // value
	bpfIfEqual32 = 0x16
	bpfIfAbove32 = 0x26
	bpfIfAnySet  = 0x46
	bpfExit      = 0x95
	bpfMapValue  = 2 // the source of bpfAddress: the value of the map with this descriptor
)

// What a program at the entrance answers (linux/bpf.h, enum tcx_action_base).
const (
	tcxNext = -1
	tcxDrop = 2
)

// Places in struct __sk_buff.
const (
	skbPacketType = 4
	skbVLAN       = 24
	skbData       = 76
	skbDataEnd    = 80
)

// The registers: result, argument, scratch, the frame and what the program shares.
const (
	r0, r1, r2, r3 = 0, 1, 2, 3
	frameAt, state = 6, 7
)

// entrance is a program for the entrance that is being written.
type entrance struct {
	code   []bpfInstruction
	starts []int         // where the instructions of the classic program begin
	jumps  []entranceWay // that lead to one of those
}

// entranceWay is a jump at `from` to the classic instruction `to`.
type entranceWay struct{ from, to int }

func (e *entrance) add(code, dst, src uint8, offset int16, value int32) {
	e.code = append(e.code, bpfInstruction{code, dst | src<<4, offset, value})
}

// jump goes to a classic instruction where the accumulator is so.
func (e *entrance) jump(code uint8, value uint32, to int) {
	e.jumps = append(e.jumps, entranceWay{len(e.code), to})
	e.add(code, r0, 0, 0, int32(value))
}

// gateProgram is the filter of the rule's ring for the entrance of its interface: what the ring takes whole is dropped and counted
// while the value of the map says so, and everything else goes on. What does not lie in
// one piece up to its payload goes on too.
func gateProgram(r Rule, values int) []bpfInstruction {
	var e entrance
	ring := r.Ring()
	out := len(ring) // behind it: the way on
	e.add(bpfAddress, state, bpfMapValue, 0, int32(values))
	e.add(0, 0, 0, 0, 0)
	e.add(bpfLoadLong, r0, state, 0, 0)
	e.jump(bpfIfEqual, 0, out)
	e.add(bpfLoadWord, frameAt, r1, skbData, 0)
	e.add(bpfLoadWord, r2, r1, skbDataEnd, 0)
	e.add(bpfMove, r3, frameAt, 0, 0)
	e.add(bpfAddValue, r3, 0, 0, int32(r.headers()))
	e.jumps = append(e.jumps, entranceWay{len(e.code), out})
	e.add(bpfIfAbove, r3, r2, 0, 0)
	for i, c := range ring {
		e.starts = append(e.starts, len(e.code))
		e.translate(i, c)
	}
	e.starts = append(e.starts, len(e.code))
	e.answer(tcxNext)
	for _, w := range e.jumps {
		e.code[w.from].Offset = int16(e.starts[w.to] - w.from - 1)
	}
	return e.code
}

// translate writes what instruction i of the classic machine does. Its accumulator is r0.
func (e *entrance) translate(i int, c Instruction) {
	switch c.Code {
	case loadWord, loadHalf, loadByte:
		e.load(c)
	case equal:
		e.branch(bpfIfEqual32, i, c)
	case greater:
		e.branch(bpfIfAbove32, i, c)
	case anySet:
		e.branch(bpfIfAnySet, i, c)
	case take:
		if c.K != whole {
			e.answer(tcxNext)
			return
		}
		e.add(bpfMoveValue, r2, 0, 0, 1)
		e.add(bpfAtomic, state, r2, 8, 0)
		e.answer(tcxDrop)
	}
}

func (e *entrance) load(c Instruction) {
	switch {
	case c.K == kindOfPacket:
		e.add(bpfLoadWord, r0, r1, skbPacketType, 0)
	case c.K == tagOf:
		e.add(bpfLoadWord, r0, r1, skbVLAN, 0)
	case c.Code == loadWord:
		e.add(bpfLoadWord, r0, frameAt, int16(c.K), 0)
		e.add(bpfBigEndian, r0, 0, 0, 32)
	case c.Code == loadHalf:
		e.add(bpfLoadHalf, r0, frameAt, int16(c.K), 0)
		e.add(bpfBigEndian, r0, 0, 0, 16)
	default:
		e.add(bpfLoadByte, r0, frameAt, int16(c.K), 0)
	}
}

// branch goes both ways.
func (e *entrance) branch(code uint8, i int, c Instruction) {
	e.jump(code, c.K, i+1+int(c.Jt))
	e.jumps = append(e.jumps, entranceWay{len(e.code), i + 1 + int(c.Jf)})
	e.add(bpfJump, 0, 0, 0, 0)
}

func (e *entrance) answer(what int32) {
	e.add(bpfMoveValue, r0, 0, 0, what)
	e.add(bpfExit, 0, 0, 0, 0)
}
