package device

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/cpu/release"
	"github.com/softvpi/softvpi/internal/wait"
)

const (
	// watchTime is after what time the background goroutine first checks whether those who drive the
	// loop inline still do, and again after a command. While they do, the time doubles with each check, up
	// to watchMost: a check wakes several threads, on processors that may be needed. If they stop, peers
	// wait for at most twice that time.
	watchTime = 250 * time.Microsecond
	watchMost = 8 * time.Millisecond
	// parkAfter is after how many checks that found the same sleeper the background goroutine sleeps too,
	// until that sleeper leaves.
	parkAfter = 16
	// freshNap is the longest sleep after a command. The next one may well set a deadline, such as for a
	// message of the CM, and cancel it: for deadlines later than this nobody needs to be woken.
	freshNap = 250 * time.Millisecond
	// maxFails is how many consecutive times the background goroutine tries to take the loop lock before it
	// sleeps for failTime.
	maxFails = 64
	failTime = 100 * time.Microsecond
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
		due = clock.Min(due, now.Add(freshNap))
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
		runtime.Gosched()
		wait.Yield()
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
	var drives uint64
	last := h.now()
	turn := last
	var a wait.Attention
	fails := 0
	for !h.closing.Load() {
		if s.role.Load() || atomic.LoadUint64(&s.drives) != drives && s.beside.Load() == 0 {
			h.watch(&drives)
			last = h.now()
			turn = last
			continue
		}
		if !h.mu.TryLock() {
			// The owner may be waiting for this processor.
			if fails++; fails > maxFails {
				s.watchdog.Sleep(failTime)
			} else {
				wait.Yield()
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
			a.Worked(took, arrived)
			last = now
			continue
		}
		if now.Sub(last) < h.cfg.Spin || s.polls.Load() || a.Idled(took) {
			wait.Yield()
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
func (h *Host) watch(drives *uint64) {
	s := &h.sleep
	var nap uint64
	same := 0
	s.stands.Store(true)
	defer s.stands.Store(false)
	for look := watchTime; !h.closing.Load(); look = min(2*look, watchMost) {
		if s.watchdog.Sleep(look) {
			look = watchTime / 2
		}
		d := atomic.LoadUint64(&s.drives)
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
				s.watchdog.Sleep(-1)
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
