package device

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/device/bed"
)

const (
	// standbyTime is after how long the background goroutine looks for the first time
	// whether those who drive the loop inline still do, and again after a command. Each
	// time that they do it is twice as long, up to standbyMost: a look
	// wakes several threads, on processors that they may need. Peers wait for twice that
	// at most when they do not.
	standbyTime = 250 * time.Microsecond
	standbyMost = 8 * time.Millisecond
	// parkAfter is after how many such looks at one and the same sleeper the
	// background goroutine sleeps too, until that sleeper leaves.
	parkAfter = 16
	// freshNap is the longest sleep after a command. The next one may well bring a
	// deadline, as that of a message of the CM, and an end of it: nobody needs to be woken for
	// those that are later than this.
	freshNap = 250 * time.Millisecond
	// maxFails is how often in a row the background goroutine tries to take the
	// baton before it sleeps for failTime.
	maxFails = 64
	failTime = 100 * time.Microsecond
)

// sleepState is who sleeps, and how they are woken.
//
// At most one thread at a time has the role of the sleeper: it sleeps on the
// links' descriptors. It is the background goroutine, or a waiter of WaitCQ where
// it is the only one. The background goroutine stands by on a bed of its own
// meanwhile, and so does not wake for packets that somebody else takes.
type sleepState struct {
	links   *bed.Bed // of the sleeper
	standby *bed.Cot // of the background goroutine
	drains  []int
	fds     []int
	seen    atomic.Int64 // Host.watched when the two were collected

	role   atomic.Bool   // somebody is the sleeper
	asleep atomic.Bool   // the sleeper sleeps or is about to
	polls  atomic.Bool   // an adapter asks to go on polling, as its Polling says
	slept  atomic.Bool   // it slept since the last step: the links may have news
	until  atomic.Int64  // when its sleep ends by itself
	parked atomic.Bool   // the background goroutine sleeps until it is roused
	stands atomic.Bool   // it stands by
	drives atomic.Uint64 // iterations that pollers and waiters drove
	naps   atomic.Uint64 // times that a waiter took the role
	waits  atomic.Int32  // waiters in WaitCQ
	beside atomic.Int32  // those of them that sleep beside the sleeper, on channels
}

func (s *sleepState) open() (err error) {
	if s.links, err = bed.New(); err != nil {
		return err
	}
	s.standby = bed.NewCot()
	return nil
}

func (s *sleepState) close() error { return s.links.Close() }

// wake ends the sleep of the sleeper, if somebody sleeps. Called after what it
// shall see was stored; the sleeper stores asleep before it looks a last time.
func (s *sleepState) wake() {
	if s.asleep.Load() {
		s.links.Wake()
	}
}

// sooner wakes the sleeper where it would sleep past due.
func (s *sleepState) sooner(due clock.Time) {
	if s.asleep.Load() && int64(due) < s.until.Load() {
		s.until.Store(int64(due)) // once for all that come until it looks itself
		s.links.Wake()
	}
}

// rouse makes the background goroutine look at the loop, wherever it sleeps.
func (s *sleepState) rouse() {
	s.standby.Wake()
	s.wake()
}

// stop wakes everybody for good.
func (s *sleepState) stop() {
	s.standby.Wake()
	s.links.Wake()
}

// prepareSleep gets the sleeper ready: it holds the role and the baton. It reports
// the time to sleep, or false when there is work. There may be where the last step found something, whoever ran it: a link has lent
// the room of the packets that it handed out until it is asked again, and one whose credits are all lent has no news.
func (h *Host) prepareSleep(now clock.Time) (time.Duration, bool) {
	s := &h.sleep
	if n := int64(h.watched); s.seen.Load() != n {
		s.collect(h)
		s.seen.Store(n)
	}
	due := h.deadline()
	if h.fresh {
		h.fresh = false
		due = clock.Min(due, now.Add(freshNap))
	}
	s.until.Store(int64(due))
	s.asleep.Store(true)
	h.flagged = true
	if h.found || h.doorbells() || h.rung.Load() || due <= now {
		s.asleep.Store(false)
		h.awake()
		return 0, false
	}
	if due == clock.Never {
		return -1, true
	}
	return due.Sub(now), true
}

// awake takes back what prepareSleep announced to attached programs, with the
// baton, once nobody sleeps any more.
func (h *Host) awake() {
	h.flagged = false
	for _, c := range h.clients {
		c.sleepDoorbells(false)
	}
}

// evict returns when nobody sleeps on descriptors that are not watched any more.
// The caller does not hold the baton.
func (h *Host) evict() {
	s := &h.sleep
	h.lock()
	n := int64(h.watched)
	h.unlock()
	for s.asleep.Load() && s.seen.Load() < n {
		s.links.Wake()
		runtime.Gosched()
		bed.Yield()
	}
}

// collect lists the descriptors to sleep on.
func (s *sleepState) collect(h *Host) {
	s.fds, s.drains = s.fds[:0], s.drains[:0]
	for _, c := range h.clients {
		if c.cfg.WakeFD > 0 && !slices.Contains(s.drains, c.cfg.WakeFD) { // clients may share one
			s.drains = append(s.drains, c.cfg.WakeFD)
		}
	}
	for _, a := range h.adapters {
		s.fds = a.panel.Descriptors(s.fds)
	}
	s.links.Watch(s.fds, s.drains)
}

// background drives the loop while nobody else does.
func (h *Host) background() {
	defer h.wg.Done()
	s := &h.sleep
	var drives uint64
	last := h.now()
	turn := last
	var a attention
	fails := 0
	for !h.closing.Load() {
		if s.role.Load() || s.drives.Load() != drives && s.beside.Load() == 0 {
			h.standBy(&drives)
			last = h.now()
			turn = last
			continue
		}
		if !h.mu.TryLock() {
			// The owner may be waiting for this processor.
			if fails++; fails > maxFails {
				s.standby.Sleep(failTime)
			} else {
				bed.Yield()
			}
			continue
		}
		fails = 0
		worked := h.step()
		arrived := h.arrived
		h.unlock()
		now := h.now()
		took := now.Sub(turn)
		turn = now
		if worked {
			a.worked(took, arrived)
			last = now
			continue
		}
		if now.Sub(last) < h.cfg.Spin || s.polls.Load() || a.idled(took) {
			bed.Yield()
			continue
		}
		if s.role.CompareAndSwap(false, true) {
			h.sleepOnLinks()
			s.role.Store(false)
			last = h.now()
			turn = last
		}
	}
}

// sleepOnLinks sleeps as the sleeper, without the baton. It does not where
// somebody else has the baton, and so drives the loop.
func (h *Host) sleepOnLinks() {
	if !h.mu.TryLock() {
		bed.Yield()
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

// standBy sleeps beside those who drive the loop inline until they have stopped.
func (h *Host) standBy(drives *uint64) {
	s := &h.sleep
	var nap uint64
	same := 0
	s.stands.Store(true)
	defer s.stands.Store(false)
	for look := standbyTime; !h.closing.Load(); look = min(2*look, standbyMost) {
		if s.standby.Sleep(look) {
			look = standbyTime / 2
		}
		d := s.drives.Load()
		moved := d != *drives
		*drives = d
		if s.role.Load() {
			if n := s.naps.Load(); n != nap || moved {
				nap, same = n, 0
				continue
			}
			if same++; same < parkAfter {
				continue
			}
			s.parked.Store(true)
			if s.role.Load() && s.naps.Load() == nap && !h.closing.Load() {
				s.standby.Sleep(-1)
			}
			s.parked.Store(false)
			same = 0
			continue
		}
		if !moved || s.beside.Load() > 0 {
			return
		}
	}
}

// soon has a background goroutine that stands by look again as soon as at first: there was
// a command, after which a program may no longer poll and yet want something to happen.
func (s *sleepState) soon() {
	if s.stands.Load() && !s.parked.Load() {
		s.standby.Wake()
	}
}

// leaveRole ends the role of a waiter as the sleeper. Where others sleep beside
// it the background goroutine takes over at once.
func (s *sleepState) leaveRole() {
	s.role.Store(false)
	if s.parked.Load() || s.beside.Load() > 0 {
		s.standby.Wake()
	}
}
