package wait

import "time"

// Watch is what the watchdog does after a look at those who poll.
type Watch uint8

const (
	// Sleep is to look again after Interval.
	Sleep Watch = iota
	// Park is to sleep until somebody leaves the role of the poll owner, if it is still the same one that sleeps.
	Park
	// Poll is to poll: nobody else does.
	Poll
	// Rearm is to wake the poll owner, so that it sleeps anew.
	Rearm
)

// Observed is what the watchdog finds when it looks.
type Observed struct {
	Woken     bool   // somebody ended its sleep: something new may be expected
	Turns     uint64 // turns of the loop that others have driven so far
	Owned     bool   // another thread is the poll owner
	Owners    uint64 // how often other threads have become the poll owner so far
	Followers bool   // threads sleep that the poll owner, or else the watchdog, must poll for
	Disarmed  bool   // what arrives may not wake the poll owner, as others have looked at the links since it sleeps
}

// Watchdog decides for a background goroutine whether those who poll still do. While they do, it looks seldomer and
// seldomer: a look wakes several threads, on processors that may be needed. If they stop, peers wait for at most twice
// its last interval.
type Watchdog struct {
	turns, owners uint64
	same          int // looks that found the same poll owner asleep
	interval      time.Duration
}

// Begin begins to watch.
func (w *Watchdog) Begin() { w.owners, w.same, w.interval = 0, 0, watchFirst }

// Interval returns after what time to look next.
func (w *Watchdog) Interval() time.Duration { return w.interval }

// Polled reports whether others have driven the loop since the last look, given their turns so far.
func (w *Watchdog) Polled(turns uint64) bool { return turns != w.turns }

// Look decides after a look.
func (w *Watchdog) Look(o Observed) Watch {
	moved := o.Turns != w.turns
	w.turns = o.Turns
	w.interval = min(2*w.interval, watchMost)
	if o.Woken {
		w.interval = watchFirst
	}
	if !o.Owned {
		if moved && !o.Followers {
			return Sleep
		}
		return Poll
	}
	if o.Owners != w.owners || moved {
		w.owners, w.same = o.Owners, 0
		return Sleep
	}
	if o.Disarmed { // by those who polled beside it, and have stopped
		return Rearm
	}
	if w.same++; w.same < parkAfter {
		return Sleep
	}
	w.same = 0
	return Park
}

// Same reports whether the poll owner is still the one of the last look, given how often there was a new one: only
// then may the watchdog park.
func (w *Watchdog) Same(owners uint64) bool { return owners == w.owners }
