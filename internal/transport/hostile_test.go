package transport

import (
	"math/rand/v2"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestHostilePackets sends packets that are nearly right, which random bytes never are, to QPs in all states: every
// opcode, PSNs around the expected ones, keys and lengths right or wrong. FuzzReceive's rules must hold.
func TestHostilePackets(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		z := newZoo(t)
		out := make([]frame.Out, 64)
		now := clock.Time(1)
		for range 150 {
			now += clock.Time(rng.IntN(100_000))
			x := z.ends[rng.IntN(len(z.ends))]
			z.e.Receive(now, []frame.In{{Data: nearlyRight(rng, x, z.key), Src: z.peer.addr, Dst: z.addr}})
			if now >= z.e.Deadline() {
				z.e.Advance(now)
			}
			z.e.Transmit(now, 0, out)
			z.drain(now)
		}
		for i, b := range z.memory {
			if (i < zooGuard || i >= len(z.memory)-zooGuard) && b != 0xee {
				t.Fatalf("seed %d: memory outside the region was written", seed)
			}
		}
		for _, x := range z.ends {
			if n := x.q.resp.results.n; n > MaxReadAtomic {
				t.Fatalf("seed %d: %d results of atomics kept", seed, n)
			}
			z.e.Destroy(now, x.q)
		}
		if len(z.e.windows) != 0 || len(z.e.timers.heap) != 0 || len(z.e.paced.heap) != 0 || z.e.active.waiting != 0 ||
			z.e.flushHead != nil {
			t.Fatalf("seed %d: destroyed QPs left something behind", seed)
		}
	}
}

func nearlyRight(rng *rand.Rand, x *end, key uint32) []byte {
	op := ib.Opcode(rng.IntN(0x18))
	if rng.IntN(10) == 0 {
		op = ib.Opcode(rng.Uint32())
	} else if x.q.typ != 1 {
		op |= ib.Opcode(x.q.typ-1) << 5
		if x.q.typ == 3 {
			op = ib.UDSendOnly + ib.Opcode(rng.IntN(2))
		}
	}
	psn := ib.PSN(x.q.resp.psn)
	if op.IsResponse() {
		psn = x.q.req.una
	}
	psn = psn.Add(uint32([]int{0, 0, 0, 0, 1, -1, 2, -3, 40, 1 << 22}[rng.IntN(10)]))
	b := make([]byte, ib.BTHLen)
	pad := rng.IntN(4)
	ib.BTH(b).Encode(op, rng.IntN(2) == 0, rng.IntN(2) == 0, pad, ib.PKeyDefault, ib.QPN(x.q.num), psn)
	n, _ := ib.HeaderLength(op)
	h := make([]byte, n)
	for i := range h {
		h[i] = byte(rng.Uint32())
	}
	va := uint64(0x10000 + rng.IntN(9000))
	size := uint32([]int{0, 1, 8, 1024, 1025, 4096, 1 << 30}[rng.IntN(7)])
	switch {
	case op.HasRETH():
		ib.RETH(h).Encode(va, key, size)
	case op.HasAtomicETH():
		ib.AtomicETH(h).Encode(va&^7, key, rng.Uint64(), rng.Uint64())
	case op.HasAETH():
		ib.AETH(h).Encode(ib.Syndrome([]int{0, 0x1f, 0x20, 0x60, 0x61, 0x62, 0x63, 0x70, 0xff}[rng.IntN(9)]), rng.Uint32())
	case op.HasDETH():
		ib.DETH(h).Encode(0x11111111, 5)
	}
	b = append(b, h...)
	if op.HasPayload() {
		b = append(b, make([]byte, []int{0, 1, 8, 1023, 1024, 1024, 1024, 4096, 5000}[rng.IntN(9)]+pad)...)
	}
	return b
}
