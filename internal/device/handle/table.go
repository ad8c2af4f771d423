// Package handle implements the tables by which programs refer to their objects: a handle is a number that
// identifies one object of one kind, and nothing once that object has ended.
package handle

import (
	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
)

// A handle is kind<<28 | generation<<20 | index: a stale or foreign handle is invalid, until the
// generation of its slot has wrapped.
const (
	indexBits = 20
	indexMask = 1<<indexBits - 1
	genMask   = 0xff
	kindShift = 28
	most      = 1 << indexBits
)

// Kind returns the kind of object to which a handle can refer.
func Kind(h command.Handle) command.Kind { return command.Kind(uint32(h) >> kindShift) }

// Index returns the slot of a handle in the table of its kind; a later object may have the same.
func Index(h command.Handle) uint32 { return uint32(h) & indexMask }

// Owner pays for the objects of a table.
type Owner struct {
	Account *budget.Account // nil: nobody pays
	Bytes   uint64          // of memory that an object takes, with its row in the table
	Name    string          // of an object, with its article
}

// Table holds the objects of one kind that a program owns.
type Table[T any] struct {
	kind  command.Kind
	owner Owner
	slots []slot[T]
	free  []uint32
	live  int
}

type slot[T any] struct {
	object *T
	more   uint32 // bytes that this object takes beyond Owner.Bytes
	gen    uint8
}

// New creates an empty table.
func New[T any](kind command.Kind, owner Owner) Table[T] { return Table[T]{kind: kind, owner: owner} }

// Live returns the number of objects.
func (t *Table[T]) Live() int { return t.live }

// Add stores o and returns its handle. The error is a *command.Error, Exhausted if no handle is left, or if
// the owner has no memory left for the object.
func (t *Table[T]) Add(o *T) (command.Handle, error) { return t.AddLarge(o, 0) }

// AddLarge is Add for an object that takes more bytes than others of its kind.
func (t *Table[T]) AddLarge(o *T, more uint32) (command.Handle, error) {
	if len(t.free) == 0 && len(t.slots) == most {
		return 0, command.Errorf(command.Exhausted, "the client has no free handles")
	}
	if err := t.owner.Account.Take(budget.Memory, t.owner.Bytes+uint64(more), t.owner.Name); err != nil {
		return 0, err
	}
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot[T]{})
	}
	s := &t.slots[i]
	s.object, s.more = o, more
	t.live++
	return command.Handle(uint32(t.kind)<<kindShift | uint32(s.gen)<<indexBits | i), nil
}

// Get returns the object with handle h, nil if there is none.
func (t *Table[T]) Get(h command.Handle) *T {
	i := uint32(h) & indexMask
	if i >= uint32(len(t.slots)) || uint32(h)>>kindShift != uint32(t.kind) {
		return nil
	}
	s := &t.slots[i]
	if s.gen != uint8(uint32(h)>>indexBits&genMask) {
		return nil
	}
	return s.object
}

// Remove removes the object with handle h.
func (t *Table[T]) Remove(h command.Handle) {
	if t.Get(h) == nil {
		return
	}
	i := uint32(h) & indexMask
	s := &t.slots[i]
	t.owner.Account.Give(budget.Memory, t.owner.Bytes+uint64(s.more))
	s.object = nil
	s.gen++
	t.live--
	t.free = append(t.free, i)
}

// Each calls fn for every object; fn may remove the object that it was given.
func (t *Table[T]) Each(fn func(*T)) {
	for i := range t.slots {
		if o := t.slots[i].object; o != nil {
			fn(o)
		}
	}
}

// Some calls fn for at most most objects, starting at slot from. It returns the slot at which to continue,
// -1 at the end. fn may remove the object that it was given.
func (t *Table[T]) Some(from, most int, fn func(*T)) (next int) {
	for n := 0; from < len(t.slots) && n < most; from++ {
		if o := t.slots[from].object; o != nil {
			fn(o)
			n++
		}
	}
	if from >= len(t.slots) {
		return -1
	}
	return from
}
