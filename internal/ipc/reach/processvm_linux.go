package reach

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/memory"
)

// ProcessVM accesses the memory of another process with process_vm_readv and process_vm_writev. Only one
// thread at a time may use it (the owner of the loop).
type ProcessVM struct {
	pid  atomic.Int64 // changes when the program moves
	gone atomic.Bool  // the client's stream ended: its pid may soon be reused

	local  [vmVectors]unix.Iovec
	remote [vmVectors]unix.RemoteIovec
}

// vmVectors is how many pieces of memory one call of process_vm_writev takes here.
const vmVectors = 256

// NewProcessVM returns access to the memory of a process.
func NewProcessVM(pid int) *ProcessVM {
	p := &ProcessVM{}
	p.pid.Store(int64(pid))
	return p
}

var _ memory.Gathering = (*ProcessVM)(nil)

// Follow switches to another process, to which the program moved.
func (p *ProcessVM) Follow(pid int) { p.pid.Store(int64(pid)) }

// End makes every later call fail: the program is gone.
func (p *ProcessVM) End() { p.gone.Store(true) }

// Blocking implements memory.Accessor.
func (p *ProcessVM) Blocking() bool { return true }

// Read implements memory.Accessor.
func (p *ProcessVM) Read(dst []byte, addr uint64) error {
	return p.move(unix.SYS_PROCESS_VM_READV, dst, addr)
}

// Write implements memory.Accessor.
func (p *ProcessVM) Write(addr uint64, src []byte) error {
	return p.move(unix.SYS_PROCESS_VM_WRITEV, src, addr)
}

func (p *ProcessVM) move(call uintptr, b []byte, addr uint64) error {
	for len(b) > 0 {
		if p.gone.Load() {
			return memory.ErrGone
		}
		if uint64(uintptr(addr)) != addr {
			return fmt.Errorf("%w: address %#x", memory.ErrGone, addr)
		}
		local := unix.Iovec{Base: &b[0]}
		local.SetLen(len(b))
		remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(b)}
		n, _, errno := unix.Syscall6(call, uintptr(p.pid.Load()), uintptr(unsafe.Pointer(&local)), 1,
			uintptr(unsafe.Pointer(&remote)), 1, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return fmt.Errorf("%w: process_vm: %v", memory.ErrGone, errno)
		case n == 0 || n > uintptr(len(b)):
			return fmt.Errorf("%w: process_vm copied %d bytes of %d", memory.ErrGone, n, len(b))
		}
		b, addr = b[n:], addr+uint64(n)
	}
	return nil
}

// WriteAll implements memory.Gathering.
func (p *ProcessVM) WriteAll(pieces []memory.Piece) (int, error) {
	done := 0
	for done < len(pieces) {
		n, err := p.writeSome(pieces[done:min(len(pieces), done+vmVectors)])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// writeSome writes at least the first of pieces with one call. The kernel stops at the first that it
// cannot write.
func (p *ProcessVM) writeSome(pieces []memory.Piece) (int, error) {
	if p.gone.Load() {
		return 0, memory.ErrGone
	}
	for i := range pieces {
		w := &pieces[i]
		if uint64(uintptr(w.Addr)) != w.Addr {
			pieces = pieces[:i]
			break
		}
		p.local[i] = unix.Iovec{Base: unsafe.SliceData(w.Data)}
		p.local[i].SetLen(len(w.Data))
		p.remote[i] = unix.RemoteIovec{Base: uintptr(w.Addr), Len: len(w.Data)}
	}
	k := uintptr(len(pieces))
	if k == 0 {
		return 0, fmt.Errorf("%w: address beyond the address space", memory.ErrGone)
	}
	n, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_WRITEV, uintptr(p.pid.Load()), uintptr(unsafe.Pointer(&p.local)), k,
		uintptr(unsafe.Pointer(&p.remote)), k, 0)
	clear(p.local[:k])
	switch {
	case errno == unix.EINTR:
		return 0, nil
	case errno != 0:
		return 0, fmt.Errorf("%w: process_vm: %v", memory.ErrGone, errno)
	}
	whole := 0
	for whole < len(pieces) && uintptr(len(pieces[whole].Data)) <= n {
		n -= uintptr(len(pieces[whole].Data))
		whole++
	}
	if whole == 0 {
		return 0, fmt.Errorf("%w: process_vm copied %d bytes of a piece", memory.ErrGone, n)
	}
	return whole, nil
}

// Reach implements device.ClientConfig.Reach. It checks that both ends of a region exist.
func (p *ProcessVM) Reach(r command.RegisterMemory) (device.Reached, error) {
	if r.Length > 0 && r.Base+(r.Length-1) >= r.Base {
		var b [1]byte
		for _, addr := range []uint64{r.Base, r.Base + r.Length - 1} {
			if err := p.Read(b[:], addr); err != nil {
				return device.Reached{}, command.Errorf(command.Invalid, "Base %#x, Length %d: %#x is not memory of the program", r.Base, r.Length, addr)
			}
		}
	}
	return device.Reached{Remote: p, Path: command.MemoryProcessVM}, nil
}

// Probe checks that the kernel lets the driver read and write the client: the nonce is at addr, followed
// by 16 bytes that may be written.
func (p *ProcessVM) Probe(addr uint64, nonce [16]byte) error {
	var b [16]byte
	if err := p.Read(b[:], addr); err != nil {
		return err
	}
	if b != nonce {
		return fmt.Errorf("process %d does not have the nonce of this client", p.pid.Load())
	}
	for i := range b {
		b[i] ^= 0xff
	}
	return p.Write(addr+16, b[:])
}

// NewProbe creates the page of a program that the driver probes.
func NewProbe() ([]byte, error) {
	return unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}
