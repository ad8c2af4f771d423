package ethernet

import (
	"encoding/binary"

	"golang.org/x/net/bpf"

	"github.com/softvpi/softvpi/wire/eth"
)

// accepted is more than any frame has.
const accepted = 1 << 18

// filter returns the program that accepts frames to MACs, and those to groups and everybody.
func filter(macs []eth.MAC) []bpf.Instruction {
	const low = 2 // offset of the last four bytes of the destination
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: 1, SkipTrue: 1},
		bpf.RetConstant{Val: accepted},
		bpf.LoadAbsolute{Off: low, Size: 4},
	}
	for _, m := range macs {
		p = append(p,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(m[low:]), SkipTrue: 4},
			bpf.LoadAbsolute{Off: 0, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(binary.BigEndian.Uint16(m[:])), SkipTrue: 1},
			bpf.RetConstant{Val: accepted},
			bpf.LoadAbsolute{Off: low, Size: 4})
	}
	return append(p, bpf.RetConstant{})
}
