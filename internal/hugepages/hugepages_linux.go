package hugepages

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// most bounds what Gather makes large pages of at once, in bytes: some 1 ms each MB. What lies behind it the system
// makes large in its own time.
const most = 64 << 20

// Prefer asks for large pages in memory that is to be touched, which systems give to who asks only.
func Prefer(mem []byte) {
	if len(mem) >= Size {
		_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	}
}

// Gather has the length bytes of this process from address base lie in large pages as far as whole ones fit, those of them too
// that were touched already, whose contents stay. It does nothing where the system is to have none ("never" in
// /sys/kernel/mm/transparent_hugepage/enabled).
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

// refused reports that whoever runs the system wants no large pages.
var refused = sync.OnceValue(func() bool {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err != nil || strings.Contains(string(b), "[never]")
})
