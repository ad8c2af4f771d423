package sim

import (
	"container/heap"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// send sends a packet on its way: to the port that has the address, or to every other port for a multicast
// address.
func (n *Network) send(from *Port, o *frame.Out) {
	n.Stats.Sent++
	dst := o.Route.Dst.Unmap()
	if dst.IsMulticast() {
		for _, to := range n.ports {
			if to != from {
				n.carry(from, to, dst, o)
			}
		}
		return
	}
	to := n.byAddr[dst]
	if to == nil {
		n.Stats.Unroutable++
		return
	}
	n.carry(from, to, dst, o)
}

func (n *Network) carry(from, to *Port, dst netip.Addr, o *frame.Out) {
	data := n.bytes(from, o)
	if n.Filter != nil && !n.Filter(from, to, data) {
		n.Stats.Lost++
		return
	}
	l := n.link(from, to)
	if n.chance(l.Loss) {
		n.Stats.Lost++
		return
	}
	if n.chance(l.Corrupt) {
		n.Stats.Corrupted++
		if from.Codec == nil {
			return
		}
		bit := n.rng.IntN(len(data) * 8)
		data[bit/8] ^= 1 << (bit % 8)
	}
	d := &delivery{from: from, to: to, dst: dst, data: data, route: *o.Route}
	n.enqueue(l, d)
	if n.chance(l.Duplicate) {
		n.Stats.Duplicated++
		again := *d
		again.data = append([]byte(nil), data...)
		n.enqueue(l, &again)
	}
}

// enqueue decides when a packet arrives. Packets of a link keep their order, except those that are held
// back to be reordered.
func (n *Network) enqueue(l *link, d *delivery) {
	at := n.now.Add(l.Delay)
	if l.Jitter > 0 {
		at = at.Add(time.Duration(n.rng.Int64N(int64(l.Jitter) + 1)))
	}
	if n.chance(l.Reorder) {
		n.Stats.Reordered++
		by := l.ReorderBy
		if by == 0 {
			by = 4*l.Delay + time.Microsecond
		}
		at = at.Add(time.Duration(1 + n.rng.Int64N(int64(by))))
	} else {
		at = max(at, l.last)
		l.last = at
	}
	if p := d.to; p.Service > 0 {
		if p.Buffer > 0 && p.busyUntil.Sub(at) >= time.Duration(p.Buffer)*p.Service {
			n.Stats.Overflowed++
			return
		}
		at = max(at, p.busyUntil).Add(p.Service)
		p.busyUntil = at
	}
	d.at = at
	d.serial = n.serial
	n.serial++
	heap.Push(&n.queue, d)
}

func (n *Network) chance(p float64) bool { return p > 0 && n.rng.Float64() < p }

// bytes returns a packet as the network carries it.
func (n *Network) bytes(from *Port, o *frame.Out) []byte {
	if from.Codec != nil {
		return from.Codec.Seal(o)
	}
	b := make([]byte, 0, int(o.HeadEnd-frame.HeadRoom)+len(o.Payload)+3)
	b = append(b, o.Head[frame.HeadRoom:o.HeadEnd]...)
	b = append(b, o.Payload...)
	return append(b, make([]byte, o.Pad)...)
}

// Inject delivers raw bytes to a port as if they came from address and UDP port src.
func (n *Network) Inject(to *Port, src netip.AddrPort, at clock.Time, data []byte) {
	heap.Push(&n.queue, &delivery{
		at: at, serial: n.serial, to: to, dst: to.Addr, data: data, route: frame.Route{Src: src.Addr(), SrcPort: src.Port()},
	})
	n.serial++
}
