package encap

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// Packets with a payload of at least stagePayload in batches of at least stageBatch are bulk, for which
// the link's effort for a staged burst pays off (link.Stager).
const (
	stageBatch   = 4
	stagePayload = 1024
)

// Seal prepares the packets of a batch for the link: it writes pads and ICRCs and, on links that carry
// whole frames, the outer headers. On other links it joins packets into bursts by numbering their Segment:
// consecutive packets of one route and of equal length, of which the last may be shorter, within the
// link's limits.
func (e *Encap) Seal(out []frame.Out) {
	if e.caps.Raw {
		for i := range out {
			if e.mode == InfiniBand {
				e.sealIB(&out[i])
			} else {
				e.sealRaw(&out[i])
			}
		}
		return
	}
	var (
		route   *frame.Route // of the current burst
		port    uint16       // destination port of the route
		segment int          // the next packet's position in the burst
		size    int          // length of the burst's packets
		total   int          // bytes of the burst so far
		full    bool         // the burst is complete
		kind    shape        // of the burst
	)
	staging := e.caps.Stager != nil && len(out) >= stageBatch
	for i := range out {
		o := &out[i]
		head := o.Head[frame.HeadRoom:o.HeadEnd]
		length := sealedLen(o)
		if o.Route != route {
			route, port, full = o.Route, e.dstPort(o.Route), true
		}
		if full || length > size || segment >= e.caps.MaxSegments || total+length > e.caps.MaxBurst || kind == one {
			segment, size, total = 0, length, 0
			kind = e.shape(out[i:], length)
		}
		full = length < size
		total += length
		o.Segment = uint16(segment)
		segment++
		id := o.Segment
		if !e.caps.SegmentIDs {
			id = 0
		}
		if staging && kind == many && o.Windowed && len(o.Payload) >= stagePayload {
			o.Staged = e.caps.Stager.Stage(o, length)
		}
		var crc uint32
		n := ib.BTHLen
		if s := e.known(&route.Src, &route.Dst, route.SrcPort, port, length, id, common(head)); s != nil {
			crc = s.begin(id, head)
		} else {
			crc, n = e.begin(&flow{route.Src, route.Dst, route.SrcPort, port}, length, id, head, o.Payload)
		}
		switch {
		case n < len(head) && o.Staged == nil:
			crc, n = ib.ICRCPieces(crc, head[n:], o.Payload), len(head)+len(o.Payload)
		case n < len(head):
			crc, n = ib.ICRCUpdate(crc, head[n:]), len(head)
		}
		finish(o, crc, n-len(head))
	}
}

// sealedLen returns the length of a packet from its BTH to its ICRC.
func sealedLen(o *frame.Out) int {
	return int(o.HeadEnd) - frame.HeadRoom + len(o.Payload) + int(o.Pad&3) + ib.ICRCLen
}

// shape says how many packets a burst will have. A packet that is shorter than the first ends the burst, as the second
// packet of a write does: the first is longer than the others by its RETH.
type shape uint8

const (
	many shape = iota
	two        // the first two
	one        // the first by itself
)

// shape determines the shape of the burst that the first packet of out, of this length, begins. Bursts of one or two
// packets are not staged: the link copies so little from where it is. The first packet leaves by itself if those behind
// it fill at least half of a burst and at most one, so that as little as possible is copied beside a staged burst; with
// several bursts of shorter packets that gains nothing.
func (e *Encap) shape(out []frame.Out, length int) shape {
	if len(out) < 2 || out[1].Route != out[0].Route {
		return many
	}
	rest := sealedLen(&out[1])
	if rest >= length {
		return many
	}
	most := min(e.caps.MaxSegments, e.caps.MaxBurst/rest)
	n := 1
	for n <= most && n+1 < len(out) && out[n+1].Route == out[0].Route && sealedLen(&out[n+1]) == rest {
		n++
	}
	if 2*n > most && n <= most {
		return one
	}
	return two
}

// finish continues the ICRC over the payload from byte done on and the pad, and writes both pad and ICRC.
func finish(o *frame.Out, crc uint32, done int) {
	if o.Staged != nil {
		crc = stage(o, crc, done)
	} else if done < len(o.Payload) {
		crc = ib.ICRCUpdate(crc, o.Payload[done:])
	}
	pad := int(o.Pad & 3)
	o.Tail = [8]byte{}
	if pad != 0 {
		crc = ib.ICRCUpdate(crc, o.Tail[:pad])
	}
	ib.PutICRC(o.Tail[pad:], crc)
	o.TailLen = uint8(pad + ib.ICRCLen)
	if o.Staged != nil {
		copy(o.Staged[len(o.Staged)-int(o.TailLen):], o.Tail[:o.TailLen])
	}
}

// stage copies headers and payload of a packet to its staging memory and continues the ICRC over the
// payload from byte done on.
func stage(o *frame.Out, crc uint32, done int) uint32 {
	to := o.Staged[copy(o.Staged, o.Head[o.HeadStart:o.HeadEnd]):]
	copy(to, o.Payload[:done])
	return ib.ICRCCopy(crc, to[done:], o.Payload[done:])
}

// dstPort returns the UDP destination port of a route.
func (e *Encap) dstPort(r *frame.Route) uint16 {
	if r.DstPort != 0 {
		return r.DstPort
	}
	return e.port
}
