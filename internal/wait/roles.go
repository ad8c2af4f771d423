package wait

import (
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/cpu/release"
)

// Roles says who polls for whom in a loop that several threads may drive. At most one of them is the poll owner, who may
// sleep on what arrives for all: a waiter if there is only one, or else the watchdog. Other waiters are followers, who
// sleep until the loop, driven by somebody else, has something for them. A thread that polls needs no role.
type Roles struct {
	turns    uint64        // driven by those who poll and wait
	watchdog *Parker       // where the watchdog sleeps while others poll
	owned    atomic.Bool   // somebody is the poll owner
	owners   atomic.Uint64 // how often a waiter became the poll owner

	waiters, followers atomic.Int32

	disarmed atomic.Bool // what arrives may not wake the poll owner
	waiter   atomic.Bool // which is one, not the watchdog

	watching atomic.Bool // the watchdog watches those who drive the loop
	parked   atomic.Bool // it sleeps until it is woken
}

// Init makes the roles those of a loop that nobody drives yet.
func (r *Roles) Init() { r.watchdog = NewParker() }

// Driven counts a turn that a thread drives which polls or waits. The caller holds the loop lock. The watchdog reads the
// count again and again, so that it need not be visible at once.
func (r *Roles) Driven() { release.Store64(&r.turns, r.turns+1) }

// Enter says that the caller waits until Leave.
func (r *Roles) Enter() { r.waiters.Add(1) }

// Leave undoes Enter.
func (r *Roles) Leave() { r.waiters.Add(-1) }

// Waiters returns how many wait now.
func (r *Roles) Waiters() int { return int(r.waiters.Load()) }

// Own makes the caller, a waiter, the poll owner, if it is the only waiter; wake ends the sleep of the poll owner, so that
// the watchdog makes room. Otherwise the caller is to Follow.
func (r *Roles) Own(wake func()) bool {
	if r.waiters.Load() != 1 {
		return false
	}
	for range ownerTries {
		if r.TryOwn() {
			r.waiter.Store(true)
			r.owners.Add(1)
			return true
		}
		wake()
		Do(YieldAll)
	}
	return false
}

// TryOwn makes the watchdog the poll owner, if nobody is; Disown ends that.
func (r *Roles) TryOwn() bool { return r.owned.CompareAndSwap(false, true) }

// Disown ends the role of the watchdog as the poll owner.
func (r *Roles) Disown() { r.owned.Store(false) }

// Abdicate ends the role of a waiter as the poll owner. If there are followers the watchdog takes over at once.
func (r *Roles) Abdicate() {
	r.waiter.Store(false)
	r.owned.Store(false)
	if r.parked.Load() || r.followers.Load() > 0 {
		r.watchdog.Wake()
	}
}

// Armed says that what arrives will wake the poll owner, who is about to sleep.
func (r *Roles) Armed() { r.disarmed.Store(false) }

// Disarm says that somebody has looked at the links while the poll owner sleeps, so that what arrives may not wake it; wake does. The
// watchdog watches who drives the loop now. A waiter sleeps on, which the watchdog wakes as soon as nobody does.
func (r *Roles) Disarm(wake func()) {
	r.disarmed.Store(true)
	if !r.waiter.Load() {
		wake()
		return
	}
	if r.parked.Load() { // else it looks anyway
		r.watchdog.Wake()
	}
}

// Follow makes the caller a follower until Unfollow. If nobody is the poll owner the watchdog polls for it.
func (r *Roles) Follow() {
	r.followers.Add(1)
	if !r.owned.Load() {
		r.watchdog.Wake()
	}
}

// Unfollow undoes Follow.
func (r *Roles) Unfollow() { r.followers.Add(-1) }

// Others reports whether the watchdog is to watch: somebody else is the poll owner, or drives the loop and has no
// followers.
func (r *Roles) Others(dog *Watchdog) bool {
	return r.owned.Load() || dog.Polled(atomic.LoadUint64(&r.turns)) && r.followers.Load() == 0
}

// Watch is the watchdog while others drive the loop: it returns when they have stopped, or when over says so. wake ends the sleep of the
// poll owner.
func (r *Roles) Watch(dog *Watchdog, wake func(), over func() bool) {
	r.watching.Store(true)
	defer r.watching.Store(false)
	for dog.Begin(); !over(); {
		woken := r.watchdog.Sleep(dog.Interval())
		switch dog.Look(Observed{
			Woken: woken, Turns: atomic.LoadUint64(&r.turns), Owned: r.owned.Load(), Owners: r.owners.Load(),
			Followers: r.followers.Load() > 0, Disarmed: r.disarmed.Load(),
		}) {
		case Poll:
			return
		case Rearm:
			wake()
		case Park:
			r.park(dog, over)
		}
	}
}

// park sleeps until it is woken, unless the poll owner has changed since the last look.
func (r *Roles) park(dog *Watchdog, over func() bool) {
	r.parked.Store(true)
	if r.owned.Load() && dog.Same(r.owners.Load()) && !r.disarmed.Load() && !over() {
		r.watchdog.Sleep(-1)
	}
	r.parked.Store(false)
}

// LetGo makes the watchdog pause for LoopLock, unless it is woken.
func (r *Roles) LetGo() { r.watchdog.Sleep(loopLockPause) }

// Rouse makes the watchdog look, wherever it sleeps.
func (r *Roles) Rouse() { r.watchdog.Wake() }

// Soon makes a watchdog that watches look again soon, as at first: after a command, a program may no longer poll and yet
// expect something to happen.
func (r *Roles) Soon() {
	if r.watching.Load() && !r.parked.Load() {
		r.watchdog.Wake()
	}
}
