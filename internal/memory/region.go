package memory

import (
	"fmt"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
)

// AttributeError reports an attribute of a region or window that is not allowed.
type AttributeError struct {
	Field   string
	Value   uint64
	Allowed string
}

func (e *AttributeError) Error() string {
	return fmt.Sprintf("%s %#x: allowed: %s", e.Field, e.Value, e.Allowed)
}

// Region is a memory region (IBA 10.6.3): Length bytes of its owner's memory from address Base. Exactly
// one of Bytes and Remote says how the loop accesses them; a region of length 0 needs neither.
//
// Addresses passed to the methods are the region's own, as used in work requests and packets: they start
// at Base, or at IOVA if Named is set, or at 0 if Access has ZeroBased.
type Region struct {
	Key    uint32 // lkey and rkey, filled by Register
	PD     PD
	Base   uint64
	Length uint64
	IOVA   uint64
	Named  bool // the region's own addresses begin at IOVA
	Access Access
	Bytes  []byte // mapped memory, len(Bytes) == Length
	Remote Accessor

	gathers Gathering // Remote, if it implements Gathering
	windows int       // windows bound to the region
	dead    uint32    // 1 once deregistered; atomic
}

// denied is a region that nobody may use.
var denied = Region{dead: 1}

// Denied returns a region that stands for memory to which access was refused: what is done to it fails with ErrGone.
func Denied() *Region { return &denied }

// Dead reports whether the region was deregistered. Users that looked it up earlier must check it before
// every use.
func (r *Region) Dead() bool { return atomic.LoadUint32(&r.dead) != 0 }

// Windows returns how many windows are bound to the region.
func (r *Region) Windows() int { return r.windows }

// Mapped reports whether the loop accesses the bytes directly.
func (r *Region) Mapped() bool { return r.Remote == nil }

// start returns the region's own address of its first byte.
func (r *Region) start() uint64 {
	switch {
	case r.Access&ZeroBased != 0:
		return 0
	case r.Named:
		return r.IOVA
	}
	return r.Base
}

// Start returns the region's own address of its first byte: 0 if it is zero-based.
func (r *Region) Start() uint64 { return r.start() }

// offset returns the offset of addr in the region, and whether n bytes from there are inside it. No sum
// here can overflow.
func (r *Region) offset(addr, n uint64) (uint64, bool) {
	off := addr - r.start() // wraps to a huge offset below the start
	return off, off <= r.Length && n <= r.Length-off
}

// Gathers returns Remote if it accepts many pieces in one call, else nil.
func (r *Region) Gathers() Gathering { return r.gathers }

// Slice returns n mapped bytes from address addr, nil if the range is outside the region, the region is
// not mapped or n is 0.
func (r *Region) Slice(addr, n uint64) []byte {
	off, ok := r.offset(addr, n)
	if !ok || n == 0 || r.Bytes == nil {
		return nil
	}
	return r.Bytes[off : off+n : off+n]
}

// OwnerAddr translates an address of the region into its owner's address space, for an Accessor. It does
// not check bounds.
func (r *Region) OwnerAddr(addr uint64) uint64 { return addr - r.start() + r.Base }

// Read copies len(dst) bytes from address addr. Errors are ErrGone (also if the region has been
// deregistered), ErrBounds, ErrBlock, or the Accessor's.
func (r *Region) Read(dst []byte, addr uint64) error {
	off, err := r.reach(addr, len(dst))
	if err != nil || len(dst) == 0 {
		return err
	}
	if r.Remote != nil {
		return r.Remote.Read(dst, r.Base+off)
	}
	copy(dst, r.Bytes[off:])
	return nil
}

// Write copies src to address addr. Errors are those of Read.
func (r *Region) Write(addr uint64, src []byte) error {
	off, err := r.reach(addr, len(src))
	if err != nil || len(src) == 0 {
		return err
	}
	if r.Remote != nil {
		return r.Remote.Write(r.Base+off, src)
	}
	if dst := r.Bytes[off:]; &dst[0] != &src[0] { // otherwise a link has received it in place
		copy(dst, src)
	}
	return nil
}

// WriteLast is Write for the last packet of a message: if the region is mapped, its final bytes become
// visible after all others.
func (r *Region) WriteLast(addr uint64, src []byte) error {
	off, err := r.reach(addr, len(src))
	if err != nil || len(src) == 0 {
		return err
	}
	if r.Remote == nil {
		if dst := r.Bytes[off : off+uint64(len(src))]; &dst[0] != &src[0] { // otherwise it is there, all of it
			placeFar(dst, src)
		}
		return nil
	}
	return writeLastRemote(r.Remote, r.Base+off, src)
}

// Payload sizes of a packet for which prefetching the destination during the copy pays off: farLeast to
// farMost bytes.
const (
	farLeast = 1024
	farMost  = 4096
)

// placeFar is Place for data just received, and thus in a near cache, to memory that is not.
func placeFar(dst, src []byte) {
	if n := len(src); n >= farLeast && n <= farMost {
		n = (n - 1) &^ 63 // the rest holds the last bytes
		prefetch.Copy(dst[:n], src[:n])
		dst, src = dst[n:], src[n:]
	}
	Place(dst, src)
}

func (r *Region) reach(addr uint64, n int) (uint64, error) {
	off, ok := r.offset(addr, uint64(n))
	switch {
	case n == 0:
		return 0, nil
	case r.Dead():
		return 0, ErrGone
	case !ok:
		return 0, ErrBounds
	case r.Remote != nil && !r.Remote.Blocking():
		return 0, ErrBlock
	}
	return off, nil
}

// check refuses attributes that the specification or this table does not allow.
func (r *Region) check() error {
	const all = LocalWrite | RemoteWrite | RemoteRead | RemoteAtomic | WindowBind | ZeroBased | OnDemand | FlushGlobal
	switch {
	case r.Access&^all != 0:
		return &AttributeError{"access", uint64(r.Access), "bits 0x17f"}
	case r.Access&(RemoteWrite|RemoteAtomic) != 0 && r.Access&LocalWrite == 0:
		// IBA 10.6.3.1: remote write and atomic need local write.
		return &AttributeError{"access", uint64(r.Access), "remote write and remote atomic only with local write"}
	case r.Length > 0 && r.Base+(r.Length-1) < r.Base:
		return &AttributeError{"length", r.Length, "the region ends within the 64-bit address space"}
	case r.Remote == nil && uint64(len(r.Bytes)) != r.Length:
		return &AttributeError{"length", r.Length, "the length of the mapped memory"}
	case r.Remote != nil && r.Bytes != nil:
		return &AttributeError{"length", r.Length, "either mapped memory or an accessor"}
	}
	return nil
}
