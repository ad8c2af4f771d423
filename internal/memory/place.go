package memory

import (
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
	"github.com/softvpi/softvpi/internal/cpu/release"
)

// Place copies src to dst, of equal length, storing the final bytes after all others: a program may poll
// the last byte of an RDMA write.
func Place(dst, src []byte) { place(dst, src, 0) }

// PlaceBefore is Place with a prediction that the next message will go to the address next.
func PlaceBefore(dst, src []byte, next uintptr) { place(dst, src, next) }

func place(dst, src []byte, next uintptr) {
	n := len(src)
	if n == 0 {
		return
	}
	end := uintptr(unsafe.Pointer(&dst[n-1])) + 1
	switch {
	case n >= 8 && end%8 == 0:
		bulk(dst[:n-8], src[:n-8], next)
		v := *(*[8]byte)(src[n-8:])
		release.Store64((*uint64)(unsafe.Pointer(&dst[n-8])), *(*uint64)(unsafe.Pointer(&v)))
	case n >= 4 && end%4 == 0:
		bulk(dst[:n-4], src[:n-4], next)
		v := *(*[4]byte)(src[n-4:])
		release.Store32((*uint32)(unsafe.Pointer(&dst[n-4])), *(*uint32)(unsafe.Pointer(&v)))
	default:
		bulk(dst[:n-1], src[:n-1], next)
		fence()
		dst[n-1] = src[n-1]
	}
}

func bulk(dst, src []byte, next uintptr) {
	if next == 0 {
		copy(dst, src)
		return
	}
	prefetch.CopyBefore(dst, src, next)
}

// fence keeps earlier stores from becoming visible after later ones: an atomic read-modify-write is
// ordered both ways.
func fence() {
	var word atomic.Uint32
	word.Add(1)
}

// writeLastRemote splits the write, so that the last bytes are written by a call of their own: a single
// process_vm_writev guarantees no order.
func writeLastRemote(a Accessor, addr uint64, src []byte) error {
	if l, ok := a.(LastWriter); ok {
		return l.WriteLast(addr, src)
	}
	tail := min(len(src), 8)
	if body := src[:len(src)-tail]; len(body) > 0 {
		if err := a.Write(addr, body); err != nil {
			return err
		}
	}
	return a.Write(addr+uint64(len(src)-tail), src[len(src)-tail:])
}
