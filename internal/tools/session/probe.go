package session

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/nd"
)

// Probe finds out that a peer has gone without a word. A side that only receives
// would wait for ever: nothing that it sends goes unanswered. The probe is a
// write of no bytes, which needs neither a receive nor a token of the peer; one
// that is not acknowledged ends the queue pair with an error.
type Probe struct {
	qp      *nd.QueuePair
	context uint64
	under   atomic.Bool
	stop    chan struct{}
	done    chan struct{}
}

// Gone says what a probe that failed has found out.
const Gone = "the peer does not answer any more"

const (
	probeEvery   = time.Second
	probeContext = math.MaxUint64
)

// StartProbe probes the peer of qp, which is connected and has room for one more
// request, until Stop. The results have the request context.
func StartProbe(qp *nd.QueuePair, context uint64) *Probe {
	p := &Probe{qp: qp, context: context, stop: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *Probe) run() {
	defer close(p.done)
	t := time.NewTicker(probeEvery)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
		}
		if p.under.CompareAndSwap(false, true) && p.qp.Write(p.context, nil, 0, 0, 0) != nil {
			return // the connection has ended, and the results say so
		}
	}
}

// Answered takes note of a probe's result.
func (p *Probe) Answered() { p.under.Store(false) }

// Stop ends the probing. A nil Probe probes nothing.
func (p *Probe) Stop() {
	if p != nil {
		close(p.stop)
		<-p.done
	}
}
