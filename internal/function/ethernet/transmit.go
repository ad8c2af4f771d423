package ethernet

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// headAt is where in an Out's Head the first bytes of a frame are.
	headAt = 64
	// inHead is how long a frame is at most that is in Head as a whole: copying it costs less than a second piece.
	inHead = 128
	// minFrame is the length to which shorter frames are filled up (IEEE 802.3, 4.2.3.3), without FCS.
	minFrame = 60
	// turnFrames is how many frames a send queue sends before the next has its turn.
	turnFrames = 16
)

// cut is a large send of which a part was handed out.
type cut struct {
	segments offload.Segments
	queue    int
	send     int32
}

// handed is a send that is complete when the frames handed out last are no longer in use.
type handed struct {
	queue int
	send  int32
}

// Pending implements port.Function: beside those with something to send, it has the priority of frames handed out that are
// to be reclaimed by another Transmit.
func (f *Function) Pending() (priorities uint8) {
	for p := range f.ready {
		if f.ready[p].any() {
			priorities |= 1 << p
		}
	}
	if f.lent {
		priorities |= 1 << f.last
	}
	return priorities
}

// Lent implements port.Lender.
func (f *Function) Lent() bool { return f.lent }

// Transmit implements port.Function.
func (f *Function) Transmit(now clock.Time, priority uint8, out []frame.Out) int {
	f.reclaim(now)
	n := 0
	for n < len(out) && f.ready[priority].any() {
		q := f.ready[priority].next(f.cursor[priority] + 1)
		if c := &f.cuts[priority]; c.segments.Cutting() {
			q = c.queue
		}
		f.cursor[priority] = q
		k := f.transmit(q, priority, out[n:min(len(out), n+turnFrames)])
		f.send[q].handed += uint64(k)
		f.send[q].c.Bursts++
		n += k
	}
	f.lent, f.last = n > 0, priority
	return n
}

// transmit fills in frames of one queue.
func (f *Function) transmit(q int, priority uint8, out []frame.Out) (n int) {
	x := &f.send[q]
	for n < len(out) && x.heads[priority] >= 0 {
		at := x.heads[priority]
		p := &x.ring[at]
		c := &f.cuts[priority]
		switch {
		case c.segments.Cutting():
			f.segment(p, c, &out[n])
			n++
			if c.segments.Cutting() {
				continue
			}
		case p.Task.Kind != offload.Whole && !f.leavesLarge(p):
			// It was accepted as one that can be cut.
			if c.segments.BeginFrame(p.Task, &p.headers, p.Frame) == nil {
				c.queue, c.send = q, at
				f.sentLarge()
				continue
			}
		default:
			f.whole(p, &out[n])
			n++
		}
		f.unqueue(q, priority, at)
	}
	return n
}

// unqueue takes a send, all of whose frames are handed out, from those that wait.
func (f *Function) unqueue(q int, priority uint8, at int32) {
	x := &f.send[q]
	if x.heads[priority] = x.ring[at].next; x.heads[priority] < 0 {
		x.tails[priority] = -1
		f.ready[priority].clear(q)
	}
	f.handed = append(f.handed, handed{q, at})
}

// vlan returns the VLAN of a frame by its tag, 0: it has none, or only a priority.
func (p *posted) vlan() uint16 {
	switch b := p.Frame; {
	case p.Tagged:
		return p.TCI & eth.VIDMask
	case len(b) >= eth.EthernetLen+eth.VLANLen && eth.EtherType(binary.BigEndian.Uint16(b[macs:])) == eth.TypeVLAN:
		return binary.BigEndian.Uint16(b[eth.EthernetLen:]) & eth.VIDMask
	}
	return 0
}

// leavesLarge reports whether a frame may leave with something left to do.
func (f *Function) leavesLarge(p *posted) bool {
	dst := eth.MAC(p.Frame)
	return f.wire.TakesLarge(dst, p.vlan()) || p.Task.Kind.TCP() && f.wire.Encloses(dst, len(p.Frame))
}

// whole makes a frame of a send that is not cut.
func (f *Function) whole(p *posted, o *frame.Out) {
	h, b := &p.headers, p.Frame
	large := p.Task != offload.Task{} && !(h.Version == 6 && h.Options) && f.leavesLarge(p)
	split, most := len(b), inHead
	if p.Task.Kind != offload.Whole {
		most = offload.MaxHeaders
	}
	switch {
	case p.Task.Kind.InTunnel():
		split = p.head
	case split > inHead: // the headers are in a piece that can be changed, with everything for which there is a checksum
		split = h.Network
		for _, end := range [...]int{h.Transport, h.Data} {
			if end > split && end <= most {
				split = end
			}
		}
	}
	at := f.head(p, o, b[:split])
	o.Payload = b[split:]
	if !p.Tagged && len(b) >= minFrame && (large || p.Task.Sums == 0) {
		o.Staged = b // another function of the port has it without a copy
	}
	if large {
		o.Task = p.Task
		if p.Task.Kind != offload.Whole {
			f.sentLarge()
		}
	} else if p.Task.Sums != 0 {
		f.counters.Sent.ChecksumMade++
		f.sums(p, o.Head[at:o.HeadEnd], o.Payload)
	}
	f.pad(o)
	f.sent(p, o)
}

// sums makes the checksums of a frame in its Out, where a tag may have been added.
func (f *Function) sums(p *posted, head, body []byte) {
	h := p.headers
	if p.Tagged {
		h.Network += eth.VLANLen
		h.Transport += eth.VLANLen
		h.End += eth.VLANLen
		if h.Data != 0 {
			h.Data += eth.VLANLen
		}
	}
	if h.Data == 0 {
		offload.Make(p.Task.Sums&offload.MakeIP, &h, head)
		return
	}
	if whole := len(head); h.End <= whole { // the payload is there too, with padding behind it
		offload.MakeApart(p.Task.Sums, &h, head, head[h.Data:h.End])
		return
	}
	offload.MakeApart(p.Task.Sums, &h, head, body[:h.End-len(head)])
}

// segment makes a frame of the next segment of a large send.
func (f *Function) segment(p *posted, c *cut, o *frame.Out) {
	head, body, _ := c.segments.Next()
	f.head(p, o, head)
	o.Payload = body
	f.pad(o)
	f.counters.Sent.Segments++
	f.sent(p, o)
}

// head writes the first bytes of a frame, with a tag if there is to be one, and returns where they begin.
func (f *Function) head(p *posted, o *frame.Out, b []byte) int {
	o.Reset(&f.route)
	n := headAt
	if p.Tagged {
		n += copy(o.Head[n:], b[:macs])
		binary.BigEndian.PutUint16(o.Head[n:], uint16(eth.TypeVLAN))
		binary.BigEndian.PutUint16(o.Head[n+2:], p.TCI)
		n += eth.VLANLen
		b = b[macs:]
	}
	n += copy(o.Head[n:], b)
	o.HeadStart, o.HeadEnd = headAt, uint16(n)
	return headAt
}

// pad fills a short frame up with zeros. Frames that short are in Head.
func (f *Function) pad(o *frame.Out) {
	short := minFrame - o.Len()
	if short <= 0 {
		return
	}
	n := int(o.HeadEnd)
	n += copy(o.Head[n:], o.Payload)
	o.Payload = nil
	clear(o.Head[n : n+short])
	o.HeadEnd = uint16(n + short)
}

// sent counts a frame that is handed out.
func (f *Function) sent(p *posted, o *frame.Out) {
	n := o.Len()
	c := &f.counters.Sent
	c.count(o.Head[headAt:], n)
	c.Priorities[p.priority]++
	c.PriorityBytes[p.priority] += uint64(n)
}

func (f *Function) sentLarge() { f.counters.Sent.Large++ }
