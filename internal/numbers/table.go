// Package numbers implements tables by numbers that nobody can guess: those of queue pairs and
// connections, which peers and whoever forges their packets name.
package numbers

import (
	"iter"
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
)

// Table finds values by their numbers, with one look at a slice: the place of a number is the upper bits
// of its hash, as many as distinguish it from all others in the table. The table is at least half empty,
// so that every other number finds its place free, and memory is proportional to what it holds as long as
// only such numbers are put into it. The zero value is not a table; see New.
type Table[T any] struct {
	places []place[T] // a power of two
	shift  uint8      // bits of a hash that are not used
	used   int
}

type place[T any] struct {
	number uint32 // 0: free
	value  *T
}

const leastBits = 6

// New returns an empty table.
func New[T any]() Table[T] {
	return Table[T]{places: make([]place[T], 1<<leastBits), shift: 32 - leastBits}
}

// at returns the place of a number. The hash is the number times an odd constant (Knuth, The Art of
// Computer Programming, 6.4), so that different numbers have different ones.
func (t *Table[T]) at(number uint32) *place[T] {
	return &t.places[number*0x9e3779b1>>t.shift&uint32(len(t.places)-1)]
}

// Get returns the value of a number, nil if there is none, or the number is only reserved.
func (t *Table[T]) Get(number uint32) *T {
	p := t.at(number)
	if p.number != number {
		return nil
	}
	return p.value
}

// Has reports whether a number is in the table, with or without a value.
func (t *Table[T]) Has(number uint32) bool { return number != 0 && t.at(number).number == number }

// Free reports whether a number may be put into the table without moving others.
func (t *Table[T]) Free(number uint32) bool { return number != 0 && t.at(number).number == 0 }

// Len returns how many numbers are in the table.
func (t *Table[T]) Len() int { return t.used }

// Put sets the value of a number, which must not be 0; nil only reserves the number. If another number has its place the
// table grows until both have one of their own, which takes gigabytes for two whose hashes are nearly the same: so numbers
// are to be Free, or in the table already.
func (t *Table[T]) Put(number uint32, value *T) {
	p := t.at(number)
	for p.number != number && p.number != 0 {
		t.grow()
		p = t.at(number)
	}
	if p.number == 0 {
		t.used++
	}
	*p = place[T]{number, value}
	if 2*t.used > len(t.places) {
		t.grow()
	}
}

// grow doubles the places. Numbers that had different ones still do.
func (t *Table[T]) grow() {
	old := t.places
	t.places, t.shift = make([]place[T], 2*len(old)), t.shift-1
	for i := range old {
		if old[i].number != 0 {
			*t.at(old[i].number) = old[i]
		}
	}
}

// Remove removes a number and its value.
func (t *Table[T]) Remove(number uint32) {
	if !t.Has(number) {
		return
	}
	*t.at(number) = place[T]{}
	if t.used--; t.used == 0 {
		*t = New[T]()
	}
}

// All iterates over the numbers with a value. The table must not change meanwhile.
func (t *Table[T]) All() iter.Seq2[uint32, *T] {
	return func(yield func(uint32, *T) bool) {
		for _, p := range t.places {
			if p.value != nil && !yield(p.number, p.value) {
				return
			}
		}
	}
}

// Prefetch asks for the memory that Get of this number looks at.
func (t *Table[T]) Prefetch(number uint32) {
	p := t.at(number)
	prefetch.Lines(unsafe.Pointer(p), unsafe.Sizeof(*p)) // some places begin at the end of a line
}
