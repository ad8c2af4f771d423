// Package shared provides memory that processes share, and lets them sleep on words in it. Linux only:
// memory files and futexes.
package shared

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// New allocates and maps size bytes of zeroed memory that can be passed to another process. Its size is
// sealed: no client can shrink it under the driver. The caller closes the descriptor and unmaps the
// memory.
func New(name string, size int) (fd int, mem []byte, err error) {
	fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, nil, fmt.Errorf("memfd_create: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err = unix.Ftruncate(fd, int64(size)); err != nil {
		return -1, nil, fmt.Errorf("ftruncate: %w", err)
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return -1, nil, fmt.Errorf("seal: %w", err)
	}
	mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return -1, nil, fmt.Errorf("mmap: %w", err)
	}
	return fd, mem, nil
}

// NewReadable is New for memory that others can only read.
func NewReadable(name string, size int) (fd int, mem []byte, err error) {
	fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, nil, fmt.Errorf("memfd_create: %w", err)
	}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil { // what is already mapped stays writable
		const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			_ = unix.Munmap(mem)
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, fmt.Errorf("shared memory to be read: %w", err)
	}
	return fd, mem, nil
}

// Populate allocates every page of mem, so that the loop does not have to wait for the kernel at the first
// access. It does so in small steps: each holds a lock of the address space for which faults of the loop
// wait. Kernels before 5.14 do not support this; the loop then takes the faults.
func Populate(mem []byte) {
	const step = 2 << 20
	for len(mem) > 0 {
		n := min(step, len(mem))
		if unix.Madvise(mem[:n], unix.MADV_POPULATE_WRITE) != nil {
			return
		}
		mem = mem[n:]
	}
}

// Map maps size bytes of another process through the descriptor that it passed, which the caller keeps.
func Map(fd int, size uint64) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("fstat: %w", err)
	}
	if size == 0 || uint64(st.Size) < size || size > 1<<46 {
		return nil, fmt.Errorf("shared memory of %d bytes, %d announced", st.Size, size)
	}
	mem, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return mem, nil
}

// Retire replaces a mapping with private zero memory that takes no space: a goroutine of the program that
// still reads a ring after Close finds nothing there, instead of faulting.
func Retire(mem []byte) {
	const how = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED | unix.MAP_NORESERVE
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(&mem[0]), uintptr(len(mem)), unix.PROT_READ|unix.PROT_WRITE, how)
}
