package sim

import (
	"net/netip"
	"slices"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// packet is a packet on its way: two cache lines, of which most need the first only, and a buffer for a packet that does
// not fit into them.
type packet struct {
	at      clock.Time // when it arrives
	ends    *ends      // nil: it is raw
	payload *byte      // lent by the engine, what is in head precedes it; nil: it is there too
	size    uint32
	flow    uint32
	srcPort uint16
	class   uint8
	short   uint8    // bytes of head in use; 0: the packet is in buf
	head    [60]byte // the packet if it is short, else at least its BTH, unless there is a codec
	buf     []byte   // keeps its memory
}

const (
	line = 64
	// near is how much of a packet's head is in its first line.
	near = line - unsafe.Offsetof(packet{}.head)
)

// ends are the addresses of packets. They do not change, as packets share them.
type ends struct{ src, dst netip.Addr }

// between returns the ends of packets of a link.
func (l *Link) between(src, dst netip.Addr) *ends {
	if x := l.ends; x != nil && x.src == src && x.dst == dst {
		return x
	}
	i := slices.IndexFunc(l.known, func(x *ends) bool { return x.src == src && x.dst == dst })
	if i < 0 {
		i = len(l.known)
		l.known = append(l.known, &ends{src, dst})
	}
	l.ends = l.known[i]
	return l.ends
}

// route takes over the outer headers of what an engine sends.
func (p *packet) route(r *frame.Route, between *ends) {
	p.ends, p.srcPort, p.class, p.flow = between, r.SrcPort, r.TrafficClass, r.FlowLabel
}

// fill takes over the bytes of what an engine sends.
func (p *packet) fill(from *Port, o *frame.Out) {
	p.payload, p.size, p.short = nil, 0, 0
	if from.Codec != nil {
		p.buf = from.Codec.Seal(p.buf[:0], o)
		return
	}
	var zero [4]byte
	head, payload, pad := o.Head[frame.HeadRoom:o.HeadEnd], o.Payload, zero[:o.Pad&3]
	switch {
	case len(head)+len(payload)+len(pad) <= len(p.head):
	case len(head)+len(pad) <= len(p.head) && from.lends(head):
		p.payload, p.size, payload = unsafe.SliceData(payload), uint32(len(payload)), nil
	default:
		p.buf = append(append(append(p.buf[:0], head...), payload...), pad...)
		copy(p.head[:], head[:ib.BTHLen])
		return
	}
	n := copy(p.head[:], head)
	n += copy(p.head[n:], payload)
	n += copy(p.head[n:], pad)
	p.short = uint8(n)
}

// hold makes p hold a copy of data.
func (p *packet) hold(data []byte) {
	p.buf, p.short, p.payload, p.size = append(p.buf[:0], data...), 0, nil, 0
}

// copy makes p the same as another packet.
func (p *packet) copy(q *packet) {
	buf := p.buf
	*p = *q
	p.buf = append(buf[:0], q.buf...)
}

// data returns the bytes of the packet, without a payload that was lent.
func (p *packet) data() []byte {
	if p.short > 0 {
		return p.head[:p.short]
	}
	return p.buf
}

func (p *packet) len() int { return len(p.data()) + int(p.size) }

// in describes the packet to the engine that receives it.
func (p *packet) in(in *frame.In) {
	*in = frame.In{Data: p.data(), Payload: unsafe.Slice(p.payload, p.size), Raw: p.ends == nil}
	if x := p.ends; x != nil {
		in.Src, in.Dst, in.SrcPort = x.src, x.dst, p.srcPort
		in.TrafficClass, in.HopLimit, in.FlowLabel = p.class, frame.DefaultHopLimit, p.flow
	}
}

// lends reports whether the network leaves a payload where the engine has it. It does so unless somebody looks at
// packets, and for connected services only: a receiver takes a datagram in one piece.
func (p *Port) lends(bth []byte) bool {
	n := p.network
	return p.Lends && p.socket == nil && n.Filter == nil && n.Tap == nil && ib.BTH(bth).Opcode().Service() != ib.ServiceUD
}

// take returns a packet that is not in use.
func (n *Network) take() *packet {
	last := len(n.free) - 1
	if last < 0 {
		return &packet{}
	}
	p := n.free[last]
	n.free = n.free[:last]
	return p
}

func (n *Network) drop(p *packet) { n.free = append(n.free, p) }

// packets is a queue of packets, which keeps its memory.
type packets struct {
	ring  []*packet // a power of two
	head  uint32    // the first; counts on
	count uint32
}

func (q *packets) place(i uint32) **packet { return &q.ring[int(q.head+i)&(len(q.ring)-1)] }

func (q *packets) add(p *packet) {
	if int(q.count) == len(q.ring) {
		q.grow()
	}
	*q.place(q.count) = p
	q.count++
}

func (q *packets) grow() {
	ring := make([]*packet, max(4, 2*len(q.ring)))
	for i := range q.count {
		ring[i] = *q.place(i)
	}
	q.ring, q.head = ring, 0
}

// first returns the first packet; there must be one.
func (q *packets) first() *packet { return *q.place(0) }

// remove removes the first packet; there must be one.
func (q *packets) remove() *packet {
	p := q.first()
	q.head++
	if q.count--; q.count == 0 {
		q.head = 0 // short queues use the beginning of their memory only
	}
	return p
}
