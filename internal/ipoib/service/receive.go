package service

import (
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/verbs"
	"github.com/softvpi/softvpi/wire/ib"
)

// post posts a place as a receive buffer.
func (q *queuePair) post(n int) error {
	var sge [1]verbs.SGE
	sge[0] = q.in.SGE(n*place, place)
	q.receiving.Add(1)
	err := q.qp.PostRecv(&verbs.RecvWR{ID: q.id(uint32(n)), SGE: sge[:]})
	if err != nil {
		q.receiving.Add(-1)
	}
	return err
}

func (q *queuePair) id(n uint32) uint64 { return uint64(q.starts)<<32 | uint64(n) }

// run handles what arrives until the queue pair is closed.
func (q *queuePair) run() {
	var wcs [batch]verbs.WC
	var arrivals [batch]ipoib.Arrival
	for {
		n, err := q.recvCQ.Next(q.ctx, wcs[:])
		if err != nil {
			return
		}
		q.receiving.Add(int32(-n))
		got, failed := 0, uint32(0)
		for i := range wcs[:n] {
			switch {
			case wcs[i].Status != verbs.Success:
				failed = uint32(wcs[i].ID >> 32)
			case q.arrival(&wcs[i], &arrivals[got]):
				got++
			}
		}
		if got > 0 {
			q.receive(arrivals[:got])
		}
		q.repost(wcs[:n])
		if failed != 0 {
			q.recover(failed)
		}
	}
}

// arrival converts a completion for the engine.
func (q *queuePair) arrival(wc *verbs.WC, a *ipoib.Arrival) bool {
	b := q.in.Bytes()[int(uint32(wc.ID))*place:][:place]
	if wc.ByteLen < ib.GRHLen || wc.ByteLen > place {
		return false
	}
	*a = ipoib.Arrival{SLID: ib.LID(wc.SLID), SL: wc.SL, SrcQP: ib.QPN(wc.SrcQP), HasGRH: wc.Flags&verbs.WithGRH != 0,
		Data: b[ib.GRHLen:wc.ByteLen]}
	if a.HasGRH {
		a.SGID = ib.GRH(b[:ib.GRHLen]).SGID()
	}
	return true
}

// repost posts places again, unless an intervening start has already done so.
func (q *queuePair) repost(wcs []verbs.WC) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range wcs {
		if uint32(wcs[i].ID>>32) == q.starts && wcs[i].Status != verbs.WRFlush {
			_ = q.post(int(uint32(wcs[i].ID)))
		}
	}
}
