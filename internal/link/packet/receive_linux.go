package packet

import (
	"github.com/softvpi/softvpi/internal/frame"
)

// peek returns the next packet; those received through the previous source come first.
func (p *Port) peek() (b []byte, segment int) {
	if p.lone != nil {
		return p.lone.peek()
	}
	if b, segment = p.from.peek(); b != nil {
		return b, segment
	}
	if p.from == p.to {
		return nil, 0
	}
	p.from = p.to
	p.lone = p.only()
	return p.from.peek()
}

// only returns the gate if packets are taken from nowhere else, otherwise nil. Port.lone caches it, because finding out
// costs as much as looking for a packet.
func (p *Port) only() *gate {
	if p.from != p.to {
		return nil
	}
	g, _ := p.from.(*gate)
	return g
}

// Receive fills in with the short packets in the ring, up to the first mark, and returns their number.
// They are valid until the next call.
func (p *Port) Receive(in []frame.In) int {
	n := 0
	var d datagram
	for n < min(len(in), receiveMost) {
		b, segment := p.peek()
		if b == nil {
			return n
		}
		switch {
		case !parse(&d, b, p.cfg.Addr, p.cfg.Port):
			p.stats.Bad++
			p.next()
		case d.data == nil:
			return n
		default:
			if d.length == 0 {
				p.stats.Frames++
				p.next()
				continue
			}
			p.take(&in[n], &d, segment, n)
			n++
		}
	}
	return n
}

// take makes a packet from a datagram, or from the next part of a burst. It copies the data, because the
// ring has few slots.
func (p *Port) take(in *frame.In, d *datagram, segment, n int) {
	end := d.length
	if segment > 0 {
		end = min(p.done+segment, d.length)
	}
	data := p.memory[n*MostPayload : n*MostPayload+copy(p.memory[n*MostPayload:(n+1)*MostPayload], d.data[p.done:end])]
	// Some senders do not choose the identification and compute the ICRC without it. In the parts of
	// a burst it is a hint: whoever joined it may not have looked at the identifications.
	// Field by field: copying a struct as a whole would have to wait for the stores of its fields.
	in.Data = data[:len(data):len(data)]
	in.Src, in.Dst, in.SrcPort = d.src, p.cfg.Addr, d.srcPort
	in.TrafficClass, in.HopLimit, in.FlowLabel = d.trafficClass, d.hopLimit, d.flowLabel
	in.Segment, in.IDSeen, in.Raw, in.IDKnown, in.ID = d.id+p.index, segment == 0, false, false, 0
	p.stats.Received++
	p.index++
	if p.done = end; end == d.length {
		p.stats.Frames++
		p.next()
	}
}

func (p *Port) next() {
	p.from.release()
	p.index, p.done = 0, 0
}

// Marks takes up to most consecutive marks from the ring, and returns their number: so many messages wait
// at the socket, or will in a moment.
func (p *Port) Marks(most int) int {
	var d datagram
	for n := range most {
		b, _ := p.peek()
		if b == nil {
			return n
		}
		if !parse(&d, b, p.cfg.Addr, p.cfg.Port) || d.data != nil {
			return n
		}
		p.from.release()
	}
	return most
}

// Empty reports whether the ring is empty.
func (p *Port) Empty() bool {
	b, _ := p.peek()
	return b == nil
}

// Discard drops what is in the ring, when the socket has all of it.
func (p *Port) Discard() {
	for range slots {
		if b, _ := p.peek(); b == nil {
			return
		}
		p.next()
	}
}

// ArmWakeUp prepares for a sleep until the ring's descriptor is readable. It returns false if a packet is waiting that does
// not make it readable: the caller must not sleep then.
func (p *Port) ArmWakeUp() bool {
	ring := p.from == source(p.ring)
	if !p.gated() {
		return ring || p.Empty()
	}
	if !ring {
		p.ring.discard() // it only woke the consumer
	}
	return p.gate.arm() && p.Empty()
}

// Twice records that a packet was in the ring that the socket did not drop.
func (p *Port) Twice() { p.stats.Frames-- }
