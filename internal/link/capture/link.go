// Package capture copies the packets that pass a link to taps, as they are on the wire: after any
// impairment on the way out, before any check on the way in. A UDP socket does not show the IP header, so
// the capture reconstructs the kernel's header as far as it is known: the identification of received
// packets is computed from the ICRC (RFC 791, IBA A17), and a hop limit that the socket did not report is
// shown as the default.
package capture

import (
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	behindIPv4ID   = eth.IPv4Len - 6 // bytes of the IPv4 header after the identification
	headersOfIPUDP = eth.IPv6Len + eth.UDPLen
)

// Link is a link.Link around another that shows its taps what passes. Like any link it has a single owner,
// who also calls SetTaps; without taps it costs one comparison a batch.
type Link struct {
	link.Link
	caps   link.Capabilities
	addr   netip.Addr
	port   uint16
	wall   func() time.Time
	taps   []*Tap
	icrc   ib.ICRCScratch
	head   [headersOfIPUDP]byte
	joined []byte // where the pieces of a packet are joined
	cut    offload.Segments
}

// New wraps the link of an address, on which packets arrive at the UDP port. wall returns the time of day.
func New(inner link.Link, addr netip.Addr, port uint16, wall func() time.Time) *Link {
	return &Link{Link: inner, caps: inner.Capabilities(), addr: addr, port: port, wall: wall}
}

// SetTaps replaces the taps.
func (l *Link) SetTaps(taps []*Tap) {
	before := len(l.taps) > 0
	l.taps = slices.Clone(taps)
	if now := len(taps) > 0; now != before && l.caps.Stations != nil {
		l.caps.Stations.Watch(now)
	}
}

// Idle reports whether there are no taps.
func (l *Link) Idle() bool { return len(l.taps) == 0 }

// Send implements link.Link. Packets that the link keeps for now are shown when it sends them.
func (l *Link) Send(frames []frame.Out) (int, error) {
	n, err := l.Link.Send(frames)
	if len(l.taps) == 0 {
		return n, err
	}
	at := l.wall()
	own, _ := l.own()
	l.showOwn(at, own)
	for i := range frames[:n] {
		if o := &frames[i]; !o.Held {
			l.sent(at, o)
		}
	}
	if n > 0 || len(own) > 0 {
		l.signal()
	}
	return n, err
}

// Receive implements link.Link. The link's own frames are shown among those that it hands up.
func (l *Link) Receive(in []frame.In) (int, error) {
	n, err := l.Link.Receive(in)
	if len(l.taps) == 0 {
		return n, err
	}
	at := l.wall()
	own, handed := l.own()
	any := n > 0 || len(own) > 0
	for i := range in[:n] {
		for len(own) > 0 && own[0].Handed+uint64(n-i) <= handed {
			l.showOwn(at, own[:1])
			own = own[1:]
		}
		l.received(at, &in[i])
	}
	l.showOwn(at, own)
	if any {
		l.signal()
	}
	return n, err
}

// own returns the frames that the link has sent and received itself, and how many it has handed up.
func (l *Link) own() ([]link.OwnFrame, uint64) {
	if l.caps.Stations == nil {
		return nil, 0
	}
	return l.caps.Stations.Watched()
}

func (l *Link) showOwn(at time.Time, own []link.OwnFrame) {
	for i := range own {
		flags := uint64(flagEthernet)
		if own[i].Sent {
			flags |= flagOutbound
		}
		l.put(at, flags, nil, own[i].Data, nil, nil)
	}
}

// Show shows the taps packets that do not go by the link. Those that are kept for now are shown when they go.
func (l *Link) Show(frames []frame.Out) {
	at := l.wall()
	for i := range frames {
		if o := &frames[i]; !o.Held {
			l.sent(at, o)
		}
	}
	l.signal()
}

func (l *Link) signal() {
	for _, t := range l.taps {
		t.signal()
	}
}

func (l *Link) put(at time.Time, flags uint64, head, a, b, c []byte) {
	for _, t := range l.taps {
		t.put(at, flags, head, a, b, c)
	}
}

func (l *Link) sent(at time.Time, o *frame.Out) {
	out := flagOutbound | uint64(o.Mark())<<markShift
	transport, tail := o.Head[o.HeadStart:o.HeadEnd], o.Tail[:o.TailLen]
	if l.caps.InfiniBand {
		l.whole(at, out, transport, o.Payload, tail)
		return
	}
	if l.caps.Raw {
		if o.Task != (offload.Task{}) {
			l.finished(at, o)
			return
		}
		l.put(at, out|flagEthernet, nil, transport, o.Payload, tail)
		return
	}
	r := o.Route
	id := uint16(0)
	if l.caps.SegmentIDs {
		id = o.Segment
	}
	port := r.DstPort
	if port == 0 {
		port = l.port
	}
	d := eth.Datagram{Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, DstPort: port,
		TrafficClass: r.TrafficClass, HopLimit: r.HopLimit, FlowLabel: r.FlowLabel, ID: id}
	l.put(at, out, l.headers(&d, o.Len()), transport, o.Payload, tail)
}

func (l *Link) received(at time.Time, p *frame.In) {
	if l.caps.InfiniBand {
		l.whole(at, 0, p.Data)
		return
	}
	if p.Raw {
		l.put(at, flagEthernet, nil, p.Data, nil, nil)
		return
	}
	d := eth.Datagram{Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: l.port,
		TrafficClass: p.TrafficClass, HopLimit: p.HopLimit, FlowLabel: p.FlowLabel, ID: p.ID}
	if !d.Dst.IsValid() {
		d.Dst = l.addr
	}
	if !p.IDKnown {
		d.ID = p.Segment
		d.ID = l.solve(&d, p.Data)
	}
	l.put(at, 0, l.headers(&d, len(p.Data)), p.Data, nil, nil)
}

// finished shows a frame of which something is left to do as if that had been done: one that was handed out before the first tap
// was there.
func (l *Link) finished(at time.Time, o *frame.Out) {
	b := append(append(append(l.joined[:0], o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...), o.Tail[:o.TailLen]...)
	l.joined = b
	var h eth.Headers
	if !h.Parse(b) {
		l.put(at, flagOutbound|flagEthernet, nil, b, nil, nil)
		return
	}
	if o.Task.Kind == offload.Whole || l.cut.BeginFrame(o.Task, &h, b) != nil {
		offload.Make(o.Task.Sums, &h, b)
		l.put(at, flagOutbound|flagEthernet, nil, b, nil, nil)
		return
	}
	for head, body, ok := l.cut.Next(); ok; head, body, ok = l.cut.Next() {
		l.put(at, flagOutbound|flagEthernet, nil, head, body, nil)
	}
}

// whole shows an InfiniBand packet with the VCRC of its first hop, as captures of such packets have one.
func (l *Link) whole(at time.Time, flags uint64, pieces ...[]byte) {
	l.joined = l.joined[:0]
	for _, p := range pieces {
		l.joined = append(l.joined, p...)
	}
	n := len(l.joined)
	l.joined = append(l.joined, 0, 0)
	ib.PutVCRC(l.joined[n:], ib.VCRC(l.joined[:n]))
	l.put(at, flags|flagIB, l.joined, nil, nil, nil)
}

// headers returns the IP and UDP headers of a packet with n bytes after them. The UDP checksum is given as
// not computed, which RoCE v2 allows and the ICRC does not cover.
func (l *Link) headers(d *eth.Datagram, n int) []byte {
	d.HopLimit = frame.Hops(d.HopLimit)
	d.Src, d.Dst = d.Src.Unmap(), d.Dst.Unmap()
	d.Put(l.head[:], n)
	return l.head[:d.HeaderLen()]
}

// solve returns the identification for which the ICRC of an IPv4 packet is right, or that of d if there
// is none: then the packet is corrupt, and shown so.
func (l *Link) solve(d *eth.Datagram, data []byte) uint16 {
	if !d.Dst.Unmap().Is4() || len(data) < ib.BTHLen+ib.ICRCLen {
		return d.ID
	}
	b := l.headers(d, len(data))
	body := data[:len(data)-ib.ICRCLen]
	crc := ib.ICRCSeedIPv4(&l.icrc, b[:eth.IPv4Len], b[eth.IPv4Len:], body[:ib.BTHLen])
	crc, wire := ib.ICRCUpdate(crc, body[ib.BTHLen:]), ib.ICRC(data[len(body):])
	if crc == wire {
		return d.ID
	}
	if delta, ok := ib.SolveID(crc, wire, behindIPv4ID+eth.UDPLen+len(body)); ok {
		return d.ID ^ delta
	}
	return d.ID
}
