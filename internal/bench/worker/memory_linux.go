package worker

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/cpu/hugepages"
)

// lend maps n bytes, in large pages if the system has them, and says where others find them.
func (w *worker) lend(n int) (FarMemory, error) {
	if err := w.take(n); err != nil {
		return FarMemory{}, err
	}
	return FarMemory{os.Getpid(), uint64(uintptr(unsafe.Pointer(&w.mem[0]))), uint64(n)}, nil
}

// take maps n bytes as the worker's memory, in place of what it had.
func (w *worker) take(n int) error {
	w.release()
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("mmap of %d bytes: %w", n, err)
	}
	hugepages.Prefer(mem)
	for i := range mem { // untouched pages would all map to a single page of zeros
		mem[i] = byte(i)
	}
	w.mem = mem
	return nil
}

func (w *worker) release() {
	if w.mem != nil {
		_ = unix.Munmap(w.mem)
		w.mem = nil
	}
}

// copy returns the Gb/s (2^30 bits) at which one thread has the kernel copy blocks to the memory of another process, one
// call of process_vm_writev a block.
func (w *worker) copy(a CopyArgs) (gbps float64, err error) {
	if a.Bytes <= 0 || a.To.Length < uint64(a.Bytes) || a.To.Length%uint64(a.Bytes) != 0 {
		return 0, fmt.Errorf("blocks of %d bytes do not divide %d bytes", a.Bytes, a.To.Length)
	}
	if err := w.take(int(a.To.Length)); err != nil {
		return 0, err
	}
	defer w.release()
	start, blocks, at := time.Now(), 0, 0
	for blocks&15 != 0 || time.Since(start).Seconds() < a.Seconds {
		from := []unix.Iovec{{Base: &w.mem[at]}}
		from[0].SetLen(a.Bytes)
		to := []unix.RemoteIovec{{Base: uintptr(a.To.Address) + uintptr(at), Len: a.Bytes}}
		n, err := unix.ProcessVMWritev(a.To.Process, from, to, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != a.Bytes {
			return 0, fmt.Errorf("process_vm_writev: %d of %d bytes: %w", n, a.Bytes, err)
		}
		blocks++
		if at += a.Bytes; at == len(w.mem) {
			at = 0
		}
	}
	return float64(blocks) * float64(a.Bytes) * 8 / (1 << 30) / time.Since(start).Seconds(), nil
}
