package prefetch

import (
	"bytes"
	"testing"
	"unsafe"
)

// Copy copies what copy does, at any alignment and of any length, and changes nothing beside it.
func TestCopy(t *testing.T) {
	src := make([]byte, 700)
	for i := range src {
		src[i] = byte(i*7 + 1)
	}
	for n := range 600 {
		for _, at := range []int{0, 1, 16, 63} {
			dst, want := bytes.Repeat([]byte{0xa5}, 800), bytes.Repeat([]byte{0xa5}, 800)
			from := src[n%70 : n%70+n]
			Copy(dst[at:], from)
			copy(want[at:], from)
			if !bytes.Equal(dst, want) {
				t.Fatalf("the copy of %d bytes to offset %d differs", n, at)
			}
		}
	}
}

// CopyBefore copies what copy does, wherever the copy after it is to go.
func TestCopyBefore(t *testing.T) {
	src := make([]byte, 5000)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	dst := make([]byte, len(src)+200)
	behind := uintptr(unsafe.Pointer(&dst[0]))
	for _, n := range []int{0, 1, 63, 64, 65, 256, 2047, 2048, 2049, 2112, 4095, 4096, 5000} {
		for _, at := range []int{0, 1, 63} {
			for _, next := range []uintptr{0, 1, behind, behind + 4096, 1 << 63, ^uintptr(0)} {
				fill := bytes.Repeat([]byte{0xa5}, len(dst))
				copy(dst, fill)
				CopyBefore(dst[at:], src[:n], next)
				copy(fill[at:], src[:n])
				if !bytes.Equal(dst, fill) {
					t.Fatalf("the copy of %d bytes to offset %d before one to %#x differs", n, at, next)
				}
			}
		}
	}
}

// Copy panics where the destination is too short, and does not write beyond it.
func TestCopyShort(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a copy of 128 bytes into 64 did not panic")
		}
	}()
	Copy(make([]byte, 64), make([]byte, 128))
}

// BenchmarkCopy copies pieces of 1 KB from memory in the cache to 16 MB in turn.
func BenchmarkCopy(b *testing.B) {
	src, dst := make([]byte, 64<<10), make([]byte, 16<<20)
	for _, way := range []struct {
		name string
		work func(dst, src []byte)
	}{{"ahead", Copy}, {"plain", func(dst, src []byte) { copy(dst, src) }}} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(1024)
			for i := 0; b.Loop(); i++ {
				s, d := i*1040%(len(src)-1024), i*1024%len(dst)
				way.work(dst[d:d+1024], src[s:s+1024])
			}
		})
	}
}
