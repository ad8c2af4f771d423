package hugepages

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// most limits how many bytes Gather collapses into large pages at once, at about 1 ms per MB. The system
// collapses the rest in its own time.
const most = 64 << 20

// Prefer asks for large pages in memory not yet touched, on systems that only provide them on request.
func Prefer(mem []byte) {
	if len(mem) >= Size {
		_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	}
}

// Gather moves length bytes of this process from address base to large pages as far as whole ones fit,
// including memory already touched, whose contents stay. It does nothing if large pages are disabled
// ("never" in /sys/kernel/mm/transparent_hugepage/enabled).
func Gather(base, length uint64) {
	from, to := whole(base, length)
	if to == from || refused() {
		return
	}
	advise(from, to, unix.MADV_HUGEPAGE)
	advise(from, min(to, from+most), unix.MADV_COLLAPSE) // Linux 6.1
}

func advise(from, to uint64, advice uintptr) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), advice)
}

// refused reports whether the administrator has disabled large pages.
var refused = sync.OnceValue(func() bool {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err != nil || strings.Contains(string(b), "[never]")
})
