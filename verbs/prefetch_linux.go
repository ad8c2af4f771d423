package verbs

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// populate makes the pages that b touches. Kernels before 5.14 cannot; there the first use makes them.
func populate(b []byte, write bool) error {
	page := uintptr(os.Getpagesize())
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	to := (from + uintptr(len(b)) + page - 1) &^ (page - 1)
	from &^= page - 1
	how := uintptr(unix.MADV_POPULATE_READ)
	if write {
		how = unix.MADV_POPULATE_WRITE
	}
	for {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, how)
		switch {
		case errno == 0, errors.Is(errno, unix.EINVAL):
			return nil
		case errno != unix.EINTR && errno != unix.EAGAIN:
			return errno
		}
	}
}
