package verbs

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
)

// Access is the set of rights of a memory region or window (IBA 10.6.3). Local
// read is always granted.
type Access uint32

// The rights.
const (
	LocalWrite   = Access(memory.LocalWrite)   // receives and results of reads may be placed in it
	RemoteWrite  = Access(memory.RemoteWrite)  // peers may write; needs LocalWrite
	RemoteRead   = Access(memory.RemoteRead)   // peers may read
	RemoteAtomic = Access(memory.RemoteAtomic) // peers may do atomics; needs LocalWrite
	WindowBind   = Access(memory.WindowBind)   // windows may be bound to it
	ZeroBased    = Access(memory.ZeroBased)    // peers use offsets from the start of the region as addresses
	// OnDemand: nothing of the memory is touched before it is used. Its pages may be missing when it is registered; one that
	// is missing when it is used is an error of the request that uses it. Embedded adapters reach such memory by system
	// calls: ErrUnsupported where there are none (other than Linux), or the process may not use them (seccomp).
	OnDemand    = Access(memory.OnDemand)
	FlushGlobal = Access(memory.FlushGlobal) // peers may flush with PlaceGlobal (OpFlush)
	allAccess   = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic | WindowBind | ZeroBased | OnDemand | FlushGlobal
)

// MemoryPath is how the adapter reaches the memory of a region.
type MemoryPath uint32

// The paths.
const (
	PathMapped    = MemoryPath(command.MemoryMapped)    // in its own address space
	PathProcessVM = MemoryPath(command.MemoryProcessVM) // process_vm_readv and process_vm_writev
	PathCopier    = MemoryPath(command.MemoryCopier)    // the program that owns the memory copies for it
)

// String returns the path as shown in status output.
func (p MemoryPath) String() string { return command.MemoryPath(p).String() }

// MR is a registered memory region.
type MR struct {
	pd      *PD
	buf     []byte
	access  Access
	mem     command.Memory
	segment uint32 // shared segment that holds the memory, 0 for the program's own
	release func() // frees allocated memory; nil for the program's own

	mu   sync.Mutex
	done bool
}

// Register makes b accessible to the adapter and, as access allows, to peers. The bytes stay reachable and
// do not move until Deregister. b must not be empty.
func (pd *PD) Register(b []byte, access Access) (*MR, error) {
	if len(b) == 0 {
		return nil, newError("register memory", ErrInvalid, "the buffer is empty")
	}
	return pd.register(b, access, 0, nil)
}

// Allocate registers n bytes of new, zeroed memory. When attached to a driver this is memory shared with
// it, outside the Go heap: the fastest kind. Deregister frees it: do not touch the bytes after that.
func (pd *PD) Allocate(n int, access Access) (*MR, error) {
	if n <= 0 {
		return nil, newError("allocate memory", ErrInvalid, "n is %d, want 1 or more", n)
	}
	if uint64(n) > pd.dev.limit.MaxRegion {
		return nil, newError("allocate memory", ErrInvalid, "n is %d, MaxRegion is %d", n, pd.dev.limit.MaxRegion)
	}
	if s, ok := pd.dev.host.backend.(sharer); ok {
		id, mem, err := s.AllocSegment(pd.dev.host.ctx, uint64(n))
		if err != nil {
			return nil, wrap("allocate memory", err)
		}
		return pd.register(mem[:n:n], access, id, func() { _ = s.FreeSegment(id) })
	}
	mem, release, err := allocate(n)
	if err != nil {
		return nil, newError("allocate memory", ErrExhausted, "%v", err)
	}
	return pd.register(mem, access, 0, release)
}

func (pd *PD) register(b []byte, access Access, segment uint32, release func()) (*MR, error) {
	return pd.registerAt(b, access, segment, 0, release)
}

// registerAt registers b, which lies at an offset of a segment unless segment is 0. If it fails it has called release.
func (pd *PD) registerAt(b []byte, access Access, segment uint32, offset uint64, release func()) (*MR, error) {
	mr := &MR{pd: pd, buf: b, access: access, segment: segment, release: release}
	if err := checkAccess(access); err != nil {
		mr.free()
		return nil, err
	}
	h := pd.dev.host
	if release == nil {
		if !h.pins.pin(mr) {
			return nil, newError("register memory", ErrClosed, "")
		}
	}
	m, err := h.backend.RegisterMemory(h.ctx, command.RegisterMemory{
		PD: pd.handle, Access: uint32(access), Base: mr.Addr(), Length: uint64(len(b)), Segment: segment,
		SegmentOffset: offset,
	})
	if err != nil {
		mr.free()
		return nil, wrap("register memory", err)
	}
	mr.mem = m
	if release != nil {
		h.pins.hold(mr)
	}
	return mr, nil
}

func checkAccess(a Access) error {
	if a&^allAccess != 0 {
		return newError("register memory", ErrInvalid, "access has unknown bits %#x", uint32(a&^allAccess))
	}
	if a&(RemoteWrite|RemoteAtomic) != 0 && a&LocalWrite == 0 {
		return newError("register memory", ErrInvalid, "RemoteWrite and RemoteAtomic need LocalWrite")
	}
	return nil
}

// free unpins the bytes or, if they were allocated, frees them.
func (mr *MR) free() {
	if mr.release != nil {
		mr.release()
		mr.release = nil
	}
	mr.pd.dev.host.pins.unpin(mr)
}

// LKey returns the key for scatter/gather entries.
func (mr *MR) LKey() uint32 { return mr.mem.LKey }

// RKey returns the key that peers use.
func (mr *MR) RKey() uint32 { return mr.mem.RKey }

// Addr returns the address of the first byte in the program, which scatter/gather entries and peers use too, unless the
// region is ZeroBased.
func (mr *MR) Addr() uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mr.buf)))) }

// RemoteAddr returns the address by which peers, and scatter/gather entries, name the first byte: Addr, or 0 with
// ZeroBased.
func (mr *MR) RemoteAddr() uint64 {
	if mr.access&ZeroBased != 0 {
		return 0
	}
	return mr.Addr()
}

// Bytes returns the registered bytes.
func (mr *MR) Bytes() []byte { return mr.buf }

// Len returns the number of registered bytes.
func (mr *MR) Len() int { return len(mr.buf) }

// Access returns the rights.
func (mr *MR) Access() Access { return mr.access }

// Path returns how the adapter reaches the memory.
func (mr *MR) Path() MemoryPath { return MemoryPath(mr.mem.Path) }

// SGE returns the scatter/gather entry for n bytes from offset. The adapter refuses an entry that is not
// inside the region with a local protection error.
func (mr *MR) SGE(offset, n int) SGE {
	return SGE{Addr: mr.RemoteAddr() + uint64(offset), Length: uint32(n), LKey: mr.mem.LKey}
}

// Deregister takes the memory back from the adapter: once it returns, no packet uses it any more. Later
// requests that name it fail. ErrBusy while memory windows are bound to it.
func (mr *MR) Deregister() error {
	mr.mu.Lock()
	defer mr.mu.Unlock()
	if mr.done {
		return nil
	}
	h := mr.pd.dev.host
	err := h.destroyed("deregister memory", h.backend.Destroy(h.ctx, command.KindMemory, mr.mem.Handle))
	if err != nil {
		return err
	}
	mr.done = true
	mr.free()
	return nil
}

// pins keeps the memory of regions reachable and in place. A pinned region is never freed before the
// adapter has let go of it, even if the program drops the MR.
type pins struct {
	mu     sync.Mutex
	closed bool
	held   map[*MR]*runtime.Pinner
}

func (p *pins) pin(mr *MR) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.held == nil {
		p.held = make(map[*MR]*runtime.Pinner)
	}
	pin := new(runtime.Pinner)
	pin.Pin(unsafe.SliceData(mr.buf))
	p.held[mr] = pin
	return true
}

// hold keeps memory outside the Go heap until the session ends.
func (p *pins) hold(mr *MR) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = make(map[*MR]*runtime.Pinner)
	}
	p.held[mr] = nil
}

func (p *pins) unpin(mr *MR) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pin := p.held[mr]; pin != nil {
		pin.Unpin()
	}
	delete(p.held, mr)
}

// releaseAll releases everything once the adapter is gone. Allocated memory of regions that were never
// deregistered stays mapped: the program may still hold its bytes.
func (p *pins) releaseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for mr, pin := range p.held {
		if pin != nil {
			pin.Unpin()
		}
		delete(p.held, mr)
	}
}
