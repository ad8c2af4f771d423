package simulate

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/simulate/workload"
)

// flow is a flow of a run: what both kinds of hosts count of it, and their own state.
type flow struct {
	*workload.Flow
	number  int32
	waits   int32
	began   clock.Time // Never: not yet
	ended   clock.Time // when its last byte had arrived; Never: not yet
	got     int64      // bytes that have arrived in order
	packets uint64     // with a payload that have been sent
	again   uint64     // of them more than once
	marked  uint64     // that have arrived with a mark
	cnps    uint64     // that have arrived at the sender

	failed bool // a write has ended with an error

	lean lean
	rc   *rc
}

// start is when a flow starts.
type start struct {
	at   clock.Time
	flow int32
}

func (s start) Before(o start) bool { return s.at < o.at || s.at == o.at && s.flow < o.flow }

// heap is things in the order of before, the first of which is at its beginning.
type heap[T interface{ Before(T) bool }] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	a := *h
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !x.Before(a[up]) {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = x
}

// pop removes the first, which must be there.
func (h *heap[T]) pop() T {
	a := *h
	first, last := a[0], len(a)-1
	x := a[last]
	a = a[:last]
	*h = a
	if last == 0 {
		return first
	}
	i := 0
	for {
		low := 4*i + 1
		if low >= last {
			break
		}
		for c, end := low+1, min(low+4, last); c < end; c++ {
			if a[c].Before(a[low]) {
				low = c
			}
		}
		if !a[low].Before(x) {
			break
		}
		a[i] = a[low]
		i = low
	}
	a[i] = x
	return first
}
