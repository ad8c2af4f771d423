//go:build unix

package verbs

import (
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/cpu/hugepages"
)

// allocate maps n bytes of zeroed memory outside the Go heap, so that the collector does not scan or count
// them.
func allocate(n int) (mem []byte, release func(), err error) {
	mem, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	hugepages.Prefer(mem)
	return mem, func() { _ = unix.Munmap(mem) }, nil
}
