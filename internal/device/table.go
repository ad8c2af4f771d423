package device

import "github.com/softvpi/softvpi/internal/command"

// A handle is kind<<28 | generation<<20 | index: a stale or foreign handle names
// nothing, until the generation of its slot has gone round.
const (
	indexBits  = 20
	indexMask  = 1<<indexBits - 1
	genMask    = 0xff
	kindShift  = 28
	maxObjects = 1 << indexBits
)

// objects are the objects of one kind that a client owns.
type objects[T any] struct {
	kind  command.Kind
	slots []slot[T]
	free  []uint32
	live  int
}

type slot[T any] struct {
	object *T
	gen    uint8
}

// add stores o and returns its handle; ok is false when no handle is left.
func (t *objects[T]) add(o *T) (h command.Handle, ok bool) {
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if len(t.slots) == maxObjects {
			return 0, false
		}
		i = uint32(len(t.slots))
		t.slots = append(t.slots, slot[T]{})
	}
	s := &t.slots[i]
	s.object = o
	t.live++
	return command.Handle(uint32(t.kind)<<kindShift | uint32(s.gen)<<indexBits | i), true
}

// get returns the object that h names, nil when there is none.
func (t *objects[T]) get(h command.Handle) *T {
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

// remove forgets the object that h names.
func (t *objects[T]) remove(h command.Handle) {
	if t.get(h) == nil {
		return
	}
	i := uint32(h) & indexMask
	s := &t.slots[i]
	s.object = nil
	s.gen++
	t.live--
	t.free = append(t.free, i)
}

// each calls fn for every object; fn may remove the object that it was given.
func (t *objects[T]) each(fn func(*T)) {
	for i := range t.slots {
		if o := t.slots[i].object; o != nil {
			fn(o)
		}
	}
}
