package device

import (
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/wait"
)

// sleepState says who sleeps, and how they are woken. The poll owner sleeps on the links' descriptors; the background
// goroutine is the watchdog.
type sleepState struct {
	links *wait.Poller // of the poll owner
	bells []int
	fds   []int
	seen  atomic.Int64 // Host.watched when bells and fds were collected

	roles  wait.Roles
	asleep atomic.Bool  // the poll owner sleeps or is about to
	polls  atomic.Bool  // an adapter asks to keep polling, because of its Polling
	slept  atomic.Bool  // it has slept since the last step: the links may have news
	until  atomic.Int64 // when its sleep ends by itself
	armed  bool         // links show all that arrives to who sleeps on their descriptors, until they are looked at; under the loop lock
}

func (s *sleepState) open() (err error) {
	if s.links, err = wait.New(); err != nil {
		return err
	}
	s.roles.Init()
	return nil
}

func (s *sleepState) close() error { return s.links.Close() }

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

// disarm says that the links are looked at: they need not show what arrives any more. The caller holds the loop lock.
func (s *sleepState) disarm() {
	s.armed = false
	if s.asleep.Load() {
		s.roles.Disarm(s.links.Wake)
	}
}

// rouse makes the background goroutine check the loop, wherever it sleeps.
func (s *sleepState) rouse() {
	s.roles.Rouse()
	s.wake()
}

// stop wakes everybody for good.
func (s *sleepState) stop() {
	s.roles.Rouse()
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
	s.roles.Armed()
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
	for _, p := range h.ports {
		if !p.enabled() {
			continue
		}
		for _, a := range p.owners {
			told, ok := a.links.ArmWakeUp()
			if h.sleep.armed = h.sleep.armed || told; !ok {
				return false
			}
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
		if !a.port.enabled() { // nobody would read what they signal
			continue
		}
		s.fds = a.links.Descriptors(s.fds)
		if a.nic.on() {
			s.fds = append(s.fds, a.nic.side.End().Descriptors()...)
		}
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
	var bound binding
	for !h.closing.Load() {
		bound.follow(h)
		if s.roles.Others(&dog) {
			s.roles.Watch(&dog, s.links.Wake, h.closing.Load)
			spin.Begin(h.now())
			continue
		}
		if !h.mu.TryLock() {
			if !lock.Again(h.now, false) { // its owner may be waiting for this processor
				s.roles.LetGo()
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
		if s.roles.TryOwn() {
			h.sleepOnLinks()
			s.roles.Disown()
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
