package transport

import (
	"errors"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/wire/ib"
)

// gatherMost is the maximum number of pieces that one call writes.
const gatherMost = 256

// gather collects payload for memory where a call costs more than handling a packet (memory.Gathering). It
// is written at the latest when Receive ends, and at the end of every message whose requester waits: messages become visible in
// order, and the last bytes of each after all others, as WriteAll writes pieces in order. To the queue pairs it is a copy in
// progress.
type gather struct {
	pieces []memory.Piece
	owners []memory.Gathering
	lies   []*memory.Region // where each piece goes
	ops    []copyOp
	tail   bool // the last piece must be written by itself, after the others
	full   bool // write before the next packet
}

// tailLength is how many bytes at the end of a message are written last.
const tailLength = 8

// ending says what of a message a payload ends.
type ending uint8

const (
	inMessage   ending = iota // nothing
	endsMessage               // a message that requests no ACK, so that its requester sends more
	endsAll                   // any other message
)

// endingOf returns the ending of the payload of a request packet.
func endingOf(op ib.Opcode, asks bool) ending {
	switch {
	case !op.Ends():
		return inMessage
	case op.IsWrite() && !op.HasImm() && !asks:
		return endsMessage
	}
	return endsAll
}

// gatherAt adds payload for address addr of r and returns the number of copies that it counts as. 0: write
// it directly, because there is nothing to combine it with.
func (q *QP) gatherAt(r *memory.Region, addr uint64, data []byte, in ending, op copyOp) int {
	g := &q.eng.gather
	if in == endsAll && len(g.pieces) == 0 {
		return 0
	}
	addr, op.q = r.OwnerAddr(addr), q
	n := 1
	if in != inMessage && len(data) > tailLength {
		body := len(data) - tailLength
		g.add(r, addr, data[:body], op)
		addr, data, n = addr+uint64(body), data[body:], 2
	}
	g.add(r, addr, data, op)
	g.tail = in == endsAll
	g.full = g.tail || len(g.pieces) >= gatherMost
	q.copying += int32(n)
	return n
}

func (g *gather) add(r *memory.Region, addr uint64, data []byte, op copyOp) {
	g.pieces = append(g.pieces, memory.Piece{Addr: addr, Data: data})
	g.owners = append(g.owners, r.Gathers())
	g.lies = append(g.lies, r)
	g.ops = append(g.ops, op)
}

// gatherIn adds payload for scattered memory, see gatherAt.
func (q *QP) gatherIn(b *buffers, off uint64, data []byte, last bool, op copyOp) (n int, err error) {
	if !b.gathers || len(data) == 0 || last && len(q.eng.gather.pieces) == 0 {
		return 0, nil
	}
	for len(data) > 0 {
		b.seek(off)
		if int(b.at) >= len(b.sges) {
			return n, memory.ErrBounds
		}
		s, r := &b.sges[b.at], b.region(b.at)
		if r.Dead() {
			return n, memory.ErrGone
		}
		in := off - b.start
		k := min(uint64(len(data)), uint64(s.Length)-in)
		where := inMessage
		if last && k == uint64(len(data)) {
			where = endsAll
		}
		n += q.gatherAt(r, s.Addr+in, data[:k], where, op)
		data, off = data[k:], off+k
	}
	return n, nil
}

// writeGathered writes what was gathered and reports the ends to the queue pairs.
func (e *Engine) writeGathered() {
	g := &e.gather
	if len(g.pieces) == 0 {
		return
	}
	for i := 0; i < len(g.pieces); {
		i = e.writeRun(i)
	}
	clear(g.pieces)
	clear(g.owners)
	clear(g.lies)
	clear(g.ops)
	g.pieces, g.owners, g.lies, g.ops = g.pieces[:0], g.owners[:0], g.lies[:0], g.ops[:0]
	g.tail, g.full = false, false
}

// writeRun writes as many pieces from i on as one call accepts, and returns the index after them. If a
// piece fails, the later ones of the same queue pair fail with it.
func (e *Engine) writeRun(i int) int {
	g := &e.gather
	if err := g.ops[i].err; err != nil {
		e.copyEnded(&g.ops[i], &CopyResult{Err: err})
		return i + 1
	}
	end := i + 1
	for end < len(g.pieces) && g.owners[end] == g.owners[i] && g.ops[end].err == nil && !(g.tail && end == len(g.pieces)-1) {
		end++
	}
	n, err := g.owners[i].WriteAll(g.pieces[i:end])
	if errors.Is(err, memory.ErrBlock) {
		for k := i + n; k < end; k++ {
			e.postpone(k, g.tail && k == len(g.pieces)-1)
		}
	} else if i+n < end {
		for k := i + n; k < len(g.ops); k++ {
			if g.ops[k].q == g.ops[i+n].q {
				g.ops[k].err = err
			}
		}
	}
	for k := i; k < i+n; k++ {
		e.copyEnded(&g.ops[k], &CopyResult{})
	}
	if errors.Is(err, memory.ErrBlock) {
		return end
	}
	return i + n
}

// postpone makes piece k a copy that ends later, because its memory turned out not to be reachable within the
// call.
func (e *Engine) postpone(k int, last bool) {
	g := &e.gather
	op, p := g.ops[k], &g.pieces[k]
	op.q.copying-- // it counts again as the copy
	op.owned = true
	buf := e.small(len(p.Data))
	copy(buf, p.Data)
	e.start(op.q, g.lies[k], memory.Transfer{Kind: memory.CopyWrite, Last: last, Addr: p.Addr, Data: buf}, op)
}
