package ethernet

import "github.com/softvpi/softvpi/internal/clock"

// arrival is a frame on its way to a port.
type arrival struct {
	at    clock.Time
	order uint32 // in which it was sent
	node  uint32
	frame Ref
	port  uint8
}

// arrivals are frames on their way, the first to arrive first: a heap whose nodes have four below them.
type arrivals struct {
	heap []arrival
	sent uint32
}

const below = 4

func (x *arrival) before(y *arrival) bool {
	return x.at < y.at || x.at == y.at && int32(x.order-y.order) < 0
}

// first returns when the first arrives.
func (a *arrivals) first() clock.Time {
	if len(a.heap) == 0 {
		return clock.Never
	}
	return a.heap[0].at
}

func (a *arrivals) push(x arrival) {
	a.sent++
	x.order = a.sent
	a.heap = append(a.heap, x)
	i := len(a.heap) - 1
	for i > 0 {
		up := (i - 1) / below
		if !x.before(&a.heap[up]) {
			break
		}
		a.heap[i] = a.heap[up]
		i = up
	}
	a.heap[i] = x
}

// pop removes the first, which must be there.
func (a *arrivals) pop() arrival {
	first, last := a.heap[0], len(a.heap)-1
	x := a.heap[last]
	a.heap = a.heap[:last]
	if last == 0 {
		return first
	}
	i := 0
	for {
		low := below*i + 1
		if low >= last {
			break
		}
		for c, end := low+1, min(low+below, last); c < end; c++ {
			if a.heap[c].before(&a.heap[low]) {
				low = c
			}
		}
		if !a.heap[low].before(&x) {
			break
		}
		a.heap[i] = a.heap[low]
		i = low
	}
	a.heap[i] = x
	return first
}
