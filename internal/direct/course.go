package direct

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
)

const (
	// courseBytes is the message size from which on prefetching the destination is worthwhile.
	courseBytes = 256
	// courseAhead is how far ahead to prefetch, in bytes of messages.
	courseAhead = 2048
)

// course predicts where the next message will be put: at the same distance from the last one as that was
// from the one before, as along a stretch of memory or in a queue of buffers. The destination of a message
// is in the responder's caches or in none, and a message ends with stores that wait for all of it;
// therefore it is prefetched while earlier messages are copied.
type course struct {
	last, step uintptr
}

// put copies a message, its last bytes last.
func (c *course) put(dst, src []byte) {
	if len(src) < courseBytes {
		memory.Place(dst, src)
		return
	}
	if next := c.next(uintptr(unsafe.Pointer(&dst[0])), len(src)); next != 0 {
		memory.PlaceBefore(dst, src, next)
		return
	}
	memory.Place(dst, src)
}

// next returns the address to prefetch when n bytes are put to at; 0: unknown. Memory to which messages
// return is in use elsewhere, and not prefetched.
func (c *course) next(at uintptr, n int) uintptr {
	step := at - c.last
	steady := step == c.step && step != 0
	c.last, c.step = at, step
	if !steady {
		return 0
	}
	return at + step*uintptr(max(courseAhead/n, 1))
}
