package memory

import (
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/release"
)

// Place copies src to dst, of equal length, so that the final bytes are stored
// after all others: a program may poll on the last byte of an RDMA write.
func Place(dst, src []byte) {
	n := len(src)
	if n == 0 {
		return
	}
	end := uintptr(unsafe.Pointer(&dst[n-1])) + 1
	switch {
	case n >= 8 && end%8 == 0:
		copy(dst[:n-8], src[:n-8])
		v := *(*[8]byte)(src[n-8:])
		release.Store64((*uint64)(unsafe.Pointer(&dst[n-8])), *(*uint64)(unsafe.Pointer(&v)))
	case n >= 4 && end%4 == 0:
		copy(dst[:n-4], src[:n-4])
		v := *(*[4]byte)(src[n-4:])
		release.Store32((*uint32)(unsafe.Pointer(&dst[n-4])), *(*uint32)(unsafe.Pointer(&v)))
	default:
		copy(dst[:n-1], src[:n-1])
		fence()
		dst[n-1] = src[n-1]
	}
}

// fence keeps stores before it from becoming visible after stores behind it: an
// atomic read-modify-write is ordered both ways.
func fence() {
	var word atomic.Uint32
	word.Add(1)
}

// writeLastRemote splits the write, so that the last bytes come with a call of
// their own: one process_vm_writev copies in no promised order.
func writeLastRemote(a Accessor, addr uint64, src []byte) error {
	tail := min(len(src), 8)
	if body := src[:len(src)-tail]; len(body) > 0 {
		if err := a.Write(addr, body); err != nil {
			return err
		}
	}
	return a.Write(addr+uint64(len(src)-tail), src[len(src)-tail:])
}
