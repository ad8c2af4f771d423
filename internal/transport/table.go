package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	pageBits = 10
	pageSize = 1 << pageBits
	maxQPN   = uint32(ib.QPMulticast) - 1
	// maxResting limits the numbers in time-wait; beyond it the oldest is reused early.
	maxResting = 1 << 16
)

// table finds a QP by its number: an array in pages, so that memory is proportional to the QPs in use and
// a look-up is two loads. The low loopBits of a number are the same for every QP of an engine and are left
// out.
type table struct {
	pages    []*page
	loopBits uint8
	count    int
	next     uint32 // where the search for a free number continues
	resting  []rest // numbers in time-wait, a queue in order of expiry
	restHead int
}

type page struct {
	qps  [pageSize]*QP
	used int
}

type rest struct {
	slot uint32
	end  clock.Time
}

// restingQP occupies the slots of numbers that are in time-wait, or allocated but not used yet.
var restingQP = &QP{}

func newTable(loopBits uint8) table {
	return table{pages: make([]*page, (1<<24>>loopBits)/pageSize), loopBits: loopBits}
}

func (t *table) at(qpn uint32) *QP {
	slot := qpn >> t.loopBits
	p := t.pages[slot>>pageBits&uint32(len(t.pages)-1)]
	if p == nil {
		return nil
	}
	q := p.qps[slot&(pageSize-1)]
	if q == nil || q.num != qpn {
		return nil
	}
	return q
}

func (t *table) taken(slot uint32) bool {
	p := t.pages[slot>>pageBits]
	return p != nil && p.qps[slot&(pageSize-1)] != nil
}

func (t *table) set(slot uint32, q *QP) {
	p := t.pages[slot>>pageBits]
	if p == nil {
		p = new(page)
		t.pages[slot>>pageBits] = p
	}
	at := &p.qps[slot&(pageSize-1)]
	switch {
	case *at == nil && q != nil:
		p.used++
	case *at != nil && q == nil:
		p.used--
	}
	*at = q
	if p.used == 0 {
		t.pages[slot>>pageBits] = nil
	}
}

// wake frees the numbers whose time-wait has ended.
func (t *table) wake(now clock.Time) {
	for t.restHead < len(t.resting) && t.resting[t.restHead].end <= now {
		t.wakeOne()
	}
}

func (t *table) wakeOne() {
	t.set(t.resting[t.restHead].slot, nil)
	t.restHead++
	if t.restHead*2 > len(t.resting) {
		t.resting = append(t.resting[:0], t.resting[t.restHead:]...)
		t.restHead = 0
	}
}

func (t *table) rest(slot uint32, end clock.Time) {
	if len(t.resting)-t.restHead >= maxResting {
		t.wakeOne()
	}
	t.set(slot, restingQP)
	t.resting = append(t.resting, rest{slot, end})
}

// AllocateNumber reserves a QP number for CreateQP: the next free one, round robin, so that a number is
// reused as late as possible; never 0, 1, the multicast number, or one in time-wait. The error is
// ErrNumbers. Return a number that remains unused with FreeNumber.
func (e *Engine) AllocateNumber(now clock.Time) (uint32, error) {
	t := &e.table
	t.wake(now)
	slots := uint32(len(t.pages)) * pageSize
	for range slots {
		slot := t.next
		t.next = (t.next + 1) & (slots - 1)
		qpn := slot<<t.loopBits | e.cfg.Loop
		if qpn > uint32(ib.QPGSI) && qpn <= maxQPN && !t.taken(slot) {
			t.set(slot, restingQP)
			return qpn, nil
		}
	}
	return 0, ErrNumbers
}

// FreeNumber returns a number for which no QP was created.
func (e *Engine) FreeNumber(qpn uint32) {
	slot := qpn >> e.table.loopBits
	if qpn <= maxQPN && e.table.pages[slot>>pageBits] != nil && e.table.pages[slot>>pageBits].qps[slot&(pageSize-1)] == restingQP {
		e.table.set(slot, nil)
	}
}

// each calls f for every QP. Control path only.
func (t *table) each(f func(*QP)) {
	for _, p := range t.pages {
		if p == nil {
			continue
		}
		for _, q := range p.qps {
			if q != nil && q != restingQP {
				f(q)
			}
		}
	}
}
