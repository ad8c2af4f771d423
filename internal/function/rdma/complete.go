package rdma

import (
	"github.com/softvpi/softvpi/internal/clock"
)

// Unsettle says that the connection manager has something to say about connections: it is asked at the next Complete.
func (f *Function) Unsettle() {
	f.unsettled = true
	f.bell.Ring()
}

// Unsettled reports whether it will be.
func (f *Function) Unsettled() bool { return f.unsettled }

// Complete passes completions and events to programs, and reports whether there were any.
func (f *Function) Complete(now clock.Time) bool {
	if f.suspended {
		return false
	}
	worked := f.Drain(now)
	for f.raise(now) {
		worked = true
	}
	if f.unsettled {
		f.unsettled = false
		f.GSI.Flush(now)
		f.Drain(now)
	}
	return worked
}

// Suspend keeps completions and events in the engine, as a function does that is stuck, or no longer.
func (f *Function) Suspend(on bool) { f.suspended = on }

// Drain passes completions to programs, and reports whether there were any. There is a limit: by posting to a QP in error
// a hostile program could generate them forever.
func (f *Function) Drain(now clock.Time) bool {
	if f.suspended {
		return false
	}
	for round := range completeRounds {
		n := f.Engine.Completions(f.completions)
		for all := f.completions[:n]; len(all) > 0; {
			k := 1
			for k < len(all) && all[k].CQ == all[0].CQ {
				k++
			}
			f.programs.Completed(now, all[0].CQ, all[:k])
			all = all[k:]
		}
		if n < len(f.completions) {
			return round > 0 || n > 0
		}
	}
	return true
}

// raise passes on a batch of the engine's events.
func (f *Function) raise(now clock.Time) bool {
	n := f.Engine.Events(f.events)
	for i := range f.events[:n] {
		f.programs.Raised(now, &f.events[i])
	}
	return n > 0
}
