package service

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/wait"
	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// place is the memory of a datagram: a GRH and the largest payload, cache-line aligned.
	place = ib.GRHLen + 4096 + 24
	// maxWays limits the address handles that are kept.
	maxWays = 4096
	batch   = batchLen
)

// queuePair is a queue pair of an adapter.
type queuePair struct {
	dev     *verbs.Device
	depth   Buffers
	receive func([]ipoib.Arrival)
	ctx     context.Context
	end     context.CancelFunc
	ended   sync.WaitGroup

	pd             *verbs.PD
	sendCQ, recvCQ *verbs.CQ
	qp             *verbs.QP
	out, in        *verbs.MR

	mu      sync.Mutex
	started bool
	starts  uint32 // how often it was started: the high half of request IDs
	posted  uint32 // number of datagrams
	done    uint32 // those whose places are free again
	pending []verbs.SendWR
	places  []verbs.SGE // of the pending ones
	ways    map[ipoib.Path]*verbs.AH
	last    *verbs.AH // that of the previous path
	path    ipoib.Path
	old     []*verbs.AH // that requests in progress may refer to
	oldTill uint32

	pkeyIndex  int // of the last start, as is qkey
	qkey       uint32
	broken     bool   // a request has failed: the queue pair is in the error state
	full       uint64 // datagrams that found no room
	recoveries uint64

	receiving atomic.Int32 // receives that have not completed
}

func (q *queuePair) open() (err error) {
	if q.pd, err = q.dev.AllocPD(); err != nil {
		return err
	}
	if q.sendCQ, err = q.dev.CreateCQ(q.depth.Send); err != nil {
		return err
	}
	if q.recvCQ, err = q.dev.CreateCQ(q.depth.Receive); err != nil {
		return err
	}
	if q.out, err = q.pd.Allocate(q.depth.Send*place, 0); err != nil {
		return err
	}
	if q.in, err = q.pd.Allocate(q.depth.Receive*place, verbs.LocalWrite); err != nil {
		return err
	}
	q.pending, q.places = make([]verbs.SendWR, 0, batch), make([]verbs.SGE, batch)
	q.qp, err = q.pd.CreateQP(verbs.QPConfig{Type: verbs.UD, SendCQ: q.sendCQ, RecvCQ: q.recvCQ, SendDepth: q.depth.Send,
		RecvDepth: q.depth.Receive})
	return err
}

// release frees what open has created.
func (q *queuePair) release() {
	if q.qp != nil {
		_ = q.qp.Close()
	}
	for _, ah := range q.ways {
		_ = ah.Close()
	}
	for _, ah := range q.old {
		_ = ah.Close()
	}
	for _, mr := range []*verbs.MR{q.in, q.out} {
		if mr != nil {
			_ = mr.Deregister()
		}
	}
	for _, cq := range []*verbs.CQ{q.sendCQ, q.recvCQ} {
		if cq != nil {
			_ = cq.Close()
		}
	}
	if q.pd != nil {
		_ = q.pd.Close()
	}
}

// Close implements QueuePair.
func (q *queuePair) Close() error {
	q.end()
	q.ended.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release()
	q.started = false
	return nil
}

// Number implements QueuePair.
func (q *queuePair) Number() ib.QPN { return ib.QPN(q.qp.Number()) }

// Start implements QueuePair.
func (q *queuePair) Start(pkeyIndex int, qkey uint32) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pkeyIndex, q.qkey = pkeyIndex, qkey
	return q.start()
}

// recover restarts a queue pair that has entered the error state since its start number n (IBA 10.3.1:
// only a reset leads out of it).
func (q *queuePair) recover(n uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.started || q.starts != n {
		return
	}
	if q.start() == nil {
		q.recoveries++
	}
}

func (q *queuePair) start() error {
	q.started = false
	if err := q.drain(); err != nil {
		return err
	}
	q.broken = false
	q.starts++
	q.posted, q.done, q.pending = 0, 0, q.pending[:0]
	if err := q.qp.Modify(verbs.QPAttr{State: verbs.StateReset}, verbs.MaskState); err != nil {
		return err
	}
	q.forget(true)
	err := q.qp.Modify(verbs.QPAttr{State: verbs.StateInit, PKeyIndex: q.pkeyIndex, QKey: q.qkey},
		verbs.MaskState|verbs.MaskPKeyIndex|verbs.MaskQKey)
	if err != nil {
		return err
	}
	for n := range q.depth.Receive {
		if err := q.post(n); err != nil {
			return err
		}
	}
	if err := q.qp.Modify(verbs.QPAttr{State: verbs.StateRTR}, verbs.MaskState); err != nil {
		return err
	}
	if err := q.qp.Modify(verbs.QPAttr{State: verbs.StateRTS}, verbs.MaskState|verbs.MaskSQPSN); err != nil {
		return err
	}
	q.started = true
	return nil
}

// drainTime is how long flushing the requests may take.
const drainTime = 10 * time.Second

// drain makes all requests in progress complete. A reset would end them too and free their places in the
// queues, but would leave their completions behind: for buffers that start posts again, and that must not
// be posted, or read, twice.
func (q *queuePair) drain() error {
	if q.starts == 0 {
		return nil
	}
	q.flush()
	if err := q.qp.Flush(); err != nil {
		return err
	}
	var wcs [batch]verbs.WC
	pause := wait.Ask(wait.Settled)
	for late := time.Now().Add(drainTime); ; {
		n, err := q.recvCQ.Poll(wcs[:])
		if err != nil {
			return err
		}
		q.receiving.Add(int32(-n))
		q.reap()
		switch {
		case n > 0:
		case q.receiving.Load() == 0 && q.posted == q.done:
			return nil
		case time.Now().After(late):
			return fmt.Errorf("%d receives and %d sends have not ended", q.receiving.Load(), q.posted-q.done)
		default:
			time.Sleep(pause.Next())
		}
	}
}

// Attach implements QueuePair.
func (q *queuePair) Attach(mgid ib.GID, _ ib.LID) error {
	return q.qp.JoinMulticast(netip.AddrFrom16(mgid))
}

// Detach implements QueuePair. A queue pair that is gone with its adapter, which programs can disable, is in no group any more.
func (q *queuePair) Detach(mgid ib.GID, _ ib.LID) error {
	if err := q.qp.LeaveMulticast(netip.AddrFrom16(mgid)); !errors.Is(err, verbs.ErrRemoved) {
		return err
	}
	return nil
}

// Send implements QueuePair.
func (q *queuePair) Send(to *ipoib.Destination, header, head, body []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := len(header) + len(head) + len(body)
	if !q.started || size == 0 || size > place {
		return
	}
	ah := q.way(&to.Path)
	if ah == nil || !q.room() {
		q.full++
		return
	}
	at := int(q.posted%uint32(q.depth.Send)) * place
	b := q.out.Bytes()[at:]
	b = b[copy(b, header):]
	b = b[copy(b, head):]
	copy(b, body)
	n := len(q.pending)
	q.places[n] = q.out.SGE(at, size)
	q.posted++
	q.pending = append(q.pending, verbs.SendWR{ID: q.id(q.posted), Op: verbs.OpSend, SGE: q.places[n : n+1], AH: ah,
		RemoteQPN: uint32(to.QPN), RemoteQKey: to.QKey})
	if len(q.pending) == batch {
		q.flush()
	}
}

// Tally implements QueuePair.
func (q *queuePair) Tally() Tally {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reap()
	return Tally{Full: q.full, Queued: uint64(q.posted - q.done), Recoveries: q.recoveries}
}

// room ensures that there is a place for a datagram, and reports whether there is one.
func (q *queuePair) room() bool {
	if q.posted-q.done < uint32(q.depth.Send) {
		return true
	}
	q.flush()
	q.reap()
	return q.posted-q.done < uint32(q.depth.Send)
}

// reap takes the completions of sent datagrams. Each stands for all before it.
func (q *queuePair) reap() {
	var wcs [batch]verbs.WC
	for {
		n, err := q.sendCQ.Poll(wcs[:])
		for i := range wcs[:n] {
			id := wcs[i].ID
			if uint32(id>>32) != q.starts {
				continue
			}
			q.done = uint32(id)
			q.broken = q.broken || wcs[i].Status != verbs.Success
		}
		if n == 0 || err != nil {
			return
		}
	}
}

// Flush implements QueuePair.
func (q *queuePair) Flush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flush()
	if q.posted-q.done > uint32(q.depth.Send/2) {
		q.reap()
	}
	if q.broken && q.started && q.start() == nil {
		q.recoveries++
	}
}

func (q *queuePair) flush() {
	if len(q.pending) == 0 {
		return
	}
	q.pending[len(q.pending)-1].Flags |= verbs.Signaled
	n, err := q.qp.PostSends(q.pending)
	if err != nil {
		q.posted -= uint32(len(q.pending) - n) // they are lost
		q.broken = true
	}
	q.pending = q.pending[:0]
	q.forget(false)
}

// way returns the address handle for a path, or nil if none is available.
func (q *queuePair) way(p *ipoib.Path) *verbs.AH {
	if q.last != nil && q.path == *p {
		return q.last
	}
	if ah := q.ways[*p]; ah != nil {
		q.last, q.path = ah, *p
		return ah
	}
	if len(q.ways) >= maxWays {
		if len(q.old) > 0 {
			return nil
		}
		for _, ah := range q.ways {
			q.old = append(q.old, ah)
		}
		clear(q.ways)
		q.last = nil
		q.oldTill = q.posted
	}
	ah, err := q.pd.CreateAH(verbs.AddressVector{
		Addr: netip.AddrFrom16(p.GID), LID: uint16(p.LID), SL: p.SL, Global: p.GRH, FlowLabel: p.FlowLabel, HopLimit: p.HopLimit,
		TrafficClass: p.TrafficClass,
	})
	if err != nil {
		return nil
	}
	q.ways[*p] = ah
	return ah
}

// forget closes the address handles that no request refers to any more.
func (q *queuePair) forget(all bool) {
	if len(q.old) == 0 || !all && int32(q.done-q.oldTill) < 0 {
		return
	}
	for _, ah := range q.old {
		_ = ah.Close()
	}
	q.old = nil
}
