// Package due says which of many wants its turn next.
package due

import (
	"math/bits"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cpu/prefetch"
)

// Times are when each of some members wants its turn: a tree whose nodes are the earlier of the two below them. The zero value has
// no members.
type Times struct {
	at    []clock.Time
	first clock.Time // the tree's root again, which is asked most
}

// New returns the times of n members, who want none so far.
func New(n int) Times {
	d := Times{make([]clock.Time, 2<<bits.Len(uint(max(n, 1)-1))), clock.Never}
	for i := range d.at {
		d.at[i] = clock.Never
	}
	return d
}

// Set sets that of member i.
func (d *Times) Set(i int, at clock.Time) {
	// Node n is above 2n and 2n+1. Unsigned numbers are halved by a shift.
	n := uint(i) + uint(len(d.at))/2
	_ = d.at[n] // and so the nodes above it and those beside them are there
	all := unsafe.Pointer(unsafe.SliceData(d.at))
	for x := node(all, n); *x != at; x = node(all, n) {
		*x = at
		if n == 1 {
			d.first = at
			return
		}
		at = min(at, *node(all, n^1))
		n /= 2
	}
}

// node returns a node of a tree, which must have it.
func node(all unsafe.Pointer, n uint) *clock.Time {
	return (*clock.Time)(unsafe.Add(all, n*uint(unsafe.Sizeof(clock.Never))))
}

// Get returns that of member i.
func (d *Times) Get(i int) clock.Time { return d.at[i+len(d.at)/2] }

// Prefetch asks for the memory of all members, if they are few; of many, for that of the first to come.
func (d *Times) Prefetch() {
	const few = 64
	prefetch.Lines(unsafe.Pointer(unsafe.SliceData(d.at)), uintptr(min(len(d.at), few))*unsafe.Sizeof(clock.Never))
}

// First returns the earliest.
func (d *Times) First() clock.Time { return d.first }

// Rest returns the earliest of all members but i.
func (d *Times) Rest(i int) clock.Time {
	n, first := uint(i)+uint(len(d.at))/2, clock.Never
	_ = d.at[n] // as in Set
	all := unsafe.Pointer(unsafe.SliceData(d.at))
	for ; n > 1; n /= 2 {
		first = min(first, *node(all, n^1))
	}
	return first
}

// Next returns the member with the earliest, the one with the lowest number of several.
func (d *Times) Next() int {
	n, first, half := uint(1), d.first, uint(len(d.at))/2
	all := unsafe.Pointer(unsafe.SliceData(d.at))
	for 2*n < half { // two levels at a time, whose nodes are beside each other and need not wait for each other
		n *= 4
		a := other(all, n, first)
		b := a & other(all, n+1, first)
		n += a + b + b&other(all, n+2, first)
	}
	if n < half {
		n *= 2
		n += other(all, n, first)
	}
	return int(n - half)
}

// Soonest returns Next, and whether several members want their turns at that time.
func (d *Times) Soonest() (i int, several bool) {
	n, first, half := uint(1), d.first, uint(len(d.at))/2
	all := unsafe.Pointer(unsafe.SliceData(d.at))
	for n < half {
		n *= 2
		left := other(all, n, first)
		several = several || left+other(all, n+1, first) == 0
		n += left
	}
	return int(n - half), several
}

// other returns 1 if a node of a tree is not the earliest, and else 0.
func other(all unsafe.Pointer, n uint, first clock.Time) (is uint) {
	if *node(all, n) != first {
		is = 1
	}
	return is
}
