package ib

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestICRCCopy compares copying with ICRC in one pass with a copy and a separate ICRC, at any alignment and of any
// length. Nothing may be written outside of the destination.
func TestICRCCopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.Byte(), 0, 700).Draw(t, "src")
		for range rapid.IntRange(0, 3).Draw(t, "longer") {
			src = append(src, src...)
		}
		from := rapid.IntRange(0, min(len(src), 70)).Draw(t, "from")
		at := rapid.IntRange(0, 70).Draw(t, "at")
		crc := rapid.Uint32().Draw(t, "crc")
		src = src[from:]
		dst := bytes.Repeat([]byte{0xa5}, at+len(src)+70)
		got := ICRCCopy(crc, dst[at:], src)
		if want := ICRCUpdate(crc, src); got != want {
			t.Fatalf("ICRC over %d bytes is %08x, want %08x", len(src), got, want)
		}
		if !bytes.Equal(dst[at:at+len(src)], src) {
			t.Fatalf("the copy of %d bytes differs", len(src))
		}
		if beside := append(bytes.Clone(dst[:at]), dst[at+len(src):]...); len(bytes.Trim(beside, "\xa5")) != 0 {
			t.Fatal("bytes beside the copy have changed")
		}
	})
}

// TestICRCCopyShort checks that a destination that is too short is refused, not overrun.
func TestICRCCopyShort(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a copy of 128 bytes into 64 did not panic")
		}
	}()
	dst := make([]byte, 128)
	ICRCCopy(0, dst[:64:64], make([]byte, 128))
}

// BenchmarkICRCCopy goes through 16 MB of source and 4 MB of destination.
func BenchmarkICRCCopy(b *testing.B) {
	src, dst := make([]byte, 16<<20), make([]byte, 4<<20)
	for _, way := range []struct {
		name string
		work func(dst, src []byte)
	}{
		{"together", func(dst, src []byte) { ICRCCopy(0, dst, src) }},
		{"apart", func(dst, src []byte) { ICRCUpdate(0, src); copy(dst, src) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(4096)
			for i := 0; b.Loop(); i++ {
				s, d := i*4096%len(src), i*4112%(len(dst)-4096)
				way.work(dst[d:], src[s:s+4096])
			}
		})
	}
}

// BenchmarkICRCCopyNear copies packets of 1,024 bytes in a near cache.
func BenchmarkICRCCopyNear(b *testing.B) {
	src, dst := make([]byte, 256<<10), make([]byte, 256<<10)
	for _, way := range []struct {
		name string
		work func(dst, src []byte)
	}{
		{"together", func(dst, src []byte) { ICRCCopy(0, dst, src) }},
		{"apart", func(dst, src []byte) { ICRCUpdate(0, src); copy(dst, src) }},
		{"icrc", func(dst, src []byte) { ICRCUpdate(0, src) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(1024)
			for i := 0; b.Loop(); i++ {
				s, d := i*1040%(len(src)-1024), i*1024%len(dst)
				way.work(dst[d:], src[s:s+1024])
			}
		})
	}
}
