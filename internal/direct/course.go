package direct

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
)

const (
	// courseBytes is from how many bytes on it is worth asking for the memory of a message ahead.
	courseBytes = 256
	// courseAhead is how far ahead that is, in bytes of messages.
	courseAhead = 2048
)

// course foresees where the next message is put: as far from the last one as that was from
// the one before, as along a stretch of memory or in a queue of buffers. What a message is copied
// to lies in the responder's caches or in none, and a message ends with stores that wait for
// all of it: it is asked for while those before are copied.
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

// next returns the address that is to be asked for as n bytes are put to at; 0: nobody knows.
// Memory that messages return to is with who uses it, and not asked for.
func (c *course) next(at uintptr, n int) uintptr {
	step := at - c.last
	steady := step == c.step && step != 0
	c.last, c.step = at, step
	if !steady {
		return 0
	}
	return at + step*uintptr(max(courseAhead/n, 1))
}
