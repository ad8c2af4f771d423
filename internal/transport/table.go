package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/numbers"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	maxQPN = uint32(ib.QPMulticast) - 1
	// maxResting limits the numbers in time-wait; beyond it the oldest is reused early.
	maxResting = 1 << 16
	// numberTries is how many random numbers are tried before one is searched for; more than half are free.
	numberTries = 64
)

// table finds a QP by its number. Numbers that are in time-wait, or allocated but not used yet, are
// reserved.
type table struct {
	numbers.Table[QP]
	count    int    // QPs
	next     uint32 // where the search for a free number continues, loop's bits left out
	resting  []rest // numbers in time-wait, a queue in order of expiry
	restHead int
}

type rest struct {
	number uint32
	end    clock.Time
}

// wake frees the numbers whose time-wait has ended.
func (t *table) wake(now clock.Time) {
	for t.restHead < len(t.resting) && t.resting[t.restHead].end <= now {
		t.wakeOne()
	}
}

func (t *table) wakeOne() {
	t.free(t.resting[t.restHead].number)
	t.restHead++
	if t.restHead*2 > len(t.resting) {
		t.resting = append(t.resting[:0], t.resting[t.restHead:]...)
		t.restHead = 0
	}
}

// free frees a reserved number.
func (t *table) free(number uint32) {
	if t.Get(number) == nil {
		t.Remove(number)
	}
}

func (t *table) rest(number uint32, end clock.Time) {
	if len(t.resting)-t.restHead >= maxResting {
		t.wakeOne()
	}
	t.Put(number, nil)
	t.resting = append(t.resting, rest{number, end})
}

// AllocateNumber reserves a QP number for CreateQP: a random one with Config.Random, else the next free
// one; never 0, 1, the multicast number, or one in time-wait. The error is ErrNumbers. Return a number
// that remains unused with FreeNumber.
func (e *Engine) AllocateNumber(now clock.Time) (uint32, error) {
	t := &e.table
	t.wake(now)
	all := uint32(1) << (24 - e.cfg.LoopBits)
	for tries := range all {
		if e.cfg.Random != nil && tries < numberTries {
			t.next = uint32(e.cfg.Random())
		}
		qpn := t.next&(all-1)<<e.cfg.LoopBits | e.cfg.Loop
		t.next++
		if qpn > uint32(ib.QPGSI) && qpn <= maxQPN && t.Free(qpn) && (e.cfg.Taken == nil || !e.cfg.Taken(qpn)) {
			t.Put(qpn, nil)
			return qpn, nil
		}
	}
	return 0, ErrNumbers
}

// HasNumber reports whether a QP number is in use or reserved here.
func (e *Engine) HasNumber(qpn uint32) bool { return e.table.Has(qpn) }

// FreeNumber returns a number for which no QP was created.
func (e *Engine) FreeNumber(qpn uint32) { e.table.free(qpn) }
