package hugepages

import (
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Prefer asks for large pages in memory not yet touched, on systems that only provide them on request.
func Prefer(mem []byte) {
	if len(mem) >= Size {
		_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	}
}

// Gather moves length bytes of this process from address base to large pages as far as whole ones fit, including memory
// already touched, whose contents stay. Touched memory takes 0.3 to 5 ms a MB, so it stops once patience is over, but not
// before one large page. It returns how many bytes from base are done: length, if nothing is left. It does nothing if
// large pages are disabled ("never" in /sys/kernel/mm/transparent_hugepage/enabled).
func Gather(base, length uint64, patience time.Duration) (done uint64) {
	from, to := whole(base, length)
	if to == from || refused() {
		return length
	}
	advise(from, to, unix.MADV_HUGEPAGE)
	for begin := time.Now(); from < to; {
		advise(from, from+Size, unix.MADV_COLLAPSE) // Linux 6.1
		if from += Size; time.Since(begin) >= patience {
			break
		}
	}
	if from == to {
		return length
	}
	return from - base
}

// GatherHeap moves what Go's heap has in use to large pages, as Gather does, and says whether nothing is left. A heap that has grown has
// new memory in small ones: who works on a large one for long calls it again and again, which costs some microseconds a megabyte.
func GatherHeap(patience time.Duration) (all bool) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return true
	}
	defer maps.Close()
	var here byte // stacks of goroutines are among it
	heap := heapOf(maps, uint64(uintptr(unsafe.Pointer(&here))))
	for begin := time.Now(); len(heap) > 0; heap = heap[1:] {
		left := patience - time.Since(begin)
		if x := heap[0]; left < 0 || Gather(x.from, x.to-x.from, left) < x.to-x.from {
			return false
		}
	}
	return true
}

func advise(from, to uint64, advice uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), advice)
}

// refused reports whether the administrator has disabled large pages.
var refused = sync.OnceValue(func() bool {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err != nil || strings.Contains(string(b), "[never]")
})
