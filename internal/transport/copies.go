package transport

import (
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

const (
	// fetchSize is how much of a message is fetched at once from memory that the engine cannot access
	// itself.
	fetchSize = 64 << 10
	// maxCopies limits a QP's copies in progress. A packet that would need one more is dropped as if the
	// network had lost it.
	maxCopies = 256
	// maxAhead is the number of buffers of fetchSize from which on nothing is read ahead.
	maxAhead = 512
)

// Copy is a copy that the engine cannot make itself because the Accessor of Region does not finish within
// the call. The driver starts it (memory.Deferred) and reports its end with Copied, in the order in which
// the copies of a region were handed out. Transfer.Data stays valid until then. No ACK, completion, packet
// or read response that depends on a copy goes out before its end.
type Copy struct {
	Region *memory.Region
	memory.Transfer
}

// CopyResult is the end of a Copy: its Tag, the original value of an atomic's operand, and the error if it
// failed.
type CopyResult = memory.Finished

// copyKind says what waits for a copy.
type copyKind uint8

const (
	copyEffect copyKind = iota // a packet's payload at the responder
	copyAnswer                 // data that a read or atomic returned
	copyFetch                  // payload to be sent
	copyAtomic                 // an atomic at the responder
)

// copyOp is a copy in progress.
type copyOp struct {
	kind       copyKind
	generation uint32
	q          *QP // nil: nobody is waiting any more
	buf        []byte
	owned      bool // buf returns to the pool
	r          *request
	effect     uint64 // serial number of the effect
	fetch      *fetchBuffer
	psn        uint32 // of the atomic
	err        error  // gathered pieces: the error of an earlier piece, with which this one fails
}

type copies struct {
	queue queue[Copy]
	ops   []copyOp
	free  []uint32
	small [][]byte // buffers of MaxMTU
	large [][]byte // buffers of fetchSize
	made  int      // how many large buffers exist
	old   [][]byte // large buffers into which the packets of the last Transmit may point
}

// Copies moves the copies to be started to out and returns their number.
func (e *Engine) Copies(out []Copy) int { return e.copies.queue.take(out) }

// start queues a copy of q for the driver.
func (e *Engine) start(q *QP, region *memory.Region, t memory.Transfer, op copyOp) {
	c := &e.copies
	var i uint32
	if n := len(c.free); n > 0 {
		i = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		i = uint32(len(c.ops))
		c.ops = append(c.ops, copyOp{})
	}
	op.q, op.buf, op.generation = q, t.Data, c.ops[i].generation+1
	c.ops[i] = op
	q.copying++
	t.Tag = uint64(op.generation)<<32 | uint64(i)
	e.bell.Ring()
	*c.queue.push() = Copy{Region: region, Transfer: t}
}

// Copied handles finished copies.
func (e *Engine) Copied(now clock.Time, done []CopyResult) {
	e.now = now
	c := &e.copies
	for i := range done {
		slot := uint32(done[i].Tag)
		if uint64(slot) >= uint64(len(c.ops)) || c.ops[slot].generation != uint32(done[i].Tag>>32) || c.ops[slot].buf == nil &&
			c.ops[slot].kind != copyAtomic {
			continue // not one of ours
		}
		op := c.ops[slot]
		c.ops[slot] = copyOp{generation: op.generation + 1}
		c.free = append(c.free, slot)
		e.copyEnded(&op, &done[i])
		if op.owned {
			c.small = append(c.small, op.buf[:MaxMTU])
		}
	}
}

func (e *Engine) copyEnded(op *copyOp, done *CopyResult) {
	q := op.q
	if op.kind == copyFetch {
		op.fetch.ended(e, done.Err)
	}
	if q == nil {
		return
	}
	q.copying--
	switch op.kind {
	case copyEffect:
		q.effectCopied(op.effect, done.Err)
	case copyAtomic:
		q.atomicCopied(op.psn, done)
	}
	if q.state == command.Err {
		// Complete what had arrived before the end, then flush the rest.
		if q.copying == 0 {
			q.startFlush()
		}
		q.activate()
		return
	}
	if op.kind == copyAnswer {
		q.answerCopied(op.r, done.Err)
	}
	q.activate()
}

// answerCopied continues with a read or atomic whose data has been placed.
func (q *QP) answerCopied(r *request, err error) {
	if r.copies--; err == nil {
		q.retire()
		return
	}
	q.eng.counters.RequesterProtectionErrors++
	if r.status == ring.Success {
		r.status = ring.LocalProtection
		q.req.stopped = true
	}
	q.retire()
}

// forget detaches all copies from q.
func (e *Engine) forget(q *QP) {
	if q.copying == 0 {
		return
	}
	for i := range e.copies.ops {
		if op := &e.copies.ops[i]; op.q == q {
			op.q, op.r = nil, nil
		}
	}
	q.copying = 0
}

// small returns a buffer for n bytes of a packet's payload.
func (e *Engine) small(n int) []byte {
	c := &e.copies
	if k := len(c.small); k > 0 {
		b := c.small[k-1]
		c.small = c.small[:k-1]
		return b[:n]
	}
	return make([]byte, n, MaxMTU)
}

// place puts data of the response to r into r's memory.
func (q *QP) place(b *buffers, off uint64, data []byte, last bool, r *request) error {
	n, err := q.gatherIn(b, off, data, last, copyOp{kind: copyAnswer, r: r})
	if r.copies += int32(n); n > 0 || err != nil {
		return err
	}
	err = b.write(off, data, last)
	if !errors.Is(err, memory.ErrBlock) {
		return err
	}
	n, err = q.deferWrite(b, off, data, last, copyOp{kind: copyAnswer, r: r})
	r.copies += int32(n)
	return err
}

// deferWrite writes data to b: directly where elements are accessible within a call, and by starting
// copies to the others.
func (q *QP) deferWrite(b *buffers, off uint64, data []byte, last bool, op copyOp) (started int, err error) {
	for len(data) > 0 {
		b.seek(off)
		if int(b.at) >= len(b.sges) {
			return started, memory.ErrBounds
		}
		s, r := &b.sges[b.at], b.region(b.at)
		in := off - b.start
		n := min(uint64(len(data)), uint64(s.Length)-in)
		err := r.Write(s.Addr+in, data[:n])
		if errors.Is(err, memory.ErrBlock) {
			q.startWrite(r, s.Addr+in, data[:n], last && n == uint64(len(data)), op)
			started++
		} else if err != nil {
			return started, err
		}
		data, off = data[n:], off+n
	}
	return started, nil
}

// deferred reports whether copies to and from r end later.
func deferred(r *memory.Region) bool { return r.Remote != nil && !r.Remote.Blocking() }

func (q *QP) startWrite(r *memory.Region, addr uint64, data []byte, last bool, op copyOp) {
	buf := q.eng.small(len(data))
	copy(buf, data)
	op.owned = true
	q.eng.start(q, r, memory.Transfer{Kind: memory.CopyWrite, Last: last, Addr: r.OwnerAddr(addr), Data: buf}, op)
}
