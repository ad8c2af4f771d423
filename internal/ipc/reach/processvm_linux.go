package reach

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/memory"
)

// ProcessVM accesses the memory of another process with process_vm_readv and process_vm_writev. A page that
// is not there is made in the call, which takes as long as whoever provides it wants: a userfaultfd's reader,
// a FUSE file system. The loop therefore leaves such pages to other threads, see vmRegion.
type ProcessVM struct {
	pid     atomic.Int64 // changes when the program moves
	gone    atomic.Bool  // the client's stream ended: its pid may soon be reused
	pagemap atomic.Pointer[os.File]
	movers  *Movers
	own     Movers // those of this program

	mu   sync.Mutex
	wake func() // wakes the loop; nil: it has forgotten the program

	// The loop's.
	waited time.Time // when it last waited for memory in vain
	local  [vmVectors]unix.Iovec
	remote [vmVectors]unix.RemoteIovec
}

// vmVectors is how many pieces of memory one call of process_vm_writev takes here.
const vmVectors = 256

// NewProcessVM returns access to the memory of a process. all counts the threads that copy for all
// processes, wake wakes the loop when one of them has news. The caller closes it.
func NewProcessVM(pid int, all *Movers, wake func()) *ProcessVM {
	p := &ProcessVM{movers: all, wake: wake}
	p.Follow(pid)
	return p
}

// Follow switches to another process, to which the program moved.
func (p *ProcessVM) Follow(pid int) {
	p.pid.Store(int64(pid))
	// Without it every page counts as there.
	f, _ := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if old := p.pagemap.Swap(f); old != nil {
		old.Close()
	}
}

// news wakes the loop.
func (p *ProcessVM) news() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wake != nil {
		p.wake()
	}
}

// End makes every later call fail: the program is gone.
func (p *ProcessVM) End() { p.gone.Store(true) }

// Close closes its descriptor, and wakes nobody any more. The loop must no longer have regions of it.
func (p *ProcessVM) Close() {
	p.End()
	p.mu.Lock()
	p.wake = nil
	p.mu.Unlock()
	if f := p.pagemap.Swap(nil); f != nil {
		f.Close()
	}
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

// writeLast writes the last bytes of b by a call of their own: what one call writes has no order.
func (p *ProcessVM) writeLast(b []byte, addr uint64) error {
	n := max(len(b)-8, 0)
	if err := p.move(unix.SYS_PROCESS_VM_WRITEV, b[:n], addr); err != nil {
		return err
	}
	return p.move(unix.SYS_PROCESS_VM_WRITEV, b[n:], addr+uint64(n))
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

// touch reads a byte of each page from addr to end, at most warmPages of them, so that they are made. It may be called
// from any thread.
func (p *ProcessVM) touch(addr, end uint64) {
	var bytes [warmPages]byte
	var remote [warmPages]unix.RemoteIovec
	n := 0
	for ; n < warmPages && addr < end; addr = addr&^(pageSize-1) + pageSize {
		if uint64(uintptr(addr)) != addr {
			break
		}
		remote[n] = unix.RemoteIovec{Base: uintptr(addr), Len: 1}
		n++
	}
	if n == 0 || p.gone.Load() {
		return
	}
	local := unix.Iovec{Base: &bytes[0]}
	local.SetLen(n)
	unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(p.pid.Load()), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote)), uintptr(n), 0)
}

// registerTime is how long the two ends of a region may take to be read when it is registered.
const registerTime = 2 * time.Second

// Reach implements device.ClientConfig.Reach. It checks that both ends of a region exist, unless the region is on
// demand: of that nothing is touched before it is used.
func (p *ProcessVM) Reach(r command.RegisterMemory) (device.Reached, error) {
	onDemand := memory.Access(r.Access)&memory.OnDemand != 0
	if !onDemand && r.Length > 0 && r.Base+(r.Length-1) >= r.Base {
		for _, addr := range []uint64{r.Base, r.Base + r.Length - 1} {
			switch err := p.within(registerTime, func() error { return p.move(unix.SYS_PROCESS_VM_READV, make([]byte, 1), addr) }); {
			case errors.Is(err, errSlow):
				return device.Reached{}, command.Errorf(command.TimedOut, "Base %#x, Length %d: %#x did not answer within %v", r.Base,
					r.Length, addr, registerTime)
			case err != nil:
				return device.Reached{}, command.Errorf(command.Invalid, "Base %#x, Length %d: %#x is not memory of the program", r.Base,
					r.Length, addr)
			}
		}
	}
	v := newVMRegion(p)
	if v.end = r.Base + r.Length; v.end > r.Base && !onDemand {
		v.warm(r.Base)
	}
	return device.Reached{Remote: v, Path: command.MemoryProcessVM}, nil
}

// Probe checks that the kernel lets the driver read and write the client: the nonce is at addr, followed
// by 16 bytes that may be written.
func (p *ProcessVM) Probe(addr uint64, nonce [16]byte) error {
	return p.within(registerTime, func() error {
		var b [16]byte
		if err := p.move(unix.SYS_PROCESS_VM_READV, b[:], addr); err != nil {
			return err
		}
		if b != nonce {
			return fmt.Errorf("process %d does not have the nonce of this client", p.pid.Load())
		}
		for i := range b {
			b[i] ^= 0xff
		}
		return p.move(unix.SYS_PROCESS_VM_WRITEV, b[:], addr+16)
	})
}

// NewProbe creates the page of a program that the driver probes.
func NewProbe() ([]byte, error) {
	return unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}
