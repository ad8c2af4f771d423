package wait

import (
	"math"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Step is what a waiter does after a look that found nothing.
type Step uint8

const (
	// Look again at once.
	Look Step = iota
	// YieldThread is to yield the processor to other threads, and look again.
	YieldThread
	// YieldAll is to yield to other goroutines and to other threads, and look again.
	YieldAll
	// YieldLower is YieldThread, but also to threads of a lower priority: see Do.
	YieldLower
	// Nap is to sleep for a moment though news may come meanwhile, so that the system may move this thread to an idle
	// processor.
	Nap
	// Arm is to ask for wake-ups, to look once more, and to sleep if that finds nothing either.
	Arm
)

// Forever is the Spin of a waiter that never sleeps by itself: its caller decides.
const Forever time.Duration = math.MaxInt64

// Policy is how one kind of waiter waits: a row of the table.
type Policy struct {
	// Spin is how long vain looks go on before wake-ups are armed; 0: one look.
	Spin time.Duration
	// Most is after how many vain looks wake-ups are armed if Spin has not ended by then; 0: Spin alone decides.
	Most uint32
	// Looks is after how many vain looks the processor is yielded each time; 0: never.
	Looks uint32
	// Goroutines is how many of these yields there are for one that is to goroutines too; 0: none is.
	Goroutines uint32
	// Recent: it spins only if the wait before ended within Spin.
	Recent bool
	// Earn is for how much longer than Spin it may look for more of a stream: for as long as packets of streams have
	// kept it busy, and never longer than this.
	Earn time.Duration
	// Processors is with how many processors for goroutines (GOMAXPROCS) it begins to spin; with fewer, looking keeps
	// the only one from those who are waited for. 0: it always spins.
	Processors int
}

// On returns the policy in a process with this many processors for goroutines (GOMAXPROCS).
func (p Policy) On(processors int) Policy {
	if processors == 1 && p.Goroutines > 0 {
		p.Goroutines = 1 // no other thread runs them
	}
	if processors < p.Processors {
		p.Spin = 0
	}
	return p
}

// At returns what follows the nth vain look in a row, the first of which is 1: Look or a yield. After none (0) it is Look.
func (p *Policy) At(n uint32) Step {
	if p.Looks == 0 || n == 0 || n%p.Looks != 0 {
		return Look
	}
	return p.yield(n)
}

// yield returns which yield follows the nth vain look in a row, if one does.
func (p *Policy) yield(n uint32) Step {
	if p.Goroutines == 1 || p.Goroutines > 1 && n%(p.Looks*p.Goroutines) == 0 {
		return YieldAll
	}
	return YieldThread
}

// Spinner leads one waiter through its waits. It is used by one goroutine at a time.
type Spinner struct {
	Policy
	since clock.Time    // when the wait began
	turn  clock.Time    // when a look last ended
	looks uint32        // vain looks of this wait
	short bool          // the wait before ended within Spin
	left  time.Duration // earned
}

// Begin begins a wait: there is nothing now. It returns Look, or Arm if looking again is not worth it.
func (s *Spinner) Begin(now clock.Time) Step {
	s.since, s.turn, s.looks = now, now, 0
	if s.Spin == 0 || s.Recent && !s.short {
		return Arm
	}
	return Look
}

// Due counts a vain look. If it returns false the next one follows at once; otherwise Next says what does.
func (s *Spinner) Due() bool {
	s.looks++
	return s.Looks == 0 || s.looks%s.Looks == 0 || s.looks == s.Most
}

// Next returns what follows a vain look. If more, somebody asks it to go on looking however long it takes.
func (s *Spinner) Next(now clock.Time, more bool) Step {
	took := now.Sub(s.turn)
	s.turn = now
	if !more && (s.Most > 0 && s.looks >= s.Most || now.Sub(s.since) >= s.Spin && !s.spend(took)) {
		return Arm
	}
	return s.At(s.looks)
}

// End ends a wait, in which the waiter may have slept: there is something.
func (s *Spinner) End(now clock.Time) { s.short = now.Sub(s.since) < s.Spin }

// Forget makes the next wait begin as if none had been short.
func (s *Spinner) Forget() { s.short = false }

// Worked records a look that found something and that took the time since the last one, with the number of packets,
// and begins the next wait.
func (s *Spinner) Worked(now clock.Time, packets int) {
	if packets >= streamPackets {
		s.left = min(s.left+now.Sub(s.turn), s.Earn)
	}
	s.Begin(now)
}

// spend takes the time of a look beyond Spin from what was earned, and reports whether some of it is left.
func (s *Spinner) spend(took time.Duration) bool {
	s.left = max(s.left-took, 0)
	return s.left > 0
}
