package wait

import (
	"runtime"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

var origin = time.Now()

// Now reads the clock for waiters that have none of their own.
func Now() clock.Time { return clock.Time(time.Since(origin)) }

// Do carries out a step. Look and Arm are the caller's: they take no time here.
func Do(s Step) {
	switch s {
	case YieldThread:
		Yield()
	case YieldAll:
		runtime.Gosched()
		Yield()
	case YieldLower:
		if realTime() {
			nap(lowerNap)
		} else {
			Yield()
		}
	case Nap:
		nap(napTime)
	}
}

// YieldGoroutines lets other goroutines run, such as those that the caller has just made ready, and reports whether some
// did: those may have made others ready. Sleeping, and looking again, would keep a processor from them for a while.
func YieldGoroutines() (used bool) {
	began := Now()
	runtime.Gosched()
	return Now().Sub(began) > goroutineUsed
}

// SetTimer sets a timer for a time, or passes the time, or a part of it, where timers of the runtime would be late by more
// than that (timerFine). What becomes due earlier meanwhile is late by timerNap at most.
func SetTimer(t *time.Timer, d time.Duration) {
	if d > 0 && d < timerFine {
		nap(min(max(d, timerLeast), timerNap))
		d = 0
	}
	t.Reset(d)
}

// pauseSteps is the length of a Pause.
const pauseSteps = 1000

// Pause waits some hundred nanoseconds. Polling for what another processor is about to store takes the
// cache line away from it each time.
//
//go:noinline
func Pause() {
	for range pauseSteps {
	}
}

// Again carries out what follows a vain look of a waiter, on the clock that it is given. It returns false when it is time
// to arm wake-ups.
func (s *Spinner) Again(now func() clock.Time, more bool) bool {
	if !s.Due() {
		return true
	}
	step := s.Next(now(), more)
	Do(step)
	return step != Arm
}

// Yield carries out what follows the nth vain look in a row of a poller that shares c with others, if it is Due. It returns
// true: now it is worth looking again.
func (c *Contention) Yield(p *Policy, n uint32) bool {
	c.yield(p, n, Now())
	return true
}

func (c *Contention) yield(p *Policy, n uint32, now clock.Time) {
	step := c.Next(p, n, now)
	if step != YieldThread && step != YieldAll {
		Do(step)
		return
	}
	if yields.wanted() {
		yields.sample()
		now = Now()
	}
	Do(step)
	c.Yielded(yields.used(step, Now().Sub(now)))
}

// Again is that of s, for a waiter that shares c with pollers.
func (c *Contention) Again(s *Spinner) bool {
	s.looks++
	if !c.Due(&s.Policy, s.looks) {
		return true
	}
	now := Now()
	if s.Next(now, false) == Arm {
		return false
	}
	c.yield(&s.Policy, s.looks, now)
	return true
}
