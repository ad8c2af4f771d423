package ethernet

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
)

// arrival is a frame that arrives at a port.
type arrival struct {
	at    clock.Time
	node  uint32
	frame Ref
	port  uint8
}

// arrivals are frames on their way: a lane for each port, since what goes to one arrives in the order in which it was sent, and which
// lane is next. Of frames that arrive at once the one for the node and port with the lower number is first.
type arrivals struct {
	lanes []lane
	due   due.Times
	next  int // the lane whose frame arrives first, if there is one
}

// lane is frames on their way to a port.
type lane struct {
	ring  []coming // a power of two; nil: there has been none
	head  uint32   // the first; counts on
	count uint32
	node  uint32
	port  uint8
}

// coming is a frame in a lane.
type coming struct {
	at    clock.Time
	frame Ref
}

// add adds lanes for the ports of a node, and returns the number of the first.
func (a *arrivals) add(node, ports int) int {
	first := len(a.lanes)
	for p := range ports {
		a.lanes = append(a.lanes, lane{node: uint32(node), port: uint8(p)})
	}
	a.due = due.New(len(a.lanes))
	for i := range a.lanes {
		if l := &a.lanes[i]; l.count > 0 {
			a.due.Set(i, l.place(0).at)
		}
	}
	return first
}

// first returns when the first arrives.
func (a *arrivals) first() clock.Time { return a.due.First() }

// push puts a frame into a lane.
func (a *arrivals) push(number int, at clock.Time, f Ref) {
	l := &a.lanes[number]
	if int(l.count) == len(l.ring) {
		l.grow()
	}
	i := l.count
	for ; i > 0 && l.place(i-1).at > at; i-- { // not over a link, whose frames arrive one after the other
		*l.place(i) = *l.place(i - 1)
	}
	*l.place(i) = coming{at, f}
	l.count++
	if i > 0 {
		return
	}
	if first := a.due.First(); at < first || at == first && number < a.next {
		a.next = number
	}
	a.due.Set(number, at)
}

// pop removes the first frame, which must be there.
func (a *arrivals) pop() arrival {
	number := a.next
	l := &a.lanes[number]
	x := l.place(0)
	first := arrival{at: x.at, node: l.node, port: l.port, frame: x.frame}
	l.head++
	at := clock.Never
	if l.count--; l.count > 0 {
		at = l.place(0).at
	}
	a.due.Set(number, at)
	a.next = a.due.Next()
	return first
}

// peek returns the first frame; 0: there is none.
func (a *arrivals) peek() Ref {
	if l := &a.lanes[a.next]; l.count > 0 {
		return l.place(0).frame
	}
	return 0
}

func (l *lane) place(i uint32) *coming {
	ring := l.ring
	return &ring[uint(l.head+i)&uint(len(ring)-1)]
}

func (l *lane) grow() {
	ring := make([]coming, max(4, 2*len(l.ring)))
	for i := range l.count {
		ring[i] = *l.place(i)
	}
	l.ring, l.head = ring, 0
}
