package transport

import (
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/tagmatch"
	"github.com/softvpi/softvpi/wire/ib"
)

// A QP whose shared receive queue matches tags looks at what each message begins with (package tagmatch): one that matches a
// tagged buffer goes there without its headers, a rendezvous has its data read there, and all others take a receive as usual.
// Such a QP goes by packets only.

// tagging is what such a QP has beyond others.
type tagging struct {
	list  *tagmatch.List
	moves rendezvous
	// The completion of the message in progress.
	op    ring.CQOp
	flags ring.CQFlags
	tag   uint64
	app   uint32
}

// tagStep is what a message begins with, for takeSend.
type tagStep uint8

const (
	tagGoes    tagStep = iota // the data goes to the receive
	tagDone                   // nothing more is to be done
	tagRefused                // refused, or to be sent again
)

// beginTagged finds out where a message goes. rest is what of the first packet's data goes there.
func (q *QP) beginTagged(op ib.Opcode, data []byte, solicited bool) (rest []byte, step tagStep) {
	t := q.extra.tags
	kind, h, where := tagmatch.Parse(data, op.IsOnly())
	t.op, t.flags, t.tag, t.app = ring.CQNoTag, 0, 0, 0
	tagged := kind == tagmatch.Eager || kind == tagmatch.Rendezvous
	if tagged {
		t.op = ring.CQTagRecv
		if kind == tagmatch.Eager || t.moves.hasRoom() {
			if e := t.list.Match(h.Tag()); e != nil {
				return q.matched(op, e, h, where, data, solicited)
			}
		}
	}
	if !q.beginReceive() {
		return nil, tagRefused
	}
	if tagged {
		t.list.Unexpected()
	}
	return data, tagGoes
}

// matched handles a message that matches a tagged buffer, which is no longer in the list.
func (q *QP) matched(op ib.Opcode, e *tagmatch.Entry, h tagmatch.Header, where tagmatch.Where, data []byte, solicited bool) (
	rest []byte, step tagStep) {
	s, t := q.resp, q.extra.tags
	if where != nil && uint64(where.Length()) <= e.Room() {
		q.reportMatch(e.ID, h, solicited)
		t.moves.add(e, data, Completion{CQ: q.recvCQ, CQE: ring.CQE{ID: e.ID, Op: ring.CQTagRecv, Flags: ring.ReceiveSide,
			ByteLen: where.Length()}})
		s.msn = (s.msn + 1) & ib.PSNMask
		q.activate()
		return nil, tagDone
	}
	w := q.eng.receives.get()
	w.wr.ID, w.wr.NumSGE = e.ID, uint32(e.NumSGE)
	copy(w.wr.SGE[:], e.SGE[:e.NumSGE])
	w.mem.check(q.eng.mem, q.pd, w.wr.SGE[:w.wr.NumSGE], memory.LocalWrite)
	s.recv, s.off = w, 0
	t.tag, t.app, t.flags = h.Tag(), h.App(), ring.TagMatched
	if where != nil {
		return nil, q.incomplete(data, solicited)
	}
	if op.IsOnly() {
		t.flags |= ring.TagData
	} else {
		q.reportMatch(e.ID, h, false)
		t.tag, t.app, t.flags = 0, 0, ring.TagData
	}
	return data[tagmatch.HeaderLen:], tagGoes
}

// reportMatch tells of a match whose data comes later.
func (q *QP) reportMatch(id uint64, h tagmatch.Header, solicited bool) {
	c := Completion{CQ: q.recvCQ, CQE: ring.CQE{ID: id, Context: h.Tag(), QPN: q.num, SrcQP: h.App(), Op: ring.CQTagRecv,
		Flags: ring.TagMatched | ring.ReceiveSide, PKeyIndex: uint16(q.attr.PKeyIndex), SL: q.attr.Route.SL, Timestamp: uint64(q.eng.now)}}
	if solicited {
		c.Flags |= ring.IsSolicited
	}
	q.deliver(c)
}

// incomplete ends a rendezvous whose data has no room in the buffer: the buffer gets the headers, and the program has to see to
// the rest.
func (q *QP) incomplete(data []byte, solicited bool) tagStep {
	w := q.resp.recv
	n := min(uint64(len(data)), tagmatch.HeaderLen+tagmatch.RendezvousLen, w.mem.length)
	if err := q.placeIn(&w.mem, 0, data[:n], true); err != nil {
		q.eng.counters.ResponderProtectionErrors++
		q.endReceive(ring.LocalProtection)
		q.refuse(ib.NAKRemoteOperational)
		return tagRefused
	}
	q.messageDone(&ring.CQE{Op: ring.CQRecv, Status: ring.TagIncomplete, ByteLen: uint32(n)}, solicited)
	return tagDone
}

// stamp makes the completion of a message one with a tag.
func (t *tagging) stamp(c *ring.CQE) {
	if c.Op != ring.CQRecv {
		return
	}
	c.Op = t.op
	if c.Context, c.SrcQP = t.tag, t.app; c.Status == ring.Success || c.Status == ring.TagIncomplete {
		c.Flags |= t.flags
	}
}

// maxRendezvous is how many rendezvous of a QP may have their data read at a time; further ones are unexpected.
const maxRendezvous = 256

// rendezvous is the send queue of such a QP: what its program posts, and before it, what the QP itself does for rendezvous.
type rendezvous struct {
	SendQueue
	waiting queue[*transfer] // not taken completely
	taken   queue[origin]    // of the requests taken and not released
	spare   pool[transfer]
	busy    int // transfers that are waiting or taken
}

// transfer reads the data of a rendezvous, and then tells its sender.
type transfer struct {
	entry     tagmatch.Entry
	head      [tagmatch.HeaderLen + tagmatch.RendezvousLen]byte // of the message, then of the answer
	readTaken bool
	as        Completion
}

// origin says whose request was taken: nil is the program's.
type origin struct {
	t    *transfer
	last bool
}

// untold is the completion of the answer: none.
var untold = new(Completion)

func (r *rendezvous) hasRoom() bool { return r.busy < maxRendezvous }

// add has the data of a rendezvous read that began with data, whose completion is to be as.
func (r *rendezvous) add(e *tagmatch.Entry, data []byte, as Completion) {
	t := r.spare.get()
	t.entry, t.readTaken, t.as = *e, false, as
	copy(t.head[:], data)
	*r.waiting.push() = t
	r.busy++
}

// Next implements SendQueue.
func (r *rendezvous) Next(wr *SendWR) (bool, error) {
	if r.waiting.len() == 0 {
		ok, err := r.SendQueue.Next(wr)
		if ok {
			r.taken.push()
		}
		return ok, err
	}
	t := r.waiting.items[r.waiting.head]
	*r.taken.push() = origin{t, t.readTaken}
	wr.Work, wr.Route = ring.Work{}, nil
	if t.readTaken {
		var done [1]*transfer
		r.waiting.take(done[:])
		t.head[0] = uint8(tagmatch.Fin)
		wr.Op, wr.Flags, wr.Inline, wr.As = ring.OpSend, ring.Fence|ring.Inline, t.head[:], untold
		wr.Elements()
		return true, nil
	}
	t.readTaken = true
	where := tagmatch.Where(t.head[tagmatch.HeaderLen:])
	wr.Op, wr.RemoteAddr, wr.RKey, wr.As = ring.OpRead, where.Addr(), where.RKey(), &t.as
	left := where.Length()
	for rest := left; rest > 0; wr.NumSGE++ {
		rest -= min(t.entry.SGE[wr.NumSGE].Length, rest)
	}
	for i, sges := 0, wr.Elements(); i < len(sges); i++ {
		sges[i] = t.entry.SGE[i]
		sges[i].Length = min(sges[i].Length, left)
		left -= sges[i].Length
	}
	return true, nil
}

// Pending implements SendQueue.
func (r *rendezvous) Pending() (int, error) {
	n, err := r.SendQueue.Pending()
	for i := r.waiting.head; i < len(r.waiting.items); i++ {
		if n += 2; r.waiting.items[i].readTaken {
			n--
		}
	}
	return n, err
}

// Release implements SendQueue.
func (r *rendezvous) Release(n int) {
	programs := 0
	for range n {
		var o [1]origin
		switch r.taken.take(o[:]); {
		case o[0].t == nil:
			programs++
		case o[0].last:
			r.busy--
			r.spare.put(o[0].t)
		}
	}
	r.SendQueue.Release(programs)
}

// completeAs ends a request that completes as something else.
func (q *QP) completeAs(as *Completion, status ring.Status) {
	if as != untold {
		*q.eng.completed() = q.ended(as, status)
	}
}

// ended returns the completion of such a request.
func (q *QP) ended(as *Completion, status ring.Status) Completion {
	c := *as
	c.QPN, c.Status, c.Timestamp = q.num, status, uint64(q.eng.now)
	if c.Flags |= ring.TagData; status != ring.Success {
		c.Flags, c.ByteLen = ring.ReceiveSide, 0
	}
	return c
}
