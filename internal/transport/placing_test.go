package transport

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// placing is an engine behind an encapsulation that copies the payload of expected packets to its place
// (encap.OpenNext). All tests on a simulated network use it: it must change nothing for the engine, and no memory but
// that of messages in progress.
type placing struct {
	*Engine
	rng *rand.Rand
	h   *host
}

// Transmit gives the host its turn.
func (p placing) Transmit(now clock.Time, _ uint8, out []frame.Out) int {
	n := p.h.turn(now, out)
	for _, h := range p.h.peers {
		if h.e.Undelivered() {
			h.drain(now)
		}
	}
	return n
}

// Pending asks for a turn for what is local, too.
func (p placing) Pending() uint8 {
	if p.Engine.PendingLocal() {
		return p.Engine.Pending() | 1
	}
	return p.Engine.Pending()
}

// placedPackets counts the packets that were copied in place before the engine saw them.
var placedPackets int

// Receive does to memory what an encapsulation does before the engine checks the packets. Now and then it places a
// packet with a wrong ICRC where the expected one belongs.
func (p placing) Receive(now clock.Time, in []frame.In) {
	for len(in) > 0 {
		n := Lead(in)
		var x frame.Next
		if p.rng.IntN(4) != 0 && p.Next(&x, &in[0]) {
			for i := range in[:n] {
				p.place(&x, &in[i])
			}
		}
		p.Engine.Receive(now, in[:n])
		in = in[n:]
	}
}

func (p placing) place(x *frame.Next, in *frame.In) {
	if len(x.Memory) < x.Size {
		return
	}
	mem := x.Memory[:x.Size:x.Size]
	if p.rng.IntN(16) == 0 {
		for i := range mem {
			mem[i] = 0xee
		}
		return
	}
	if len(in.Data) != ib.BTHLen+x.Size || in.Src != x.Src || binary.NativeEndian.Uint64(in.Data) != x.Head ||
		ib.BTH(in.Data[:ib.BTHLen]).PSN() != x.PSN {
		return
	}
	placedPackets++
	copy(mem, in.Data[ib.BTHLen:])
	in.Data, in.Payload = in.Data[:ib.BTHLen:ib.BTHLen], mem
	x.Memory, x.PSN = x.Memory[x.Size:], x.PSN.Next()
}
