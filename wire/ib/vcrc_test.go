package ib

import (
	"math/rand/v2"
	"testing"
)

// bitByBit is the CRC of IBA 7.8.2.
func bitByBit(b []byte) uint16 {
	c := uint16(0xffff)
	for _, v := range b {
		for bit := range 8 {
			low := c&1 ^ uint16(v>>bit&1)
			if c >>= 1; low != 0 {
				c ^= vcrcPoly
			}
		}
	}
	return ^c
}

// VCRC takes many bytes at a time: it must be the CRC of IBA 7.8.2, taken bit by bit, at every length and at every
// place in memory, and in whatever pieces it is taken.
func TestVCRCBitByBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	memory := make([]byte, 4300)
	for i := range memory {
		memory[i] = byte(r.Uint32())
	}
	for n := range 4280 {
		b := memory[n%17:][:n]
		want := bitByBit(b)
		if got := VCRC(b); got != want {
			t.Errorf("%d bytes: %#04x, want %#04x", n, got, want)
		}
		if got := ^vcrcSlices(VCRCSeed, b); got != want {
			t.Errorf("%d bytes by tables: %#04x, want %#04x", n, got, want)
		}
		cut := r.IntN(n + 1)
		if got := ^VCRCUpdate(VCRCUpdate(VCRCSeed, b[:cut]), b[cut:]); got != want {
			t.Errorf("%d and %d bytes: %#04x, want %#04x", cut, n-cut, got, want)
		}
	}
}

func BenchmarkVCRC(b *testing.B) {
	p := make([]byte, 4096)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		VCRC(p)
	}
}
