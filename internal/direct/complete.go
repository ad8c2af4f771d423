package direct

import (
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/ring"
)

// signaled reports whether a request completes when it succeeds.
func (i *Initiator) signaled(wr *ring.SendWR) bool {
	return wr.Flags&ring.Signaled != 0 || i.terms.Flags&SignalAll != 0
}

// expect prefetches the slots of the completions before the request is carried out: since their last use
// the payload of as many messages as the queue has entries has passed through the caches, and the
// responder polls its slots.
func (i *Initiator) expect(wr *ring.SendWR) {
	if i.work == nil || i.lease == 0 {
		return // nothing is open yet
	}
	if i.signaled(wr) {
		i.sendCQ.Expect()
	}
	switch wr.Op {
	case ring.OpSend, ring.OpSendImm, ring.OpWriteImm:
		i.recvCQ.Expect()
	}
}

// claim claims the slot for the completion of a request.
func (i *Initiator) claim(wr *ring.SendWR) (slot uint32, why reason) {
	if !i.signaled(wr) {
		return 0, noReason
	}
	slot, ok := i.sendCQ.Claim(i.env.Owner)
	if !ok {
		return 0, noCompletion
	}
	return slot, noReason
}

// complete counts and completes a finished request, unless there is no room.
func (i *Initiator) complete(wr *ring.SendWR, op int, n uint64) reason {
	slot, why := i.claim(wr)
	if why == noReason {
		i.finish(wr, slot, op, n)
	}
	return why
}

func (i *Initiator) finish(wr *ring.SendWR, slot uint32, op int, n uint64) {
	i.tally(op, n)
	if !i.signaled(wr) {
		return
	}
	i.fillSend(wr, slot, n, i.now(SendTimes))
}

// now returns the time for completions in queues with one of these flags, 0 if no such queue wants it.
func (i *Initiator) now(of uint32) uint64 {
	if i.terms.Flags&of == 0 {
		return 0
	}
	return i.env.Now()
}

func (i *Initiator) fillSend(wr *ring.SendWR, slot uint32, n, now uint64) {
	c := &i.terms
	e := ring.CQE{
		ID: wr.ID, Context: c.OwnContext, QPN: c.OwnQPN, ByteLen: uint32(n), Op: wr.Op.CQOp(), Timestamp: now,
	}
	if i.sendCQ.Fill(slot, i.env.Owner, &e, c.SendStamp) {
		i.raise(i.sendCQ, slot, &e, c.Flags&SendChannel != 0, RaiseSend)
	}
}

// raise raises the event that is due now that a slot was filled with e, or, if e is nil, given up; or has the
// driver raise it if it comes through a channel, to which only the driver can write.
func (i *Initiator) raise(cq *ring.Shared, slot uint32, e *ring.CQE, channel bool, bit uint32) {
	switch {
	case channel && cq.Due(slot, e):
		atomic.OrUint32(&i.dir.Raised, bit)
		i.rings = true
	case !channel && cq.Raise(slot, e):
		i.wake[i.wakes] = cq.SequenceWord()
		i.wakes++
	}
}

func (i *Initiator) tally(op int, n uint64) {
	t := &i.count[op]
	t.Messages++
	t.Packets += max((n+1<<i.shift-1)>>i.shift, 1)
	t.Bytes += n
	// Nobody else writes them, and what the driver
	// reads outside an operation is ordered by Op.
	i.dir.Messages[op], i.dir.Packets[op], i.dir.Bytes[op] = t.Messages, t.Packets, t.Bytes
}
