package ib

import (
	"fmt"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// The ICRC of two pieces is that of both together, whatever their lengths and whatever preceded them.
func TestICRCOfPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crc := rapid.Uint32().Draw(t, "crc")
		head := rapid.SliceOfN(rapid.Byte(), 0, 68).Draw(t, "headers")
		if rapid.Bool().Draw(t, "whole blocks") {
			head = head[:len(head)&^15]
		}
		payload := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "payload")
		want := crc32.Update(crc32.Update(crc, crc32.IEEETable, head), crc32.IEEETable, payload)
		if got := ICRCPieces(crc, head, payload); got != want {
			t.Fatalf("%d and %d bytes: %#x, want %#x", len(head), len(payload), got, want)
		}
		if got := ICRCUpdate(ICRCUpdate(crc, head), payload); got != want {
			t.Fatalf("%d bytes and then %d: %#x, want %#x", len(head), len(payload), got, want)
		}
	})
}

func BenchmarkICRCPieces(b *testing.B) {
	head, payload := make([]byte, RETHLen), make([]byte, 64)
	for _, n := range []int{4, 8, 64, 128} {
		payload := append(payload, payload...)[:n]
		b.Run(fmt.Sprintf("%d together", n), func(b *testing.B) {
			for b.Loop() {
				ICRCPieces(0, head, payload)
			}
		})
		b.Run(fmt.Sprintf("%d apart", n), func(b *testing.B) {
			for b.Loop() {
				ICRCUpdate(ICRCUpdate(0, head), payload)
			}
		})
	}
}
