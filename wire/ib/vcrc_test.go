package ib

import (
	"math/rand/v2"
	"testing"
)

// VCRC takes 16 bytes at a time: it must be the CRC of IBA 7.8.2, taken bit by bit, at every length.
func TestVCRCBitByBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 100)
	for n := range b {
		for i := range b[:n] {
			b[i] = byte(r.Uint32())
		}
		c := uint16(0xffff)
		for _, v := range b[:n] {
			for bit := range 8 {
				low := c&1 ^ uint16(v>>bit&1)
				if c >>= 1; low != 0 {
					c ^= vcrcPoly
				}
			}
		}
		if got := VCRC(b[:n]); got != ^c {
			t.Errorf("%d bytes: %#04x, want %#04x", n, got, ^c)
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
