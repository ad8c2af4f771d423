package direct

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
)

const (
	// strideBytes is the message size from which on prefetching the destination is worthwhile, and strideMost that up to which it
	// is: the processor's own prefetching follows a longer copy, which is faster by itself.
	strideBytes = 256
	strideMost  = 8 << 10
	// strideAhead is how far ahead to prefetch, in bytes of messages.
	strideAhead = 2048
)

// stridePrefetch predicts where the next message will be put: at the same distance from the last one as that was
// from the one before, as along a stretch of memory or in a queue of buffers. The destination of a message
// is in the responder's caches or in none, and a message ends with stores that wait for all of it;
// therefore it is prefetched while earlier messages are copied.
type stridePrefetch struct {
	last, step uintptr
}

// put copies a message, its last bytes last.
func (p *stridePrefetch) put(dst, src []byte) {
	if len(src) < strideBytes || len(src) > strideMost {
		memory.Place(dst, src)
		return
	}
	if next := p.next(uintptr(unsafe.Pointer(&dst[0])), len(src)); next != 0 {
		memory.PlaceBefore(dst, src, next)
		return
	}
	memory.Place(dst, src)
}

// next returns the address to prefetch when n bytes are put to at; 0: unknown. Memory to which messages
// return is in use elsewhere, and not prefetched.
func (p *stridePrefetch) next(at uintptr, n int) uintptr {
	step := at - p.last
	steady := step == p.step && step != 0
	p.last, p.step = at, step
	if !steady {
		return 0
	}
	return at + step*uintptr(max(strideAhead/n, 1))
}
