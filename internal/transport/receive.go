package transport

import (
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// receive is a receive request in use.
type receive struct {
	wr  ring.RecvWR
	mem buffers
}

// takeReceive takes a receive request. Its result is nil if none is posted. bad means that one was taken
// that cannot be used at all. Memory that the QP may not write to fails only the messages that reach it, as
// on adapters: a message may be empty, or end before.
func (q *QP) takeReceive() (w *receive, bad bool, err error) {
	w = q.eng.receives.get()
	ok, err := q.rq.Next(&w.wr)
	if err != nil { // the queue is corrupt
		q.eng.counters.ResponderQPOperationErrors++
	}
	if !ok || err != nil {
		q.eng.receives.put(w)
		return nil, false, err
	}
	if w.wr.NumSGE > MaxSGE {
		return w, true, nil
	}
	w.mem.check(q.eng.mem, q.pd, w.wr.SGE[:w.wr.NumSGE], memory.LocalWrite)
	return w, false, nil
}
