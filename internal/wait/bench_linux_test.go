package wait

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkStep measures what each step of a waiter costs that nobody takes advantage of.
func BenchmarkStep(b *testing.B) {
	for name, step := range map[string]func(){
		"look":        func() { sink.Load() },
		"pause":       Pause,
		"yieldThread": func() { Do(YieldThread) },
		"yieldAll":    func() { Do(YieldAll) },
		"nap":         func() { Do(Nap) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				step()
			}
		})
	}
}

var sink atomic.Uint32

// BenchmarkTimer measures how late a timer of the runtime is, where every thread sleeps meanwhile, and a nap.
func BenchmarkTimer(b *testing.B) {
	for _, d := range []time.Duration{timerLeast, timerNap, 5 * timerNap, timerFine} {
		late := func(pass func()) func(*testing.B) {
			return func(b *testing.B) {
				for b.Loop() {
					pass()
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/1e3-float64(d)/1e3, "us-late")
			}
		}
		b.Run(fmt.Sprintf("timer %v", d), late(func() { <-time.NewTimer(d).C }))
		b.Run(fmt.Sprintf("nap %v", d), late(func() { nap(d) }))
	}
}

// BenchmarkUsedYield measures a yield to a thread on the same processor that yields in its turn.
func BenchmarkUsedYield(b *testing.B) {
	var stop atomic.Bool
	ended := make(chan struct{})
	pin := func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			b.Error(err)
		}
		first := 0
		for !set.IsSet(first) {
			first++
		}
		set.Zero()
		set.Set(first)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			b.Error(err)
		}
	}
	go func() {
		defer close(ended)
		pin()
		for !stop.Load() {
			Yield()
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pin()
		used := 0
		for b.Loop() {
			if began := Now(); yields.wanted() {
				yields.sample()
			} else if Yield(); yields.used(YieldThread, Now().Sub(began)) {
				used++
			}
		}
		b.ReportMetric(100*float64(used)/float64(b.N), "%used")
	}()
	<-done
	stop.Store(true)
	<-ended
}

// BenchmarkWakeUp measures a hop between two threads that sleep: from the call that wakes one until it runs.
func BenchmarkWakeUp(b *testing.B) {
	var p [2]*Poller
	for i := range p {
		var err error
		if p[i], err = New(); err != nil {
			b.Fatal(err)
		}
		defer p[i].Close()
	}
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		for {
			p[1].Sleep(-1)
			if stop.Load() {
				return
			}
			p[0].Wake()
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		p[1].Wake()
		p[0].Sleep(-1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/hop")
	stop.Store(true)
	p[1].Wake()
	<-ended
}

// BenchmarkParkedWakeUp is BenchmarkWakeUp between goroutines on Parkers.
func BenchmarkParkedWakeUp(b *testing.B) {
	one, two := NewParker(), NewParker()
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			two.Sleep(-1)
			if stop.Load() {
				return
			}
			one.Wake()
		}
	}()
	for b.Loop() {
		two.Wake()
		one.Sleep(-1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/hop")
	stop.Store(true)
	two.Wake()
	<-ended
}

// signaled is a word that another thread counts up, with a way to sleep until it does.
type signaled struct {
	word   atomic.Uint32
	asleep atomic.Bool
	poller *Poller
}

func (s *signaled) raise() {
	s.word.Add(1)
	if s.asleep.Load() {
		s.poller.Wake()
	}
}

// await returns when the word differs from seen.
func (s *signaled) await(p Policy, seen uint32) {
	spin := Spinner{Policy: p}
	again := spin.Begin(Now()) != Arm
	for s.word.Load() == seen {
		if again {
			again = spin.Again(Now, false)
			continue
		}
		s.asleep.Store(true)
		if s.word.Load() == seen {
			s.poller.Sleep(-1)
		}
		s.asleep.Store(false)
	}
}

// BenchmarkSpin measures what spins of different lengths buy and cost: a request to another thread, which sleeps, and its
// answer after some time of work, for which the first one waits. It reports the time beyond that work (ns/op) and the
// processor time of both threads beyond it (cpu-ns/op).
func BenchmarkSpin(b *testing.B) {
	for _, work := range []time.Duration{2 * us, 20 * us, 60 * us} {
		for _, spin := range []time.Duration{0, 10 * us, 30 * us, 50 * us, 100 * us} {
			b.Run(fmt.Sprintf("answer=%v/spin=%v", work, spin), func(b *testing.B) { spinFor(b, work, spin) })
		}
	}
}

func spinFor(b *testing.B, work, spin time.Duration) {
	var request, answer signaled
	for _, s := range []*signaled{&request, &answer} {
		var err error
		if s.poller, err = New(); err != nil {
			b.Fatal(err)
		}
		defer s.poller.Close()
	}
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		for n := uint32(0); ; n++ {
			if request.await(Policy{}, n); stop.Load() {
				return
			}
			for until := Now().Add(work); Now() < until; {
			}
			answer.raise()
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := Policy{Spin: spin, Looks: 1}
	used, n := processorTime(b), uint32(0)
	for b.Loop() {
		request.raise()
		answer.await(p, n)
		n++
	}
	used = processorTime(b) - used
	b.ReportMetric(float64((b.Elapsed()-work*time.Duration(b.N)).Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(float64((used-work*time.Duration(b.N)).Nanoseconds())/float64(b.N), "cpu-ns/op")
	stop.Store(true)
	request.raise()
	<-ended
}

func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
