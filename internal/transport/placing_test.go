package transport

import (
	"math/rand/v2"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// placing is an engine behind a link that receives payload where it is expected
// (link.Placer). All tests on a simulated network run behind it: to the engine it must
// make no difference, nor to any memory but that of the messages in progress.
type placing struct {
	*Engine
	rng *rand.Rand
}

// placedPackets is how many packets came to an engine in place.
var placedPackets int

// Receive does to the memory what a link does before its packets are looked at: each
// goes to the next place of its burst, whatever it is.
func (p placing) Receive(now clock.Time, in []frame.In) {
	var x frame.Expected
	if p.rng.IntN(4) == 0 || p.Expected(&x) == nil {
		p.Engine.Receive(now, in)
		return
	}
	burst := 1 + p.rng.IntN(16) // places of one, and the most packets
	slot, used := 0, 0
	for i := range in {
		if used == burst || used > 0 && p.rng.IntN(burst) == 0 {
			slot, used = slot+burst-used, 0
		}
		p.place(&x, slot, &in[i])
		slot, used = slot+1, used+1
	}
	p.Engine.Receive(now, in)
}

func (p placing) place(x *frame.Expected, slot int, in *frame.In) {
	if (slot+1)*x.Size > len(x.Memory) || len(in.Data) < ib.BTHLen {
		return
	}
	mem := x.Memory[slot*x.Size : (slot+1)*x.Size : (slot+1)*x.Size]
	bth := ib.BTH(in.Data[:ib.BTHLen])
	copy(mem, in.Data[ib.BTHLen:])
	behind := (x.PSN + uint32(slot) - uint32(bth.PSN())) & ib.PSNMask
	if len(in.Data) != ib.BTHLen+x.Size || uint8(bth.Opcode()) != x.Opcode || uint32(bth.DestQP()) != x.QPN || bth.PadCount() != 0 || behind > uint32(slot) {
		return
	}
	placedPackets++
	in.Data, in.Payload = in.Data[:ib.BTHLen:ib.BTHLen], mem
}
