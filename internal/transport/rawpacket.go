package transport

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/eth"
)

// Raw packet queue pairs have no transport: each send request is a whole Ethernet frame, without FCS, and each frame that a rule
// of the port steers to the queue pair takes one receive. They do not use Receive and Transmit, which are for RDMA, but
// ReceiveRaw and TransmitRaw, which an Ethernet function of the port calls.

const (
	// rawHeadAt is where in an Out's Head the first bytes of a frame are, up to HeadRoom: all headers that are looked at on its
	// way. What is not longer is there as a whole.
	rawHeadAt = 64
	// leastFrame is the length to which shorter frames are filled up (IEEE 802.3, 4.2.3.3), without FCS.
	leastFrame = 60
)

// Wire is where raw packet queue pairs send to.
type Wire struct {
	// MAC is the port's own.
	MAC eth.MAC
	// Longest is the length of the longest frame, without FCS; 0: the port carries none.
	Longest int
	// Priority returns the priority of a frame without a tag; nil: it is 0.
	Priority func(frame []byte) uint8
}

// SetWire says where raw packet queue pairs send to from now on.
func (e *Engine) SetWire(w Wire) { e.wire, e.rawRoute.SrcMAC = w, w.MAC }

// fits reports whether a frame may be sent, by its length.
func (e *Engine) fits(n uint64) bool { return n >= eth.EthernetLen && n <= uint64(e.wire.Longest) }

// RawPending returns the priorities at which TransmitRaw has something to do. Where requests are complete when their frames have left,
// any will do.
func (e *Engine) RawPending() uint8 {
	if e.raw.waiting == 0 && len(e.inPlace.runs) > 0 {
		return ^uint8(0)
	}
	return e.raw.waiting
}

// framePriority returns the priority at which a frame leaves: that of its tag, or by the rules of the port.
func (e *Engine) framePriority(b []byte) uint8 {
	switch {
	case len(b) > tciAt && b[tciAt-2] == byte(eth.TypeVLAN>>8) && b[tciAt-1] == byte(eth.TypeVLAN&0xff):
		return b[tciAt] >> 5
	case e.wire.Priority != nil:
		return e.wire.Priority(b)
	}
	return 0
}

// tciAt is where a frame's tag has its priority.
const tciAt = 14

// TransmitRaw writes frames of a priority of raw packet queue pairs to out, and returns their number. Queue pairs take turns; one whose
// next frame is of another priority waits for the turn of that, with all behind it, so that frames of a queue pair stay in order. Payloads
// are valid until the next TransmitRaw or Transmit; by then none of those that were handed out before may be in use.
func (e *Engine) TransmitRaw(now clock.Time, priority uint8, out []frame.Out) (n int) {
	e.now = now
	e.completeSent()
	e.scratch.reset()
	e.reuseFetched()
	list := &e.raw.lists[priority]
	for turns := 2*len(out) + 64; turns > 0 && n < len(out) && list.head != nil; turns-- {
		q := list.head
		e.raw.remove(q)
		k, more := q.sendRaw(now, out[n:])
		if n += k; more {
			q.activate()
		}
		if e.scratch.full() || more && k == 0 && q.priority == priority {
			break
		}
	}
	e.counters.RawSent += uint64(n)
	return n
}

// sendRaw makes frames of requests: first those whose bytes are at hand (inplace.go), then others. more means that q wants another
// turn.
func (q *QP) sendRaw(now clock.Time, out []frame.Out) (n int, more bool) {
	if q.state != command.RTS || q.throttled(now) {
		return 0, false
	}
	limit, bytes, at := min(len(out), q.eng.cfg.MaxBurst), q.allowed(now), q.priority
	if q.req.head == nil {
		n = q.sendInPlace(out[:limit], &bytes)
		more = q.priority != at
	}
	if q.req.head != nil && !more {
		k, again := q.sendRequests(out[n:limit], &bytes)
		n, more = n+k, again
	}
	if b := q.bucketOf(); b != nil && n > 0 {
		b.Sent(now, framedBytes(out[:n]))
	}
	return n, more || n > 0 && (n == limit || bytes <= 0)
}

// fcsLen is the length of a frame's check sequence.
const fcsLen = 4

// framedBytes returns how many bytes frames have on a wire.
func framedBytes(out []frame.Out) (n int) {
	for i := range out {
		n += out[i].Len() + fcsLen
	}
	return n
}

// sendRequests makes frames of requests that are kept until they are complete, until they have so many bytes.
func (q *QP) sendRequests(out []frame.Out, bytes *int) (n int, more bool) {
	s := q.req
	for n < len(out) && *bytes > 0 {
		r := q.current()
		if r == nil {
			break
		}
		moved, ok := q.moves(r)
		if moved {
			more = true
			break
		}
		if !ok || !q.rawRequest(r, &out[n]) {
			more = r.status == ring.Success && !q.eng.scratch.has(uint64(q.eng.wire.Longest))
			break
		}
		r.begun = true
		s.snd = s.snd.Next()
		s.idx++
		q.sent(r)
		*bytes -= out[n].Len() + fcsLen
		n++
	}
	if n > 0 {
		q.departed()
	}
	return n, more
}

// moves moves q to the priority of a request's frame, or of the frames of a large send, and reports whether it was at another. ok is false
// if the frame is not at hand yet, or cannot be read.
func (q *QP) moves(r *request) (moved, ok bool) {
	head := r.wr.Inline // the headers of a large send
	if r.wr.Op != ring.OpLargeSend {
		if head, ok = q.payload(r, 0, r.length); !ok {
			return false, false
		}
	}
	p := q.eng.framePriority(head)
	moved = p != q.priority
	q.priority = p
	return moved, true
}

// rawRequest makes the frame of a request, or the next of them. It returns false if its data is not at hand yet, or cannot be read, or
// there is no room for it.
func (q *QP) rawRequest(r *request, o *frame.Out) bool {
	if r.wr.Op == ring.OpLargeSend {
		return q.segment(r, o)
	}
	payload, ok := q.payload(r, 0, r.length)
	if ok && r.wr.Flags&ring.Checksums != 0 {
		payload = q.eng.summed(payload)
		ok = payload != nil
	}
	if ok {
		q.rawFrame(o, payload)
	}
	return ok
}

// summed returns a frame with the checksums of IPv4, TCP and UDP, as far as it has places for them, in scratch: its program may
// still write to the memory where it is. nil: there is no room.
func (e *Engine) summed(b []byte) []byte {
	if !e.scratch.has(uint64(len(b))) {
		return nil
	}
	f := e.scratch.take(len(b))
	copy(f, b)
	var h eth.Headers
	if h.Parse(f) {
		offload.Make(offload.MakeIP|offload.MakeTransport, &h, f)
	}
	return f
}

// rawFrame makes a frame of the bytes of a request.
func (q *QP) rawFrame(o *frame.Out, b []byte) {
	o.Reset(q.rawRoute())
	n := copy(o.Head[rawHeadAt:frame.HeadRoom], b)
	end := rawHeadAt + n
	if n < leastFrame {
		clear(o.Head[end : rawHeadAt+leastFrame])
		end = rawHeadAt + leastFrame
	}
	o.HeadStart, o.HeadEnd, o.Payload = rawHeadAt, uint16(end), b[n:]
}

// rawRoute returns the route of the frames of q.
func (q *QP) rawRoute() *frame.Route {
	x := q.echoOf()
	if x == nil {
		return &q.eng.rawRoute
	}
	x.self.SrcMAC = q.eng.rawRoute.SrcMAC
	return &x.self
}

// Sent reports whether a frame with this route is of a raw packet QP that is not to receive it.
func (q *QP) Sent(r *frame.Route) bool { return q.echoOf() != nil && r == &q.extra.echo.self }

// SetFrameFlags changes the flags in mask.
func (q *QP) SetFrameFlags(flags, mask uint32) { q.frames = q.frames&^uint8(mask) | uint8(flags&mask) }

// DelaysDrop reports whether frames for a raw packet QP wait that find no receive.
func (q *QP) DelaysDrop() bool { return uint32(q.frames)&command.QPDelayDrop != 0 }

// Starves reports whether a QP receives, and has no receive posted.
func (q *QP) Starves() bool { return q.state >= command.RTR && q.state != command.Err && starves(q.rq) }

// received changes a frame as the flags of q say. The result is valid until the next call; tag is what was taken off.
func (q *QP) received(head, rest []byte) (whole []byte, tag uint32) {
	const macs = eth.EthernetLen - 2
	b, fcs := q.eng.rawChanged[:0], uint32(0)
	if uint32(q.frames)&command.QPScatterFCS != 0 {
		fcs = crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, rest)
	}
	if uint32(q.frames)&command.QPStripVLAN != 0 && len(head) >= eth.EthernetLen+eth.VLANLen &&
		eth.EtherType(binary.BigEndian.Uint16(head[macs:])) == eth.TypeVLAN {
		tag = uint32(binary.BigEndian.Uint16(head[macs+2:]))
		b = append(b, head[:macs]...)
		head = head[macs+eth.VLANLen:]
	}
	b = append(append(b, head...), rest...)
	if uint32(q.frames)&command.QPScatterFCS != 0 {
		b = binary.LittleEndian.AppendUint32(b, fcs)
	}
	q.eng.rawChanged = b
	return b, tag
}

// Arrival is what is known of a received frame.
type Arrival struct {
	Good bool   // its checksums were found to be right
	Hash uint32 // by which it was spread; 0: it was not
}

// ReceiveRaw gives a frame, which may be in two parts, to a raw packet queue pair. One that finds no receive is lost; one that its
// receive has no room for ends that receive with an error, and not the queue pair: anybody can send a frame. FlushRaw makes what
// was given complete; until then the parts must stay as they are. What is known of it goes into its completion. It reports
// whether the queue pair has got the frame.
func (e *Engine) ReceiveRaw(now clock.Time, q *QP, head, rest []byte, a Arrival) bool {
	e.now = now
	c := &e.counters
	if q.typ != command.RawPacket || q.state < command.RTR || q.state == command.Err {
		c.WrongState++
		return false
	}
	tag := uint32(0)
	if uint32(q.frames)&(command.QPStripVLAN|command.QPScatterFCS) != 0 {
		head, tag = q.received(head, rest)
		rest = nil
	}
	n := len(head) + len(rest)
	w, fits := q.takeFor(n, &c.RawDiscarded)
	if w != nil {
		c.RawReceived++
	}
	if !fits {
		return false
	}
	flags := ring.CQFlags(0)
	if a.Good {
		flags = ring.GoodChecksums
	}
	if q.receiveInPlace(w, head, rest, flags, tag, a.Hash) {
		return true
	}
	err := q.placeIn(&w.mem, 0, head, len(rest) == 0)
	if err == nil && len(rest) > 0 {
		err = q.placeIn(&w.mem, uint64(len(head)), rest, true)
	}
	if err != nil {
		c.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
	} else {
		q.finishReceive(&ring.CQE{Op: ring.CQRecv, ByteLen: uint32(n), Imm: tag, SrcQP: a.Hash, Flags: flags})
	}
	q.settleEffect(0, 0, false, false)
	if e.gather.full {
		e.writeGathered()
	}
	return true
}

// FlushRaw ends a batch of ReceiveRaw.
func (e *Engine) FlushRaw() { e.writeGathered() }
