package memlink

import (
	"net"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
)

// queue holds the packets that wait for a port, copied into slots that it owns. Senders share it under a
// lock that is taken once per batch. Slots returned by Receive stay untouched until the next call.
type queue struct {
	mu     sync.Mutex
	memory []byte
	slot   int
	meta   []meta
	head   int // next slot to return
	out    int // slots before head that the receiver still uses
	len    int // slots from head on that wait
	drops  uint64
	closed bool
	notify func()
}

type meta struct {
	len          int
	src          netip.Addr
	dst          netip.Addr
	srcPort      uint16
	segment      uint16
	trafficClass uint8
	hopLimit     uint8
	flowLabel    uint32
}

func (q *queue) init(n, slot int, notify func()) {
	q.memory = make([]byte, n*slot)
	q.meta = make([]meta, n)
	q.slot = slot
	q.notify = notify
}

// push copies in frames of one route; those that find no room are dropped.
func (q *queue) push(frames []frame.Out, from *Port) {
	q.mu.Lock()
	was := q.len
	if !q.closed {
		for i := range frames {
			q.put(&frames[i], from)
		}
	}
	wake := was == 0 && q.len > 0
	q.mu.Unlock()
	if wake && q.notify != nil {
		q.notify()
	}
}

func (q *queue) put(o *frame.Out, from *Port) {
	if from.tooLong(o) {
		from.stats.SendErrors++
		from.report(quote(link.Unreachable{Dst: o.Route.Dst, Kind: link.PacketTooBig, MTU: from.cfg.MTU}, o))
		return
	}
	if o.Len() > q.slot || q.out+q.len == len(q.meta) {
		q.drops++
		return
	}
	i := (q.head + q.len) % len(q.meta)
	b := q.memory[i*q.slot : (i+1)*q.slot]
	n := copy(b, o.Head[o.HeadStart:o.HeadEnd])
	n += copy(b[n:], o.Payload)
	n += copy(b[n:], o.Tail[:o.TailLen])
	r := o.Route
	m := &q.meta[i]
	*m = meta{len: n, src: r.Src, dst: r.Dst, srcPort: r.SrcPort, segment: o.Segment,
		trafficClass: r.TrafficClass, hopLimit: frame.Hops(r.HopLimit), flowLabel: r.FlowLabel}
	if !m.src.IsValid() {
		m.src = from.cfg.Addr
	}
	q.len++
}

// pop returns packets and frees those of the previous call.
func (q *queue) pop(in []frame.In, addr netip.Addr, raw bool) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out = 0
	if q.closed {
		return 0, net.ErrClosed
	}
	n := min(len(in), q.len)
	for k := range in[:n] {
		i := (q.head + k) % len(q.meta)
		m := &q.meta[i]
		in[k] = frame.In{Data: q.memory[i*q.slot : i*q.slot+m.len : i*q.slot+m.len], Raw: raw}
		if raw {
			continue
		}
		in[k].Src, in[k].Dst, in[k].SrcPort = m.src, m.dst, m.srcPort
		in[k].TrafficClass, in[k].HopLimit, in[k].FlowLabel = m.trafficClass, m.hopLimit, m.flowLabel
		in[k].Segment = m.segment
	}
	q.head = (q.head + n) % len(q.meta)
	q.len -= n
	q.out = n
	return n, nil
}

func (q *queue) dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.drops
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// close closes the queue and reports whether it was open.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := !q.closed
	q.closed = true
	return was
}
