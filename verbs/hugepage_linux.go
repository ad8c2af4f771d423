package verbs

import "golang.org/x/sys/unix"

// hugePage is the size of the large pages of most processors.
const hugePage = 2 << 20

// preferHuge asks for large pages, which systems give to who asks only: what cycles
// through more memory than the processor has translations at hand for is copied some
// per cent faster. Without them everything works the same.
func preferHuge(mem []byte) {
	if len(mem) >= hugePage {
		_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	}
}
