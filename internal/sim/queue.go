package sim

import (
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cpu/prefetch"
	"github.com/softvpi/softvpi/internal/frame"
)

// packet is a packet on its way. Its buffer is reused.
type packet struct {
	from, to *Port // from is nil if it comes out of a switch or from Inject
	in       frame.In
	data     []byte
	at       clock.Time
	serial   uint64
	next     *packet // in the one list that it is in
}

// prefetch asks for the packet's data, and for the packet behind it: with many ports they have left the near
// caches since they were sent.
func (p *packet) prefetch() {
	const line = 64
	if n := p.next; n != nil {
		prefetch.Read(unsafe.Pointer(n))
		prefetch.Read(unsafe.Add(unsafe.Pointer(n), line))
		prefetch.Read(unsafe.Add(unsafe.Pointer(n), 2*line))
	}
	for at := 0; at < len(p.data); at += line {
		prefetch.Read(unsafe.Pointer(&p.data[at]))
	}
}

// packets is an ordered list.
type packets struct{ first, last *packet }

func (l *packets) add(p *packet) {
	if p.next = nil; l.first == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
}

// remove removes the first packet; there must be one.
func (l *packets) remove() *packet {
	p := l.first
	l.first, p.next = p.next, nil
	return p
}

// join adds the packets of another list, which is not used any more.
func (l *packets) join(m packets) {
	if l.first == nil {
		*l = m
		return
	}
	l.last.next, l.last = m.first, m.last
}

// take returns a packet with an empty buffer.
func (n *Network) take() *packet {
	p := n.free
	if p == nil {
		return &packet{}
	}
	n.free, p.next = p.next, nil
	p.data = p.data[:0]
	return p
}

// give returns a list of packets whose buffers may be reused.
func (n *Network) give(l *packets) {
	if l.first == nil {
		return
	}
	l.last.next, n.free = n.free, l.first
	*l = packets{}
}

func (n *Network) drop(p *packet) { p.next, n.free = n.free, p }

// lane is packets that arrive in the order in which they are in it, such as those of one link.
type lane struct{ packets }

// arrivals is a heap of lanes that are not empty, by when their first packets arrive, and among equals by
// when those were sent. As the packets of a lane are in order, it is as long as there are busy links, and
// not as there are packets.
type arrivals []arrival

type arrival struct {
	at     clock.Time
	serial uint64
	lane   *lane
}

func (x *arrival) before(y *arrival) bool {
	return x.at < y.at || x.at == y.at && x.serial < y.serial
}

// deadline returns when the first packet arrives.
func (h arrivals) deadline() clock.Time {
	if len(h) == 0 {
		return clock.Never
	}
	return h[0].at
}

// push adds a packet to a lane, in which none arrives later.
func (h *arrivals) push(l *lane, p *packet) {
	busy := l.first != nil
	l.add(p)
	if busy {
		return
	}
	*h = append(*h, arrival{p.at, p.serial, l})
	h.up(len(*h) - 1)
}

// pop removes the packet that arrives first; there must be one.
func (h *arrivals) pop() *packet {
	a := *h
	l := a[0].lane
	p := l.remove()
	if q := l.first; q != nil {
		a[0].at, a[0].serial = q.at, q.serial
		q.prefetch()
	} else {
		last := len(a) - 1
		a[0], a[last].lane = a[last], nil
		*h = a[:last]
	}
	h.down()
	return p
}

// children is how many each place of the heap has: it is flatter than a binary one, and the children of a
// place are next to each other.
const children = 4

func (h arrivals) up(i int) {
	x := h[i]
	for i > 0 {
		above := (i - 1) / children
		if !x.before(&h[above]) {
			break
		}
		h[i] = h[above]
		i = above
	}
	h[i] = x
}

// down restores the order after a change of the first place.
func (h arrivals) down() {
	if len(h) == 0 {
		return
	}
	x, i := h[0], 0
	for {
		low := children*i + 1
		if low >= len(h) {
			break
		}
		for c := low + 1; c < min(low+children, len(h)); c++ {
			if h[c].before(&h[low]) {
				low = c
			}
		}
		if !h[low].before(&x) {
			break
		}
		h[i] = h[low]
		i = low
	}
	h[i] = x
}
