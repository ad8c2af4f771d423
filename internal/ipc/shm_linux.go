package ipc

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newShared makes size bytes of zeroed memory that can be passed to another
// process, and maps it. Its size is sealed: no client can shrink it under the
// driver. The caller closes the descriptor and unmaps the memory.
func newShared(name string, size int) (fd int, mem []byte, err error) {
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

// newReadable is newShared for memory that others can only read.
func newReadable(name string, size int) (fd int, mem []byte, err error) {
	fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, nil, fmt.Errorf("memfd_create: %w", err)
	}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil { // what is mapped already stays writable
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

// keptFiles is how many descriptors of segments are kept for neighbours: half of
// what the process may open.
func keptFiles() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return r.Cur / 2
}

// monotonic reads CLOCK_MONOTONIC, the same for all processes of a machine.
func monotonic() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail
	return uint64(ts.Nano())
}

// populate gives every page of mem its memory, so that the loop does not have to
// wait for the kernel at the first touch. It goes in small steps: each holds a lock
// of the address space that faults of the loop wait for. Kernels before 5.14
// cannot; the loop then takes the faults.
func populate(mem []byte) {
	const step = 2 << 20
	for len(mem) > 0 {
		n := min(step, len(mem))
		if unix.Madvise(mem[:n], unix.MADV_POPULATE_WRITE) != nil {
			return
		}
		mem = mem[n:]
	}
}

// physicalMemory returns the bytes of memory of the machine.
func physicalMemory() uint64 {
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) != nil {
		return 0
	}
	return uint64(si.Totalram) * uint64(si.Unit)
}

// mapShared maps a descriptor that the driver passed.
func mapShared(fd int, size uint64) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("fstat: %w", err)
	}
	if size == 0 || uint64(st.Size) < size || size > 1<<46 {
		return nil, fmt.Errorf("%w: shared memory of %d bytes, %d announced", errFrame, st.Size, size)
	}
	mem, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return mem, nil
}

// retire replaces a mapping with private zero memory that takes no space: a
// goroutine of the program that still looks at a ring after Close finds nothing
// there, instead of a fault.
func retire(mem []byte) {
	const how = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED | unix.MAP_NORESERVE
	_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(&mem[0]), uintptr(len(mem)), unix.PROT_READ|unix.PROT_WRITE, how)
}

const (
	futexWait = 0
	futexWake = 1
)

// sleepOnWord sleeps while *word is value, at most ns nanoseconds; it may return early.
func sleepOnWord(word *uint32, value uint32, ns int64) {
	ts := unix.NsecToTimespec(ns)
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// wakeWord wakes all who sleep on word, in any process.
func wakeWord(word *uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
}

func yieldProcessor() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
