package session

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/nd"
)

// Probe detects that a peer has gone silently. A side that only receives would otherwise wait forever,
// because nothing that it sends can go unanswered. The probe is a write of no bytes, which needs neither a
// receive nor a token of the peer; if it is not acknowledged the queue pair fails.
type Probe struct {
	qp      *nd.QueuePair
	context uint64
	under   atomic.Bool
	stop    chan struct{}
	done    chan struct{}
}

// Gone is the meaning of a failed probe.
const Gone = "the peer no longer answers"

const (
	probeEvery   = time.Second
	probeContext = math.MaxUint64
)

// StartProbe probes the peer of qp, which must be connected and have room for one more request, until
// Stop. The results have the given request context.
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
			return // the connection has ended, as the results will show
		}
	}
}

// Answered notes a probe's result.
func (p *Probe) Answered() { p.under.Store(false) }

// Stop ends the probing. On a nil Probe it does nothing.
func (p *Probe) Stop() {
	if p != nil {
		close(p.stop)
		<-p.done
	}
}
