package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// maxOutstanding limits the requests that a QP has taken from its ring and not completed, and so the
	// memory that they take.
	maxOutstanding = 1024
)

// kind classifies the operations by how they are carried out.
type kind uint8

const (
	kindData kind = iota
	kindRead
	kindAtomic
	kindPlaced // atomic write and flush: the response has no payload
	kindLocal  // bind and local invalidate: no packet
)

// request is a send request from when it is taken from the ring until it is completed.
type request struct {
	next    *request
	kind    kind
	begun   bool // its first packet was sent, or it was carried out
	status  ring.Status
	piece   uint8 // packets of each of its messages on the wire, except the last; 0: it is one message
	first   ib.PSN
	packets uint32
	length  uint64
	ssn     uint32 // SSN of its last message on the wire
	copies  int32  // copies in progress
	wr      SendWR
}

// end is the PSN after the request's last.
func (r *request) end() ib.PSN { return r.first.Add(r.packets) }

// answered reports whether the responder answers with more than an ACK.
func (r *request) answered() bool { return r.kind == kindPlaced || r.fetches() }

// fetches reports whether the answer brings data.
func (r *request) fetches() bool { return r.kind == kindRead || r.kind == kindAtomic }

// requester is the sending half of a QP. PSNs satisfy una <= snd <= max: una is the oldest unacknowledged,
// snd the next to send, max the first never sent. It fills a size class of the heap, of 288 bytes.
type requester struct {
	head, tail *request // taken from the ring but not completed, in order
	cur        *request // being sent; nil: take the next one
	idx        uint32   // next packet of cur
	una, snd   ib.PSN
	max, next  ib.PSN // next: first PSN of the next request taken

	outstanding int32                  // requests between head and tail
	inPlace     int32                  // frames that were handed out before them, see inplace.go
	reads       int32                  // reads and atomics begun and not completed
	counted     int32                  // packets in win.inFlight
	wants       int32                  // packets of room that it waits for
	slots       *[MaxReadAtomic]ib.PSN // a ring of the ends of reads and atomics outstanding on the wire; nil: there has been none
	slotFirst   uint8                  // index in slots of the oldest
	slotCount   uint8

	retries, rnrRetries uint8
	timeouts            uint8 // expiries of the ACK timer since there was progress
	probes              uint8 // probes since there was progress
	sinceAck            uint8
	probing             bool // gone back to una, sending one packet at a time until there is progress
	checked             bool // looked for signs of loss since the timer was started
	timing              bool // measuring the time until timedPSN is acknowledged
	rnrWait             bool // waiting for the RNR timer
	nakSeen             bool // already went back to una for a NAK or a missing response
	stopped             bool // a failed request ends the queue
	draining            bool // SQD, with the event still to come
	unasked             bool // no packet in flight had requested an ACK when the probe was sent
	timedPSN            ib.PSN
	srq                 uint32 // XRC: the SRQ that the request being sent names
	sentAt              clock.Time
	askedAt             clock.Time // when a packet last requested an ACK
	timedAt             clock.Time
	expires             clock.Time // of the ACK timer; 0: not running
	selective           selective
	asked               ib.PSN // after the last packet that requested an ACK
	askMore             int32  // messages that are to request an ACK whatever they are
	credit              credit
	ssn                 uint32
	fetch               fetch
	outbox              outbox // on the local path
}

func (r *requester) start(psn ib.PSN) {
	r.una, r.snd, r.max, r.next, r.asked, r.selective = psn, psn, psn, psn, psn, selective{seen: psn, known: psn}
}

// occupy notes a read or an atomic that is on the wire, by its end.
func (r *requester) occupy(end ib.PSN) {
	if r.slots == nil {
		r.slots = new([MaxReadAtomic]ib.PSN)
	}
	r.slots[(int(r.slotFirst)+int(r.slotCount))%MaxReadAtomic] = end
	r.slotCount++
}

// vacate forgets the reads and atomics on the wire that are answered, with the last response before una.
func (r *requester) vacate() {
	for r.slotCount > 0 && !r.una.Before(r.slots[r.slotFirst]) {
		r.slotFirst = (r.slotFirst + 1) % MaxReadAtomic
		r.slotCount--
	}
}

// current returns the request to send next, taking one from the ring if none is in progress; nil if there
// is none that may be sent.
func (q *QP) current() *request {
	s := q.req
	if s.cur == nil && !q.take() {
		return nil
	}
	if s.cur.status != ring.Success {
		return nil // it waits for those before it to complete
	}
	return s.cur
}

// take takes the next request from the ring and makes it cur. It returns false if there is none, or none
// may begin.
func (q *QP) take() bool {
	s := q.req
	if q.holdsBack() || s.stopped || s.outstanding >= maxOutstanding || q.state != command.RTS {
		return false
	}
	ok, err := q.sq.Next(&q.eng.coming.wr)
	if err != nil {
		q.fatal(command.EventQPFatal)
		return false
	}
	return ok && q.accept()
}

// accept makes the request that was taken from the ring the last of those in progress, and cur. It returns false if that must not
// begin.
func (q *QP) accept() bool {
	s, r := q.req, q.eng.coming
	q.eng.coming = q.eng.requests.get()
	q.prepare(r)
	if s.tail == nil {
		s.head = r
	} else {
		s.tail.next = r
	}
	s.tail = r
	s.outstanding++
	if r.status != ring.Success {
		s.stopped = true
		q.retire()
		return false
	}
	s.cur, s.idx = r, 0
	return true
}

// prepare checks a request and assigns its PSNs.
func (q *QP) prepare(r *request) {
	s := q.req
	r.next, r.begun, r.copies = nil, false, 0
	r.first, r.packets, r.length = s.next, 0, 0
	r.status = q.checkRequest(r)
	if r.status != ring.Success || r.kind == kindLocal {
		return
	}
	r.packets = 1
	switch {
	case q.typ == command.UD || r.kind == kindAtomic:
	case q.typ != command.RawPacket:
		r.packets = q.packetsFor(r.length)
	case r.wr.Op == ring.OpLargeSend:
		r.packets = segmentsOf(r)
	}
	s.next = s.next.Add(r.packets)
	r.piece = q.pieceOf(r)
	s.ssn += messages(r)
	r.ssn = s.ssn
}

func (q *QP) packetsFor(length uint64) uint32 {
	if length <= uint64(q.mtu) { // most messages, without a division
		return 1
	}
	return uint32((length + uint64(q.mtu) - 1) / uint64(q.mtu))
}

// runLocal carries out a bind or local invalidate (IBA 10.6.7.2, 11.4.1.1).
func (q *QP) runLocal(r *request) {
	wr := &r.wr
	var err error
	if wr.Op == ring.OpBind {
		_, err = q.eng.mem.Bind(memory.Bind{
			PD: q.pd, QPN: q.num, Key: wr.RKey, LKey: wr.Imm,
			Addr: wr.RemoteAddr, Length: wr.CompareAdd, Access: memory.Access(wr.Access),
		})
	} else {
		err = q.eng.mem.Invalidate(q.pd, q.num, wr.Imm)
	}
	r.begun = true
	if err != nil {
		r.status = ring.MWBind
		if wr.Op == ring.OpLocalInvalidate {
			r.status = ring.LocalQPOperation
		}
		q.eng.counters.RequesterQPOperationErrors++
		q.req.stopped = true
	}
}

// retire completes the requests at the head that are done, in order. A failed request ends the QP's
// sending once those before it are complete.
func (q *QP) retire() {
	s := q.req
	if s.inPlace > 0 {
		return
	}
	done := 0
	for r := s.head; r != nil; r = s.head {
		if r.status != ring.Success {
			if r.first.After(s.una) {
				break
			}
			q.sq.Release(done)
			q.requestFailed(r.status)
			return
		}
		if !r.begun || s.una.Before(r.end()) || r.copies > 0 {
			break
		}
		q.complete(r, ring.Success)
		q.unlinkHead()
		done++
	}
	if done > 0 {
		q.sq.Release(done)
		if s.draining {
			q.checkDrained()
		}
	}
}

func (q *QP) unlinkHead() {
	s := q.req
	r := s.head
	s.head = r.next
	if s.head == nil {
		s.tail = nil
	}
	if s.cur == r {
		s.cur = r.next
		s.idx = 0
	}
	if r.begun && r.answered() {
		s.reads--
	}
	if s.outstanding--; s.outstanding == 0 {
		q.eng.dropFetch(&s.fetch)
	}
	r.wr.Inline, r.wr.Route = nil, nil
	q.eng.requests.put(r)
}

// complete writes the completion of a request if one was requested or the request failed.
func (q *QP) complete(r *request, status ring.Status) {
	if r.wr.As != nil {
		q.completeAs(r.wr.As, status)
		return
	}
	if status == ring.Success && !q.signalAll && r.wr.Flags&ring.Signaled == 0 {
		return
	}
	e := q.eng
	if status != ring.Success {
		e.counters.RequesterCQEErrors++
	}
	// In place: copying a struct just written field by field would stall on the pending stores.
	c := e.completed()
	c.CQ = q.sendCQ
	c.ID, c.Context, c.QPN, c.Timestamp = r.wr.ID, q.context, q.num, uint64(e.now)
	c.Status, c.Op = status, r.wr.Op.CQOp()
	if status == ring.Success {
		c.ByteLen = uint32(r.length)
	}
}

// dropRequests drops all requests without completing them.
func (q *QP) dropRequests() {
	s := q.req
	q.endInPlace(false)
	n := 0
	for r := s.head; r != nil; n++ {
		next := r.next
		r.wr.Inline, r.wr.Route = nil, nil
		q.eng.requests.put(r)
		r = next
	}
	s.head, s.tail, s.cur, s.outstanding, s.reads, s.slotCount = nil, nil, nil, 0, 0, 0
	q.eng.dropFetch(&s.fetch)
	q.sq.Release(n)
}
