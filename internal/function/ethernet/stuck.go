package ethernet

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// progress is what is known of a queue that may be stuck.
type progress struct {
	done   uint64 // by the queue, when it was looked at last
	stalls int    // consecutive looks at which something waited and nothing had been done
}

// looked notes how much a queue has done so far, and reports whether it is stuck now and was not before.
func (p *progress) looked(waits bool, done uint64, most int) bool {
	if !waits || done != p.done {
		*p = progress{done: done}
		return false
	}
	p.stalls = min(p.stalls+1, most+1)
	return p.stalls == most
}

// checkTime returns the time between two looks at whether queues get on (SHCheckForHangTimeInSeconds).
func (f *Function) checkTime() time.Duration { return time.Duration(f.cfg.CheckForHang) * time.Second }

// watch begins to look at whether queues get on. It is called for everything that may have to wait.
func (f *Function) watch(now clock.Time) {
	if f.checkDue == clock.Never {
		f.checkDue = now.Add(f.checkTime())
	}
}

// lookAtQueues looks at whether queues get on, and raises an event for each that has not for so many looks as CheckForHangCQMaxNoProgress
// says: a receive queue whose host takes nothing, a send queue of which the port does. What waits stays: the host and the port are
// asked all the time.
func (f *Function) lookAtQueues(now clock.Time) {
	f.checkDue = clock.Never
	most, watch := f.cfg.MaxNoProgress, false
	for q := range f.receive {
		r := &f.receive[q]
		waits := r.full && r.ring.Len() > 0 && !f.asleep
		if watch = watch || waits; r.looked(waits, r.c.PacketsDPC+r.c.PacketsThread, most) {
			f.host.Raised(now, Event{Kind: ReceiveTimeout, Queue: q})
		}
	}
	for q := range f.send {
		x := &f.send[q]
		waits := f.waits(q)
		if watch = watch || waits; x.progress.looked(waits, x.handed, most) {
			f.host.Raised(now, Event{Kind: SendTimeout, Queue: q})
		}
	}
	if watch {
		f.watch(now)
	}
}

// waits reports whether sends of a queue wait for the port.
func (f *Function) waits(q int) bool {
	for p := range f.ready {
		if f.ready[p].has(q) {
			return true
		}
	}
	return false
}
