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
		f       flow         // of the route
		segment int          // the next packet's position in the burst
		size    int          // length of the burst's packets
		total   int          // bytes of the burst so far
		full    bool         // the burst is complete
	)
	staging := e.caps.Stager != nil && len(out) >= stageBatch
	for i := range out {
		o := &out[i]
		head := o.Head[frame.HeadRoom:o.HeadEnd]
		length := sealedLen(o)
		if o.Route != route {
			route, full = o.Route, true
			f = flow{route.Src, route.Dst, route.SrcPort, e.dstPort(route)}
		}
		if full || length > size || segment >= e.caps.MaxSegments || total+length > e.caps.MaxBurst ||
			segment == 1 && length < size && e.alone(out[i:], length) {
			segment, size, total = 0, length, 0
		}
		full = length < size
		total += length
		o.Segment = uint16(segment)
		segment++
		id := o.Segment
		if !e.caps.SegmentIDs {
			id = 0
		}
		if staging && o.Windowed && len(o.Payload) >= stagePayload {
			o.Staged = e.caps.Stager.Stage(o, length)
		}
		crc, n := e.begin(&f, length, id, head, o.Payload)
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

// alone reports whether the packets before out should be a burst of their own, although the first of out,
// which is shorter, could end it: the first packet of a long write is longer than the others, by its RETH,
// and the link should copy as little as possible beside a burst that it has staged. This is done if the
// packets of the shorter length fill at least half of a burst and at most one: with several bursts of
// short packets it gains nothing.
func (e *Encap) alone(out []frame.Out, length int) bool {
	most := min(e.caps.MaxSegments, e.caps.MaxBurst/length)
	n := 1
	for n <= most && n < len(out) && out[n].Route == out[0].Route && sealedLen(&out[n]) == length {
		n++
	}
	return 2*n > most && n <= most
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
