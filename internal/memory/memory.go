// Package memory implements the memory regions and windows of an adapter: who may access which bytes with
// which key (IBA 10.6). A table belongs to one loop.
package memory

import "errors"

// Access is the set of rights of a memory region or window (IBA 10.6.3).
type Access uint32

// The rights. Local read is always granted.
const (
	LocalWrite Access = 1 << iota
	RemoteWrite
	RemoteRead
	RemoteAtomic
	WindowBind
	ZeroBased // addresses are offsets from the start of the region
	// OnDemand: nothing is known of the region's pages before they are used. They may be missing when it is
	// registered, and move, go and come while it exists.
	OnDemand
	_ // another library's flag
	// FlushGlobal: peers may ask that what was written be visible to everything on this side (IBA annex A19).
	FlushGlobal
	// FlushPersistent: and that it be kept when power fails. No region has this right: none is of persistent memory.
	FlushPersistent
)

// PD identifies a protection domain of an adapter.
type PD uint32

// Errors of the table and of access checks.
var (
	ErrKey    = errors.New("no memory region or window has this key")
	ErrDomain = errors.New("memory belongs to another protection domain")
	ErrBounds = errors.New("address range lies outside the memory region or window")
	ErrAccess = errors.New("memory region or window does not grant this access")
	ErrBound  = errors.New("memory windows are still bound to this region")
	ErrFull   = errors.New("no free memory keys")
	ErrGone   = errors.New("memory of the owner can no longer be reached")
	ErrAlign  = errors.New("atomic operand is not aligned to 8 bytes")
	errState  = errors.New("memory window is in the wrong state for this")
	ErrBlock  = errors.New("memory of the owner is reached by deferred copies only")
)

// Accessor accesses memory that the loop has not mapped: of another process (process_vm_readv,
// process_vm_writev), or through that process's own copier.
type Accessor interface {
	// Read copies len(dst) bytes from address addr of the owner.
	Read(dst []byte, addr uint64) error
	// Write copies src to address addr of the owner.
	Write(addr uint64, src []byte) error
	// Blocking reports whether Read and Write finish within the call. If they do not (the copier of a
	// client), the copies go through transport.Engine.Copies instead. Memory may turn out to be slow: if
	// Read or Write fails with ErrBlock the Accessor is a Deferred, and Blocking is false until the copies
	// that are started then have ended.
	Blocking() bool
}

// LastWriter is an Accessor that itself writes the last bytes of src after all others.
type LastWriter interface {
	WriteLast(addr uint64, src []byte) error
}

// Gathering is an Accessor for which a call costs more than copying a packet; it therefore accepts many
// pieces in one call.
type Gathering interface {
	Accessor
	// WriteAll writes pieces in order and returns how many it wrote completely. If those are not all, err
	// says why the next one failed.
	WriteAll(pieces []Piece) (n int, err error)
}

// Piece is data to be written to address Addr of its owner.
type Piece struct {
	Addr uint64
	Data []byte
}
