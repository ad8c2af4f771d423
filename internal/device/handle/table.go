// Package handle has the tables by which programs name their objects: a handle is a number that
// names one object of one kind, and nothing after that one has ended.
package handle

import "github.com/softvpi/softvpi/internal/command"

// A handle is kind<<28 | generation<<20 | index: a stale or foreign handle names
// nothing, until the generation of its slot has gone round.
const (
	indexBits = 20
	indexMask = 1<<indexBits - 1
	genMask   = 0xff
	kindShift = 28
	most      = 1 << indexBits
)

// Kind is the kind of object that a handle can name.
func Kind(h command.Handle) command.Kind { return command.Kind(uint32(h) >> kindShift) }

// Index is the slot of a handle in the table of its kind; the next object may have the same.
func Index(h command.Handle) uint32 { return uint32(h) & indexMask }

// Table holds the objects of one kind that a program owns.
type Table[T any] struct {
	kind  command.Kind
	slots []slot[T]
	free  []uint32
	live  int
}

type slot[T any] struct {
	object *T
	gen    uint8
}

// New makes an empty table.
func New[T any](kind command.Kind) Table[T] { return Table[T]{kind: kind} }

// Live is how many objects there are.
func (t *Table[T]) Live() int { return t.live }

// Add stores o and returns its handle. The error is a *command.Error, Exhausted where no handle is left.
func (t *Table[T]) Add(o *T) (command.Handle, error) {
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if len(t.slots) == most {
			return 0, command.Errorf(command.Exhausted, "the client has no free handles")
		}
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot[T]{})
	}
	s := &t.slots[i]
	s.object = o
	t.live++
	return command.Handle(uint32(t.kind)<<kindShift | uint32(s.gen)<<indexBits | i), nil
}

// Get returns the object that h names, nil when there is none.
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

// Remove forgets the object that h names.
func (t *Table[T]) Remove(h command.Handle) {
	if t.Get(h) == nil {
		return
	}
	i := uint32(h) & indexMask
	s := &t.slots[i]
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

// Some calls fn for at most so many objects, beginning at slot from. It returns the slot to go on from, -1 where
// there are no more. fn may remove the object that it was given.
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
