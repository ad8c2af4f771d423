package ethernet

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/internal/function/ethernet/rss"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// noteBadFCS is the bit of a packet's note, beside the type of its hash, that says that its FCS was wrong.
const noteBadFCS = 1 << 31

// Receive implements port.Function.
func (f *Function) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		f.take(now, &in[i])
	}
	for set := f.touched; set != 0; set &= set - 1 {
		f.flush(now, bits.TrailingZeros64(set))
	}
	f.touched = 0
}

// take filters a frame, checks it, and adds it to the batch of its queue.
func (f *Function) take(now clock.Time, in *frame.In) {
	var h eth.Headers
	b := in.Data
	if !h.Parse(b) || len(in.Payload) > 0 {
		f.counters.Malformed++
		return
	}
	note := uint32(0)
	if in.BadFCS {
		f.badFCS(&h, b)
		if f.cfg.IgnoreFCS == 0 {
			return
		}
		note = noteBadFCS
	}
	if h.Type == eth.TypeMACControl && h.Tags == 0 { // it ends at the MAC (IEEE 802.3, 31.3)
		f.counters.Control++
		if !pauses(b) {
			f.counters.ControlUnknown++
		}
		return
	}
	whole := in.Task.Kind == offload.Whole
	if v := f.filter.Judge(&h, b, whole); v != filter.Pass {
		f.counters.Filtered[v]++
		if v == filter.Own {
			f.duplicate(now, b)
		}
		return
	}
	f.arrived(&h, b, whole)
	if f.asleep && f.sleep(now, b) {
		return
	}
	t := in.Task
	inner := f.innerOf(&h, b, t.Kind)
	f.check(&h, inner, b, &t)
	hash, kind := f.hashOf(inner, b)
	q := f.queueOf(hash, kind)
	r := &f.receive[q]
	if f.counting {
		r.kinds[kindOf(inner, inner != &h, kind)]++
	}
	if f.touched>>q&1 == 0 {
		f.touched |= 1 << q
		r.join.Reset()
	}
	if !whole && !f.takesKind(t.Kind, &h) {
		f.unjoin(now, q, &h, b, t, hash, kind)
		return
	}
	r.join.AddFrame(&h, b, t, hash, note|uint32(kind))
}

// leastFrame is the length of the shortest frame that Ethernet has, without its FCS (IEEE 802.3, 3.2.7 and 4.4.2).
const leastFrame = 60

// badFCS counts a frame with a wrong FCS, by its length (RFC 2819, etherStatsFragments and etherStatsJabbers).
func (f *Function) badFCS(h *eth.Headers, b []byte) {
	c := &f.counters
	c.BadFCS++
	switch {
	case len(b) < leastFrame:
		c.Fragments++
	case f.filter.Long(h, b):
		c.Jabbers++
	}
}

// pauses reports whether a MAC control frame pauses all priorities or some (IEEE 802.3 annex 31A: opcodes 1 and 0x101).
func pauses(b []byte) bool {
	const pause, priorityPause = 1, 0x101
	if len(b) < eth.EthernetLen+2 {
		return false
	}
	op := binary.BigEndian.Uint16(b[eth.EthernetLen:])
	return op == pause || op == priorityPause
}

// arrived counts a frame that passes.
func (f *Function) arrived(h *eth.Headers, b []byte, whole bool) {
	c := &f.counters.Received
	c.count(b, len(b))
	if !whole {
		c.Large++
	}
	priority := h.TCI >> 13
	c.Priorities[priority]++
	c.PriorityBytes[priority] += uint64(len(b))
}

// check looks at the checksums of a frame, and at those of the frame inside if it is a tunnel's, as far as the keys ask for it, and
// nobody has. The host learns those outside; it looks at those inside itself.
func (f *Function) check(h, inner *eth.Headers, b []byte, t *offload.Task) {
	if h.Version == 0 {
		return
	}
	if t.Kind != offload.Whole {
		t.Sums |= offload.MakeTransport
	}
	t.Sums = f.sumsOf(h, b, t.Sums)
	all := t.Sums
	if inner != h {
		left := offload.Sums(0)
		if t.Kind.InTunnel() {
			left = offload.MakeTransport
		}
		all |= f.sumsOf(inner, b, left)
	}
	c := &f.counters.Received
	switch {
	case all&(offload.BadIP|offload.BadTransport) != 0:
		c.ChecksumBad++
	case all&(offload.GoodIP|offload.GoodTransport|offload.MakeTransport) != 0:
		c.ChecksumGood++
	default:
		c.ChecksumNone++
	}
	if left := t.Sums & (offload.MakeTransport | offload.MakeIP); left != 0 && t.Kind == offload.Whole && !f.cfg.Host.Partial {
		offload.Make(left, h, b)
		t.Sums = t.Sums&^left | left<<2 // what was to be made is good now
	}
}

// sumsOf adds to what is known of a frame's checksums what the keys ask for.
func (f *Function) sumsOf(h *eth.Headers, b []byte, known offload.Sums) offload.Sums {
	const transport = offload.MakeTransport | offload.GoodTransport | offload.BadTransport
	s := known
	if h.Version == 4 && f.cfg.IPChecksumIPv4&rx != 0 && s&(offload.MakeIP|offload.GoodIP|offload.BadIP) == 0 {
		s |= offload.CheckIP(h, b)
	}
	if s&transport == 0 && f.transportKey(h.Version)&rx != 0 {
		s |= offload.CheckTransport(h, b)
	}
	return s
}

// transportKey returns the value of the key for the checksums of TCP and UDP.
func (f *Function) transportKey(version uint8) int {
	if version == 6 {
		return f.cfg.TCPUDPChecksumIPv6
	}
	return f.cfg.TCPUDPChecksumIPv4
}

// takesLarge reports whether the host takes frames of several segments: it can, and has them joined.
func (f *Function) takesLarge(version uint8) bool {
	if version == 6 {
		return f.cfg.Host.Large && f.cfg.RscIPv6 != 0
	}
	return f.cfg.Host.Large && f.cfg.RscIPv4 != 0
}

// takesKind reports whether the host takes frames of several segments of a kind.
func (f *Function) takesKind(k offload.Kind, h *eth.Headers) bool {
	version := h.Version
	switch {
	case k.InTunnel():
		if !f.cfg.Host.Tunnels || h.Protocol != eth.ProtocolUDP { // no host's header describes NVGRE
			return false
		}
		if version = 4; k.Inner() == offload.TCPv6 {
			version = 6
		}
	case k == offload.UDP && !f.cfg.Host.Datagrams:
		return false
	}
	return f.takesLarge(version)
}

// unjoin cuts a large frame for a host that does not take it.
func (f *Function) unjoin(now clock.Time, q int, h *eth.Headers, b []byte, t offload.Task, hash uint32, kind rss.Types) {
	if f.segments.BeginFrame(t, h, b) != nil {
		f.counters.Malformed++
		return
	}
	f.flush(now, q) // what came before it
	f.receive[q].join.Reset()
	p := offload.Packet{Headers: *h, Hash: hash, Note: uint32(kind), Task: offload.Task{Sums: offload.GoodTransport}}
	if h.Version == 4 {
		p.Task.Sums |= offload.GoodIP
	}
	p.Header = p.Task.Header(h)
	for head, body, ok := f.segments.Next(); ok; head, body, ok = f.segments.Next() {
		f.pieces = [2][]byte{head, body}
		p.Parts = f.pieces[:]
		f.list, f.parts, f.heads = append(f.list[:0], Packet{}), f.parts[:0], f.heads[:0]
		f.describe(&f.list[0], &p)
		f.deliver(now, q, f.list)
	}
}

// flush passes on the batch of a queue.
func (f *Function) flush(now clock.Time, q int) {
	r := &f.receive[q]
	batch := r.join.Packets()
	f.list, f.parts, f.heads = f.list[:0], f.parts[:0], f.heads[:0]
	for i := range batch {
		p := &batch[i]
		if n := len(p.Parts); n > 1 {
			f.counters.RSC.Events++
			f.counters.RSC.Packets += uint64(n)
			f.counters.RSC.Octets += uint64(p.Len())
			f.joining.Joined(now, p)
		}
		f.list = append(f.list, Packet{})
		f.describe(&f.list[i], p)
	}
	f.counters.RSC.Aborts += uint64(r.join.Aborts())
	if f.cfg.RxSmallPacketBypass != 0 {
		f.smallFirst()
	}
	f.deliver(now, q, f.list)
}

// smallFirst puts small packets before the others, and changes nothing else about the order (WinOF 5.50, 4.6.5:
// RxSmallPacketBypass), so that acknowledgements overtake data.
func (f *Function) smallFirst() {
	f.later = f.later[:0]
	n := 0
	for i := range f.list {
		if p := &f.list[i]; p.Len() < smallPacket {
			f.list[n] = *p
			n++
		} else {
			f.later = append(f.later, *p)
		}
	}
	copy(f.list[n:], f.later)
}

// describe makes p what is indicated of a frame: the tag taken out, the headers split off if that is asked for.
func (f *Function) describe(p *Packet, o *offload.Packet) {
	*p = Packet{Parts: o.Parts, Header: o.Header, Sums: o.Task.Sums, Hash: o.Hash, HashType: rss.Types(o.Note &^ noteBadFCS),
		Priority: f.wire.Priority(o.Parts[0])}
	if f.cfg.IgnoreFCS != 0 && len(o.Parts) == 1 {
		p.HasFCS, p.FCS = true, crc32.ChecksumIEEE(o.Parts[0])
		if o.Note&noteBadFCS != 0 {
			p.FCS = ^p.FCS // which it was not
		}
	}
	tagged := o.Headers.Tags > 0 && f.cfg.PriorityVLANTag != 0 && eth.EtherType(binary.BigEndian.Uint16(o.Parts[0][macs:])) == eth.TypeVLAN
	split := f.cfg.splits()
	if !tagged && !split {
		return
	}
	b, from := o.Parts[0], len(f.parts)
	end := min(headersEnd(&o.Headers), len(b))
	if tagged {
		p.Tagged, p.TCI = true, o.Headers.TCI
		shift(&p.Header)
	}
	if split {
		f.cfg.Virtual.pool().Split()
	}
	switch {
	case tagged && split: // in one piece, which takes a copy
		at := len(f.heads)
		f.heads = append(append(f.heads, b[:macs]...), b[macs+eth.VLANLen:end]...)
		f.parts = append(f.parts, f.heads[at:len(f.heads):len(f.heads)], b[end:])
	case tagged:
		f.parts = append(f.parts, b[:macs], b[macs+eth.VLANLen:])
	default:
		f.parts = append(f.parts, b[:end], b[end:])
	}
	f.parts = append(f.parts, o.Parts[1:]...)
	p.Parts = f.parts[from:len(f.parts):len(f.parts)]
}

// macs is where an Ethernet header has its first tag.
const macs = 12

// headersEnd is where the headers of a frame end, as header-data split means it: behind the last one that is known.
func headersEnd(h *eth.Headers) int {
	return max(h.Network, h.Transport, h.Data)
}

// shift moves the places of a header to where they are without a tag.
func shift(h *offload.Header) {
	for _, at := range []*int{&h.Headers, &h.ChecksumStart, &h.Outer, &h.Inner} {
		if *at != 0 {
			*at -= eth.VLANLen
		}
	}
}
