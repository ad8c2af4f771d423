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
// lane of a switch is next. Of frames that arrive at once the one for the node and port with the lower number is first.
type arrivals struct {
	lanes []lane
	due   due.Times // of lanes to switches
	ways  []uint32  // which ones those are
	next  int       // the one of them whose frame arrives first, if there is one
}

// lane is frames on their way to a port.
type lane struct {
	ring  []coming // a power of two; nil: there has been none
	head  uint32   // the first; counts on
	count uint32
	at    clock.Time // when the first arrives; clock.Never: there is none
	last  clock.Time // when the last arrives, if there is one
	node  uint32
	way   int32 // its number among those to switches; -1: the port is a station's
	port  uint8
}

// coming is a frame in a lane.
type coming struct {
	at    clock.Time
	frame Ref
}

// add adds lanes for the ports of a node, and returns the number of the first.
func (a *arrivals) add(node, ports int, station bool) int {
	first := len(a.lanes)
	for p := range ports {
		l := lane{at: clock.Never, node: uint32(node), port: uint8(p), way: -1}
		if !station {
			l.way = int32(len(a.ways))
			a.ways = append(a.ways, uint32(len(a.lanes)))
		}
		a.lanes = append(a.lanes, l)
	}
	a.due = due.New(len(a.ways))
	for way, i := range a.ways {
		a.due.Set(way, a.lanes[i].at)
	}
	return first
}

// first returns when the first arrives at a switch.
func (a *arrivals) first() clock.Time { return a.due.First() }

// push puts a frame into a lane. It returns the station to which that leads, if the frame is the first there; -1: it is not, or the lane
// leads to a switch.
func (a *arrivals) push(number int32, at clock.Time, f Ref) (station int) {
	l := &a.lanes[number]
	if !l.push(at, f) {
		return -1
	}
	if l.way < 0 {
		return int(l.node)
	}
	way := int(l.way)
	if first := a.due.First(); at < first || at == first && way < a.next {
		a.next = way
	}
	a.due.Set(way, at)
	return -1
}

// pop removes the first frame to a switch, which must be there.
func (a *arrivals) pop() arrival {
	l := &a.lanes[a.ways[a.next]]
	x := l.pop()
	a.due.Set(a.next, l.at)
	a.next = a.due.Next()
	return x
}

// earliest returns the lane to a station from which a frame arrives first, and when; clock.Never: there is none.
func (a *arrivals) earliest(x *node) (number int32, at clock.Time) {
	at = clock.Never
	for i := x.lane; i < x.lane+int32(len(x.ways)); i++ {
		if first := a.lanes[i].at; first < at {
			number, at = i, first
		}
	}
	return number, at
}

// peek returns the first frame; 0: there is none.
func (a *arrivals) peek() Ref {
	if l := &a.lanes[a.ways[a.next]]; l.count > 0 {
		return l.place(0).frame
	}
	return 0
}

// push puts a frame where its time is, and reports whether it is the first now.
func (l *lane) push(at clock.Time, f Ref) (first bool) {
	if int(l.count) == len(l.ring) {
		l.grow()
	}
	i := l.count
	l.count++
	if i == 0 || at >= l.last { // as over a link, whose frames arrive one after the other
		l.last = at
	} else {
		for ; i > 0 && l.place(i-1).at > at; i-- {
			*l.place(i) = *l.place(i - 1)
		}
	}
	*l.place(i) = coming{at, f}
	if i == 0 {
		l.at = at
	}
	return i == 0
}

// pop removes the first frame, which must be there.
func (l *lane) pop() arrival {
	x := *l.place(0)
	l.head++
	l.count--
	if l.at = clock.Never; l.count > 0 {
		l.at = l.place(0).at
	}
	return arrival{at: x.at, node: l.node, port: l.port, frame: x.frame}
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
