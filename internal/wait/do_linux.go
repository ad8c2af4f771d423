package wait

import (
	"time"

	"golang.org/x/sys/unix"
)

// Yield gives the processor to another thread that wants it. It is not inlined, so that a loop around it
// has a point at which the runtime can preempt the goroutine: a raw system call has none.
//
//go:noinline
func Yield() {
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

// nap sleeps this thread: unlike time.Sleep it keeps the goroutine on it.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}

// switches returns how often this thread's processor has run another one, which is what each used sched_yield(2) does.
func switches() (n int64, known bool) {
	var u unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return u.Nvcsw + u.Nivcsw, err == nil
}

// realTime reports whether this thread has real-time priority, for instance by chrt -f: sched_yield(2) then gives the
// processor to no thread of a lower priority.
func realTime() bool {
	const fifo, roundRobin, resetOnFork = 1, 2, 1 << 30 // sched.h
	policy, _, err := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	policy &^= resetOnFork
	return err == 0 && (policy == fifo || policy == roundRobin)
}
