package device

import (
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cpu/release"
	"github.com/softvpi/softvpi/internal/wait"
)

// sleepState says who sleeps, and how they are woken.
//
// At most one thread at a time has the role of the poll owner: it sleeps on the links' descriptors. It is the
// background goroutine, or a waiter of WaitCQ if there is only one. Meanwhile the background goroutine
// stands by on a bed of its own, so that packets handled by others do not wake it.
type sleepState struct {
	links    *wait.Poller // of the poll owner
	watchdog *wait.Parker // of the background goroutine
	bells    []int
	fds      []int
	seen     atomic.Int64 // Host.watched when bells and fds were collected

	role   atomic.Bool   // somebody is the poll owner
	asleep atomic.Bool   // the poll owner sleeps or is about to
	polls  atomic.Bool   // an adapter asks to keep polling, because of its Polling
	slept  atomic.Bool   // it has slept since the last step: the links may have news
	until  atomic.Int64  // when its sleep ends by itself
	parked atomic.Bool   // the background goroutine sleeps until it is roused
	stands atomic.Bool   // it stands by
	drives uint64        // iterations driven by pollers and waiters
	naps   atomic.Uint64 // times that a waiter took the role
	waits  atomic.Int32  // waiters in WaitCQ
	beside atomic.Int32  // those of them that sleep on channels beside the poll owner
}

func (s *sleepState) open() (err error) {
	if s.links, err = wait.New(); err != nil {
		return err
	}
	s.watchdog = wait.NewParker()
	return nil
}

func (s *sleepState) close() error { return s.links.Close() }

// driven counts an iteration that a poller or waiter drives. The caller holds the loop lock. The count is read repeatedly, so
// it need not be visible at once.
func (s *sleepState) driven() { release.Store64(&s.drives, s.drives+1) }

// wake ends the sleep of the poll owner, if somebody sleeps. Call it after storing what the poll owner should
// see; the poll owner stores asleep before it looks a last time.
func (s *sleepState) wake() {
	if s.asleep.Load() {
		s.links.Wake()
	}
}

// sooner wakes the poll owner if it would sleep past due.
func (s *sleepState) sooner(due clock.Time) {
	if s.asleep.Load() && int64(due) < s.until.Load() {
		s.until.Store(int64(due)) // once for all that come until it looks itself
		s.links.Wake()
	}
}

// rouse makes the background goroutine check the loop, wherever it sleeps.
func (s *sleepState) rouse() {
	s.watchdog.Wake()
	s.wake()
}

// stop wakes everybody for good.
func (s *sleepState) stop() {
	s.watchdog.Wake()
	s.links.Wake()
}

// prepareSleep prepares the poll owner, which holds the role and the loop lock. It returns the time to sleep, or
// false if there is work. If the last step found something there may be more, whoever ran it: a link lends
// the buffers of the packets that it hands out until it is polled again, and signals nothing while all of
// them are lent.
func (h *Host) prepareSleep(now clock.Time) (time.Duration, bool) {
	s := &h.sleep
	if n := int64(h.watched); s.seen.Load() != n {
		s.collect(h)
		s.seen.Store(n)
	}
	due := h.deadline()
	if h.fresh {
		h.fresh = false
		due = clock.Min(due, now.Add(wait.CommandSleep))
	}
	s.until.Store(int64(due))
	s.asleep.Store(true)
	h.flagged = true
	if h.found || h.doorbells() || h.rung.Load() || due <= now || !h.armLinks() {
		s.asleep.Store(false)
		h.awake()
		return 0, false
	}
	if due == clock.Never {
		return -1, true
	}
	return due.Sub(now), true
}

// armLinks tells the links that the loop is about to sleep. It returns false if packets are waiting.
func (h *Host) armLinks() bool {
	for _, a := range h.adapters {
		if a.enabled && !a.links.Doze() {
			return false
		}
	}
	return true
}

// awake withdraws what prepareSleep announced to attached programs once nobody sleeps any more. The caller
// holds the loop lock.
func (h *Host) awake() {
	h.flagged = false
	for _, c := range h.clients {
		c.sleepDoorbells(false)
	}
}

// evict returns when nobody sleeps on descriptors that are no longer watched. The caller does not hold the
// loop lock.
func (h *Host) evict() {
	s := &h.sleep
	h.lock()
	n := int64(h.watched)
	h.unlock()
	for s.asleep.Load() && s.seen.Load() < n {
		s.links.Wake()
		wait.Do(wait.YieldAll)
	}
}

// collect lists the descriptors to sleep on.
func (s *sleepState) collect(h *Host) {
	s.fds, s.bells = s.fds[:0], s.bells[:0]
	for _, c := range h.clients {
		if c.cfg.WakeFD > 0 {
			s.bells = append(s.bells, c.cfg.WakeFD)
		}
	}
	for _, a := range h.adapters {
		s.fds = a.links.Descriptors(s.fds)
	}
	s.links.Watch(s.fds, s.bells)
}

// background drives the loop while nobody else does.
func (h *Host) background() {
	defer h.wg.Done()
	s := &h.sleep
	var dog wait.Watchdog
	spin, lock := wait.Spinner{Policy: h.policy.background}, wait.Spinner{Policy: wait.Of(wait.LoopLock)}
	spin.Begin(h.now())
	for !h.closing.Load() {
		if s.role.Load() || dog.Polled(atomic.LoadUint64(&s.drives)) && s.beside.Load() == 0 {
			h.watch(&dog)
			spin.Begin(h.now())
			continue
		}
		if !h.mu.TryLock() {
			if !lock.Again(h.now, false) { // its owner may be waiting for this processor
				s.watchdog.Sleep(wait.LoopLockPause)
			}
			continue
		}
		lock.Begin(0)
		worked := h.step()
		arrived := h.arrived
		h.unlock()
		if worked {
			spin.Worked(h.now(), arrived)
			continue
		}
		if spin.Again(h.now, s.polls.Load()) {
			continue
		}
		if s.role.CompareAndSwap(false, true) {
			h.sleepOnLinks()
			s.role.Store(false)
			spin.Begin(h.now())
		}
	}
}

// sleepOnLinks sleeps as the poll owner, without the loop lock. It does not sleep if somebody else holds the
// loop lock, and so drives the loop.
func (h *Host) sleepOnLinks() {
	if !h.mu.TryLock() {
		wait.Yield()
		return
	}
	d, ok := h.prepareSleep(h.now())
	h.unlock()
	if !ok {
		return
	}
	h.sleep.links.Sleep(d)
	h.sleep.slept.Store(true)
	h.sleep.asleep.Store(false)
}

// watch sleeps beside those who drive the loop inline until they have stopped.
func (h *Host) watch(dog *wait.Watchdog) {
	s := &h.sleep
	s.stands.Store(true)
	defer s.stands.Store(false)
	for dog.Begin(); !h.closing.Load(); {
		woken := s.watchdog.Sleep(dog.Interval())
		switch dog.Look(wait.Observed{
			Woken: woken, Turns: atomic.LoadUint64(&s.drives), Owned: s.role.Load(), Owners: s.naps.Load(), Followers: s.beside.Load() > 0,
		}) {
		case wait.Poll:
			return
		case wait.Park:
			s.parked.Store(true)
			if s.role.Load() && dog.Same(s.naps.Load()) && !h.closing.Load() {
				s.watchdog.Sleep(-1)
			}
			s.parked.Store(false)
		}
	}
}

// soon makes a background goroutine that stands by check again soon, as at first: after a command, a
// program may no longer poll and yet expect something to happen.
func (s *sleepState) soon() {
	if s.stands.Load() && !s.parked.Load() {
		s.watchdog.Wake()
	}
}

// leaveRole ends a waiter's role as the poll owner. If others sleep beside it the background goroutine takes
// over at once.
func (s *sleepState) leaveRole() {
	s.role.Store(false)
	if s.parked.Load() || s.beside.Load() > 0 {
		s.watchdog.Wake()
	}
}
