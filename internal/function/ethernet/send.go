package ethernet

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// Send is a frame that a host sends.
type Send struct {
	// Frame is the frame from the destination address on, without FCS. It is the function's until Host.Sent.
	Frame []byte
	// Task is what the host leaves to the function: checksums, and segments of a large send.
	Task offload.Task
	// V1 says that a large send is one of NDIS's version 1 of the offload (*LsoV1IPv4) and not of version 2.
	V1 bool
	// Tagged asks for a tag with this control information in the frame, which has none.
	Tagged bool
	TCI    uint16
}

// Refusal is why a send is refused.
type Refusal uint8

// The reasons.
const (
	// RingFull: the send queue has no room; there is some again after Host.Sent.
	RingFull Refusal = iota + 1
	// Short: the frame has no whole Ethernet header.
	Short
	// Long: it is longer than *JumboPacket, or LSOSize if it is a large send.
	Long
	// NoQueue: there is no such send queue.
	NoQueue
	// NoTask: the frame is not what its Task says, or that offload is off.
	NoTask
	// FewSegments: a large send has fewer segments than LSOMinSegment.
	FewSegments
	// Options: a large send has options of TCP or IP that LSOTcpOptions or LSOIpOptions do not allow.
	Options
	// WrongTag: a tag is asked for and the frame has one, or it has one of another VLAN than VlanId.
	WrongTag
)

// Error implements error.
func (r Refusal) Error() string {
	return [...]string{"", "the send ring is full", "the frame is shorter than an Ethernet header", "the frame is too long",
		"there is no such send queue", "the offload is off, or cannot be applied to the frame",
		"a large send of fewer segments than LSOMinSegment", "a large send with options that are not allowed",
		"a tag for a frame that has one, or one of another VLAN"}[r]
}

// posted is a send in a queue's ring.
type posted struct {
	Send
	headers  eth.Headers
	next     int32 // the next send of the queue at the same priority
	priority uint8
	done     bool
	head     int // of a large send in a tunnel: bytes of all headers
}

// sendQueue is a send queue: a ring of sends, which are complete in order, and lists of those that wait, by priority.
type sendQueue struct {
	ring        []posted // nil until the first send
	first, used int
	heads       [frame.Priorities]int32 // the first that waits, -1: none
	tails       [frame.Priorities]int32
	handed      uint64 // frames handed out
	progress    progress
	completed   uint32     // sends complete and not reported
	due         clock.Time // when they are
	c           SendCounters
}

// mostRings is the largest number of send queues: two for each receive queue.
const mostRings = 2 * 64

// bitmap is a set of send queues.
type bitmap [mostRings / 64]uint64

func (b *bitmap) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b *bitmap) clear(i int)    { b[i>>6] &^= 1 << (i & 63) }
func (b *bitmap) any() bool      { return b[0]|b[1] != 0 }
func (b *bitmap) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }

// next returns the first of the set from i on, around its end; there must be one.
func (b *bitmap) next(i int) int {
	for {
		if i >= mostRings {
			i = 0
		}
		if rest := b[i>>6] >> (i & 63); rest != 0 {
			return i + bits.TrailingZeros64(rest)
		}
		i = (i>>6 + 1) << 6
	}
}

// Values of TxHashDistribution.
const (
	bySize        = 1
	byHash        = 2
	byHashAndSize = 3
)

// startSend makes the send queues: one for each receive queue, or two.
func (f *Function) startSend() {
	n := len(f.receive)
	switch f.cfg.distribution() {
	case bySize:
		n = 2
	case byHashAndSize:
		n *= 2
	}
	f.send = make([]sendQueue, n)
	for i := range f.send {
		s := &f.send[i]
		s.due = clock.Never
		for p := range frame.Priorities {
			s.heads[p], s.tails[p] = -1, -1
		}
	}
}

// distribution returns how sends are spread over the send queues: TxHashDistribution, which WinOF-2 does not have.
func (c *Config) distribution() int {
	if c.Generation != catalogue.MLX4 {
		return byHash
	}
	return c.TxHashDistribution
}

// smallPacket is below which length a frame is small (WinOF 5.50, 4.6.5: TxHashDistribution, and as it does not say otherwise
// RxSmallPacketBypass).
const smallPacket = 128

// QueueFor returns the send queue for a frame: that of the hash that the frames of the flow's other direction have, and of its
// length.
func (f *Function) QueueFor(b []byte) int {
	how := f.cfg.distribution()
	small := 0
	if len(b) < smallPacket {
		small = 1
	}
	if how == bySize {
		return small
	}
	q := 0
	var h eth.Headers
	if len(f.receive) > 1 && h.Parse(b) {
		var t tunnel.Frame
		if x := f.cfg.inside(&t, &h, b); f.cfg.spreads(x) {
			if hash, kind := f.hash.OfSent(x, b, f.types); kind != 0 {
				q = f.table.Queue(hash)
			}
		}
	}
	if how == byHashAndSize {
		return 2*q + small
	}
	return q
}

// SendCounters returns the counters of a send queue, which keep counting.
func (f *Function) SendCounters(q int) *SendCounters { return &f.send[q].c }

// QueueCounters returns those of a receive queue, with those of the send queues that its flows take. Two send queues that
// are told apart by size alone are queue 0's.
func (f *Function) QueueCounters(q int) QueueCounters {
	c := QueueCounters{Receive: f.receive[q].c}
	first, n := q, 1
	switch f.cfg.distribution() {
	case bySize:
		first, n = 0, 2*max(0, 1-q)
	case byHashAndSize:
		first, n = 2*q, 2
	}
	for i := range n {
		c.Send.Add(&f.send[first+i].c)
	}
	return c
}

// SendRoom returns how many more sends a queue has room for.
func (f *Function) SendRoom(q int) int { return f.cfg.TransmitBuffers - f.send[q].used }

// Send posts a send to a queue. The error is a Refusal, or nil; then the port has to have a turn.
func (f *Function) Send(now clock.Time, q int, s *Send) error {
	if q < 0 || q >= len(f.send) {
		f.counters.Refused++
		return NoQueue
	}
	x := &f.send[q]
	if x.ring == nil {
		x.ring = make([]posted, f.cfg.TransmitBuffers)
	}
	if f.cfg.SendCompletionMethod == pollingMethod {
		f.report(now, q)
	}
	if x.used == len(x.ring) {
		x.c.RingFull++
		f.counters.RingFull++
		return RingFull
	}
	at := x.first + x.used
	if at >= len(x.ring) {
		at -= len(x.ring)
	}
	p := &x.ring[at]
	p.Send, p.next, p.done = *s, -1, false
	if r := f.accept(p); r != 0 {
		p.Frame = nil
		f.counters.Refused++
		return r
	}
	x.used++
	f.queue(q, int32(at), p.priority)
	f.watch(now)
	return nil
}

// Takes returns why Send would refuse a send if there is room for it; 0: it would not.
func (f *Function) Takes(s *Send) Refusal {
	p := posted{Send: *s}
	return f.accept(&p)
}

// LargeSend returns the most bytes of a large send's IP packet; 0: there are none.
func (f *Function) LargeSend() int { return f.cfg.lso() }

// queue adds a send to those that wait at its priority.
func (f *Function) queue(q int, at int32, priority uint8) {
	x := &f.send[q]
	if x.heads[priority] < 0 {
		x.heads[priority] = at
		f.ready[priority].set(q)
	} else {
		x.ring[x.tails[priority]].next = at
	}
	x.tails[priority] = at
}

// accept checks a send, and completes what it says.
func (f *Function) accept(p *posted) Refusal {
	h := &p.headers
	if !h.Parse(p.Frame) {
		return Short
	}
	if v := uint16(f.cfg.VlanID); h.Tags > 0 && (p.Tagged || v != 0 && h.TCI&eth.VIDMask != v) {
		return WrongTag
	}
	f.tag(p)
	if p.Task.Kind != offload.Whole {
		return f.acceptLarge(p)
	}
	p.Task.Segment = 0
	if len(p.Frame)-eth.VLANLen*int(h.Tags) > f.cfg.JumboPacket {
		return Long
	}
	return f.acceptSums(p)
}

// tag decides on the tag of a send (WinOF 5.50, 4.6.5 and 4.6.6: VlanId, *PriorityVLANTag), and on its priority.
func (f *Function) tag(p *posted) {
	if p.headers.Tags > 0 {
		p.priority = uint8(p.headers.TCI >> 13)
		return
	}
	tci := p.TCI
	if !p.Tagged {
		tci = 0
	}
	if tci&eth.VIDMask == 0 {
		tci |= uint16(f.cfg.VlanID)
	}
	if f.mark != nil && !p.Tagged {
		tci = f.marked(p, tci)
	} else {
		p.priority = uint8(tci >> 13)
	}
	if f.cfg.PriorityVLANTag&1 == 0 || f.mark != nil && f.mark.Bare && tci&eth.VIDMask == 0 {
		tci &= eth.VIDMask
	}
	if f.cfg.PriorityVLANTag&2 == 0 {
		tci &^= eth.VIDMask
	}
	p.Tagged, p.TCI = tci != 0, tci
}

// acceptSums checks what a send leaves to do for its checksums.
func (f *Function) acceptSums(p *posted) Refusal {
	h := &p.headers
	p.Task.Sums &= offload.MakeIP | offload.MakeTransport
	if p.Task.Sums&offload.MakeIP != 0 && (h.Version != 4 || f.cfg.IPChecksumIPv4&tx == 0) {
		return NoTask
	}
	if p.Task.Sums&offload.MakeTransport != 0 && (h.Data == 0 || h.Data > inHead || f.transportKey(h.Version)&tx == 0) {
		return NoTask
	}
	return 0
}

// acceptLarge checks a large send (WinOF 5.50, 4.6.4).
func (f *Function) acceptLarge(p *posted) Refusal {
	if p.Task.Kind.InTunnel() {
		return f.acceptTunnel(p)
	}
	h, c := &p.headers, &f.cfg
	size := h.End - h.Data
	switch {
	case !f.offersLarge(p):
		return NoTask
	case h.Data > offload.MaxHeaders-eth.VLANLen:
		return Options
	case h.Data-eth.VLANLen*int(h.Tags)+int(p.Task.Segment) > c.JumboPacket:
		return Long
	case len(p.Frame) > c.lso()+eth.EthernetLen+eth.VLANLen*int(h.Tags):
		return Long
	case h.Protocol == eth.ProtocolTCP && h.Data-h.Transport > eth.TCPLen && c.LSOTcpOptions == 0:
		return Options
	case h.Options && (c.LSOIpOptions == 0 || h.Version == 6):
		return Options
	case (size+int(p.Task.Segment)-1)/int(p.Task.Segment) < c.LSOMinSegment:
		return FewSegments
	}
	p.Task.Sums = offload.MakeTransport
	return 0
}

// offersLarge reports whether the function takes large sends of this kind.
func (f *Function) offersLarge(p *posted) bool {
	h, c := &p.headers, &f.cfg
	if h.Data == 0 || p.Task.Segment == 0 || c.lso() == 0 {
		return false
	}
	switch p.Task.Kind {
	case offload.TCPv4:
		return h.Version == 4 && h.Protocol == eth.ProtocolTCP && (p.V1 && c.LsoV1IPv4 != 0 || !p.V1 && c.LsoV2IPv4 != 0)
	case offload.TCPv6:
		return h.Version == 6 && h.Protocol == eth.ProtocolTCP && !p.V1 && c.LsoV2IPv6 != 0
	case offload.UDP: // by the same keys: the manuals have none of their own
		return h.Protocol == eth.ProtocolUDP && !p.V1 && c.Host.Datagrams &&
			(h.Version == 4 && c.LsoV2IPv4 != 0 || h.Version == 6 && c.LsoV2IPv6 != 0)
	}
	return false
}
