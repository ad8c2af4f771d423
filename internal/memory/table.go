package memory

import (
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
)

// maxIndex limits the key index to 24 bits. Index 0 is never used, so that no key is 0.
const maxIndex = 1<<24 - 1

// entry is a row of the table; at most one of region and window is set.
type entry struct {
	region *Region
	window *Window
	tag    uint8 // the row's last tag
}

// Table is the memory table of an adapter: an array by key index. A key is index<<8 | tag; the tag
// distinguishes a key from earlier ones with the same index. The table belongs to one loop and needs no
// locks.
type Table struct {
	entries []entry  // grows up to max+1; row 0 is unused
	free    []uint32 // freed indices, a queue
	head    int      // index of the first in free
	max     int
	used    int
	bound   int // number of bound type 2 windows
	tag     func() uint8
	none    Region // target of accesses of length 0
}

// NewTable creates a table of at most max regions and windows (capped at 2^24-1). tag returns the tags of
// new keys, so that keys are hard to guess; nil counts up.
func NewTable(max int, tag func() uint8) *Table {
	t := &Table{max: min(max, maxIndex), tag: tag, entries: make([]entry, 1, 64)}
	return t
}

// Len returns the number of regions and windows.
func (t *Table) Len() int { return t.used }

// Register enters a region and gives it a key. Errors are ErrFull and
// *AttributeError.
func (t *Table) Register(r Region) (*Region, error) {
	n, err := fresh(&r)
	if err != nil {
		return nil, err
	}
	key, err := t.take()
	if err != nil {
		return nil, err
	}
	n.Key = key
	t.entries[key>>8].region = n
	return n, nil
}

// Deregister ends a region: ErrBound while windows are bound to it, ErrKey if the key is not a region's.
// Remaining users of the region see Dead.
func (t *Table) Deregister(key uint32) error {
	if err := t.end(key); err != nil {
		return err
	}
	t.give(key)
	return nil
}

// Replace ends a region as Deregister does, and enters another under its key (IBA 11.2.8.7, reregister).
// Errors are those of Deregister and *AttributeError; the region then stays as it was.
func (t *Table) Replace(key uint32, r Region) (*Region, error) {
	n, err := fresh(&r)
	if err != nil {
		return nil, err
	}
	if err := t.end(key); err != nil {
		return nil, err
	}
	n.Key = key
	t.entries[key>>8].region = n
	return n, nil
}

// fresh returns a region with the attributes of r, which it checks.
func fresh(r *Region) (*Region, error) {
	n := &Region{PD: r.PD, Base: r.Base, Length: r.Length, IOVA: r.IOVA, Named: r.Named, Access: r.Access, Bytes: r.Bytes, Remote: r.Remote}
	n.gathers, _ = r.Remote.(Gathering)
	return n, n.check()
}

// end makes the region with this key useless to those that still have it.
func (t *Table) end(key uint32) error {
	r := t.region(key)
	if r == nil {
		return ErrKey
	}
	if r.windows > 0 {
		return ErrBound
	}
	atomic.StoreUint32(&r.dead, 1)
	return nil
}

// Local checks an access by a work request's own SGE (IBA 10.6.4): need is 0
// to read and LocalWrite to write. Errors are ErrKey, ErrDomain, ErrAccess and
// ErrBounds. An access of length 0 checks nothing and reaches an empty region.
func (t *Table) Local(pd PD, lkey uint32, addr, n uint64, need Access) (*Region, error) {
	if n == 0 {
		return &t.none, nil
	}
	r := t.region(lkey)
	if r == nil {
		return nil, ErrKey
	}
	if r.PD != pd {
		return nil, ErrDomain
	}
	if r.Access&need != need {
		return nil, ErrAccess
	}
	if _, ok := r.offset(addr, n); !ok {
		return nil, ErrBounds
	}
	return r, nil
}

// Span is the target of a checked remote access: Addr is an address of Region, after window translation.
type Span struct {
	Region *Region
	Addr   uint64
}

// Remote checks an access by a peer of QP qpn (IBA 9.4.3, 10.6.7): rkey is that of a region, or of a
// window bound to one. need is a subset of RemoteRead, RemoteWrite and RemoteAtomic. Errors and length 0
// are as in Local: IBA 9.7.4.1 has no R_Key check for a length of 0.
func (t *Table) Remote(pd PD, qpn, rkey uint32, addr, n uint64, need Access) (Span, error) {
	if n == 0 {
		return Span{&t.none, addr}, nil
	}
	i := rkey >> 8
	if uint64(i) >= uint64(len(t.entries)) {
		return Span{}, ErrKey
	}
	e := &t.entries[i]
	switch {
	case e.region != nil && e.region.Key == rkey:
		r := e.region
		if r.PD != pd {
			return Span{}, ErrDomain
		}
		if r.Access&need != need {
			return Span{}, ErrAccess
		}
		if _, ok := r.offset(addr, n); !ok {
			return Span{}, ErrBounds
		}
		return Span{r, addr}, nil
	case e.window != nil && e.window.key == rkey:
		return e.window.remote(pd, qpn, addr, n, need)
	}
	return Span{}, ErrKey
}

// Flush checks a flush by a peer (IBA annex A19): of n bytes from addr, or of everything if whole is set, in the region with
// this rkey. need is a subset of FlushGlobal and FlushPersistent, which no window grants. Errors are those of Local.
func (t *Table) Flush(pd PD, rkey uint32, addr, n uint64, whole bool, need Access) error {
	r := t.region(rkey)
	switch {
	case r == nil:
		return ErrKey
	case r.PD != pd:
		return ErrDomain
	case r.Access&need != need:
		return ErrAccess
	}
	if _, ok := r.offset(addr, n); !ok && !whole {
		return ErrBounds
	}
	return nil
}

func (t *Table) region(key uint32) *Region {
	i := key >> 8
	if uint64(i) >= uint64(len(t.entries)) {
		return nil
	}
	r := t.entries[i].region
	if r == nil || r.Key != key {
		return nil
	}
	return r
}

// take allocates a row and gives it a key with a tag different from its last. Rows are reused as late as
// possible, so that a stale key rarely matches a new owner.
func (t *Table) take() (uint32, error) {
	if t.used >= t.max {
		return 0, ErrFull
	}
	var i uint32
	if len(t.entries) <= t.max {
		i = uint32(len(t.entries))
		t.entries = append(t.entries, entry{})
	} else {
		i = t.free[t.head]
		t.head++
		if t.head*2 > len(t.free) {
			t.free = append(t.free[:0], t.free[t.head:]...)
			t.head = 0
		}
	}
	t.used++
	e := &t.entries[i]
	tag := e.tag + 1
	if t.tag != nil {
		if v := t.tag(); v != e.tag {
			tag = v
		}
	}
	e.tag = tag
	return i<<8 | uint32(tag), nil
}

func (t *Table) give(key uint32) {
	e := &t.entries[key>>8]
	e.tag = uint8(key)
	e.region, e.window = nil, nil
	t.free = append(t.free, key>>8)
	t.used--
}

// Prefetch asks for the memory with which an access by a key is checked: in step 0 for the table itself, in step 1 for
// the row of the key, and in step 2 for its region. Each looks only at what the one before has asked for.
func (t *Table) Prefetch(step int, key uint32) {
	if step == 0 {
		prefetch.Lines(unsafe.Pointer(t), unsafe.Offsetof(t.none))
		return
	}
	i := key >> 8
	if uint64(i) >= uint64(len(t.entries)) {
		return
	}
	switch e := &t.entries[i]; step {
	case 1:
		prefetch.Read(unsafe.Pointer(e))
	case 2:
		e.region.Prefetch()
	}
}

// Prefetch asks for the region's attributes. r may be nil.
func (r *Region) Prefetch() { prefetch.Lines(unsafe.Pointer(r), unsafe.Sizeof(*r)) }
