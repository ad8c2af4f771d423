package verbs

import (
	"runtime"

	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ring"
)

// WC is a work completion (IBA 11.4.2.1).
type WC struct {
	ID        uint64 // of the request
	Context   uint64 // of the QP
	QPN       uint32
	ByteLen   uint32 // bytes received or read
	Imm       uint32 // see CompletionFlags
	SrcQP     uint32 // UD: the sender
	Status    Status
	Op        CompletionOp
	Flags     CompletionFlags
	Vendor    uint8  // vendor error code
	SL        uint8  // of a datagram on Ethernet: 10 where an IPv4 header came with it, 9 with IPv6; on InfiniBand its service level
	PathBits  uint8  // of a datagram on InfiniBand: of the LID that it came to
	SLID      uint16 // of a datagram on InfiniBand: the LID that it came from
	PKeyIndex uint16
	Timestamp uint64 // nanoseconds of the adapter's clock
}

// offers returns the number of empty polls between two offers of the processor to
// other goroutines; the adapter offers it to other threads by itself. Where a P is
// idle each Gosched wakes a thread in vain, which costs more than many polls.
func offers(spins int) uint32 {
	if runtime.GOMAXPROCS(0) == 1 {
		return uint32(spins / 4)
	}
	return uint32(2 * spins)
}

// errPollClosed stands ready, as the errors of posting do.
var errPollClosed = &Error{Op: "poll", Class: ErrClosed}

// Poll takes completions that are there, at most len(out), and returns their
// number. It does not wait and allocates nothing; it gives the processor up now
// and then when there was nothing many times in a row. ErrOverflow: completions
// were lost and no more will come. ErrClosed after Close.
func (cq *CQ) Poll(out []WC) (int, error) {
	n, idle, err := cq.take(out)
	if n > 0 || err != nil || len(out) == 0 {
		return n, err
	}
	if cq.late.Load() > 0 {
		cq.catchUp()
		if n, _, err := cq.take(out); n > 0 || err != nil {
			return n, err
		}
	}
	if cq.dev.host.backend.Poll(idle) || cq.calm(idle) {
		n, _, err = cq.take(out)
	}
	if n == 0 && err == nil && idle%cq.offers == 0 {
		runtime.Gosched()
	}
	return n, err
}

// calm lets some time pass before the next look, where messages stream in: they come
// faster when they are not looked for all the time, a few at a look.
func (cq *CQ) calm(idle uint32) bool {
	if idle > calmLooks || !cq.streamed.Load() {
		return false
	}
	for range calmPauses {
		direct.Pause()
	}
	return true
}

// answered notes that a request is posted to a QP that receives here.
func (cq *CQ) answered() {
	if cq.streamed.Load() {
		cq.streamed.Store(false)
	}
}

// Spins returns how often it is worth polling in vain before Arm and Wait: that takes
// some 50 us.
func (cq *CQ) Spins() int { return cq.dev.host.backend.Spins() }

// take also returns how many times in a row there was nothing.
func (cq *CQ) take(out []WC) (n int, idle uint32, err error) {
	cq.mu.Lock()
	n, idle, err = cq.taken(out)
	cq.mu.Unlock()
	return n, idle, err
}

func (cq *CQ) taken(out []WC) (n int, idle uint32, err error) {
	if cq.closed {
		return 0, 0, errPollClosed
	}
	total := 0
	for total < len(out) {
		k := cq.ring.Poll(cq.scratch[:min(pollBatch, len(out)-total)])
		if k == 0 {
			if cq.advance() {
				continue
			}
			break
		}
		for i := range k {
			out[total+i].from(&cq.scratch[i])
		}
		cq.settle(cq.scratch[:k])
		total += k
	}
	if total > 0 {
		cq.idle = 0
		return total, 0, nil
	}
	if (cq.ring.Flags()&ring.FlagError != 0 || cq.life.over()) && cq.ring.Empty() {
		return 0, 0, cq.broken("poll")
	}
	cq.idle++
	return 0, cq.idle, nil
}

// advance goes on to the ring that a resize made, when the old one is empty.
func (cq *CQ) advance() bool {
	if cq.next == nil || cq.ring.Flags()&ring.FlagMoved == 0 || !cq.ring.Empty() {
		return false
	}
	cq.ring, cq.next = cq.next, nil
	return true
}

func (wc *WC) from(e *ring.CQE) {
	wc.ID, wc.Context, wc.QPN = e.ID, e.Context, e.QPN
	wc.ByteLen, wc.Imm, wc.SrcQP = e.ByteLen, e.Imm, e.SrcQP
	wc.Status, wc.Op, wc.Flags = Status(e.Status), CompletionOp(e.Op), CompletionFlags(e.Flags)
	wc.Vendor, wc.SL, wc.PKeyIndex, wc.Timestamp = e.Vendor, e.SL, e.PKeyIndex, e.Timestamp
	wc.SLID, wc.PathBits = e.SLID, e.PathBits
}

// newest returns the ring that new completions go to.
func (cq *CQ) newest() *ring.CQ {
	if cq.next != nil {
		return cq.next
	}
	return cq.ring
}
