package rdmanet

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/wait"
	"github.com/softvpi/softvpi/verbs"
)

// waiter is a call that waits until something has changed for its connection: Read, Write or Close. Signals that come
// before it waits are remembered.
type waiter struct {
	poller  *poller
	changed atomic.Bool   // something has, since the call last looked
	ended   chan struct{} // holds a token when its sleep has ended, because something has changed or it is to lead
	leads   bool          // it is to lead; under the lock of the poller
}

func newWaiter() *waiter { return &waiter{ended: make(chan struct{}, 1)} }

// rouse ends the sleep of one that does not lead.
func (w *waiter) rouse() {
	select {
	case w.ended <- struct{}{}:
	default:
	}
}

// wake says that something has changed.
func (w *waiter) wake() {
	if w.changed.Load() {
		return // it has not looked since
	}
	w.changed.Store(true)
	w.rouse()
	if p := w.poller; p != nil && p.asleep.Load() == w {
		p.queue.CQ().Rouse()
	}
}

// seen reports whether something has changed since it was last called.
func (w *waiter) seen() bool { return w.changed.Load() && w.changed.Swap(false) }

// wait returns when something has changed for w, or perhaps without that. At most one call at a time may wait on it.
//
// One of those that wait leads: it sleeps for all and handles what arrives for all. When something has changed for
// itself it makes another one lead. So a program with a single busy connection switches between no goroutines, and
// while nobody waits nobody polls.
func (p *poller) wait(w *waiter) {
	p.mu.Lock()
	if !p.led {
		p.led = true
		p.mu.Unlock()
		p.lead(w)
		return
	}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	<-w.ended
	p.mu.Lock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	leads := w.leads
	w.leads = false
	p.mu.Unlock()
	if leads {
		p.lead(w)
		return
	}
	w.seen() // the caller looks now
}

// lead leads until something has changed for w.
func (p *poller) lead(w *waiter) {
	defer p.abdicate()
	cq := p.queue.CQ()
	for offers := 0; !w.seen(); {
		ticket := cq.Arm(verbs.NotifyAny)
		n, err := p.take()
		if err != nil {
			p.fail(err)
			return
		}
		if w.seen() {
			return
		}
		if used := wait.YieldGoroutines(); n > 0 || used && offers < wait.LeaderYields {
			offers++
			continue
		}
		offers = 0
		if err := p.sleep(w, ticket); err != nil {
			p.fail(err)
			return
		}
	}
}

// sleep returns when there may be a result, or something has changed for the leader w.
func (p *poller) sleep(w *waiter, ticket verbs.Ticket) (err error) {
	for looks := p.spin.begin(); looks; looks = p.spin.again() {
		if n, err := p.take(); n > 0 || err != nil || w.changed.Load() {
			return err
		}
	}
	p.asleep.Store(w)
	if !w.changed.Load() {
		err = p.queue.CQ().Sleep(context.Background(), ticket)
	}
	p.asleep.Store(nil)
	p.spin.end()
	return err
}

// abdicate makes the one lead who began to wait last: its memory is the warmest.
func (p *poller) abdicate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.waiting) - 1
	if last < 0 {
		p.led = false
		return
	}
	next := p.waiting[last]
	p.waiting = p.waiting[:last]
	next.leads = true
	next.rouse()
}
