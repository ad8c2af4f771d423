package verbs

import (
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/wait"
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
	SL        uint8  // of a datagram on Ethernet: 10 if it came with an IPv4 header, 9 with an IPv6 header; on InfiniBand its service level
	PathBits  uint8  // of a datagram on InfiniBand: path bits of the LID that it was sent to
	SLID      uint16 // of a datagram on InfiniBand: the LID that it came from
	PKeyIndex uint16
	Timestamp uint64 // of a queue with CQConfig.Timestamps: nanoseconds of the adapter's clock, never less than the one before, see CQ.Time
}

// errPollClosed is allocated in advance, as are the errors of posting.
var errPollClosed = &Error{Op: "poll", Class: ErrClosed}

// Poll takes the completions that are available, at most len(out), and returns their number. It does not
// wait and allocates nothing; after many empty polls in a row it yields the processor now and then.
// ErrOverflow: completions were lost and no more will come. ErrClosed after Close.
func (cq *CQ) Poll(out []WC) (int, error) {
	if cq.driveFirst.Load() && len(out) > 0 && cq.late.Load() == 0 {
		return cq.driveAndTake(out)
	}
	n, idle, err := cq.take(out)
	if n > 0 || err != nil || len(out) == 0 {
		return n, err
	}
	if cq.late.Load() > 0 {
		cq.catchUp()
		if n, err := cq.again(out); n > 0 || err != nil {
			return n, err
		}
	}
	if worked := cq.dev.host.backend.Poll(idle); worked || cq.calm(idle) {
		n, err = cq.again(out)
		if worked && n == 1 && len(out) > 1 && cq.dev.host.device != nil {
			cq.driveFirst.Store(true)
		}
	}
	return n, err
}

// driveAndTake is a poll of a program whose last completion came alone, and only when its poll had driven the
// adapters' loop: most likely a first look would find nothing this time either. Completions that came otherwise, or
// several at a time, end this.
func (cq *CQ) driveAndTake(out []WC) (int, error) {
	worked := cq.dev.host.backend.Poll(0)
	n, _, err := cq.take(out)
	if n > 1 || n > 0 && !worked || n == len(out) {
		cq.driveFirst.Store(false)
	}
	return n, err
}

// calm pauses before the next look while messages stream in: they arrive faster if the receiver looks less
// often and takes a few at a time. It reports whether it paused.
func (cq *CQ) calm(idle uint32) bool {
	if idle > wait.StreamLooks || !cq.streamed.Load() {
		return false
	}
	for range wait.StreamPauses {
		wait.Pause()
	}
	return true
}

// answered records that a request was posted on a QP that receives here.
func (cq *CQ) answered() {
	if cq.streamed.Load() {
		cq.streamed.Store(false)
	}
}

// Spins returns how many empty polls are worthwhile before Arm and Wait.
func (cq *CQ) Spins() int { return cq.dev.host.backend.Spins() }

// take is the first look of a poll; idle is the number of consecutive empty polls, including this one if it found nothing.
func (cq *CQ) take(out []WC) (n int, idle uint32, err error) {
	cq.mu.Lock()
	if n, err = cq.taken(out); n == 0 && err == nil {
		cq.idle++
	}
	idle = cq.idle
	cq.mu.Unlock()
	return n, idle, err
}

// again is a further look of the same poll, which does not count: backends yield the processor after a multiple of some
// number of empty polls, which counting twice could skip for good.
func (cq *CQ) again(out []WC) (n int, err error) {
	cq.mu.Lock()
	n, err = cq.taken(out)
	cq.mu.Unlock()
	return n, err
}

func (cq *CQ) taken(out []WC) (n int, err error) {
	if cq.closed {
		return 0, errPollClosed
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
		if cq.zero != 0 {
			cq.order(out[total : total+k])
		}
		cq.settle(cq.scratch[:k])
		total += k
	}
	if total > 0 {
		cq.idle = 0
		return total, nil
	}
	if (cq.ring.Flags()&ring.FlagError != 0 || cq.life.over()) && cq.ring.Empty() {
		return 0, cq.broken("poll")
	}
	return 0, nil
}

// advance switches to the ring that a resize created once the old one is empty.
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
