package wait

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestDo_SleepsAtRealTimePriority: a thread with real-time priority that has looked in vain for long sleeps between looks,
// because sched_yield(2) gives its processor to no thread of lower priority, which may be the one it waits for.
func TestDo_SleepsAtRealTimePriority(t *testing.T) {
	runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
	param := struct{ priority int32 }{1}
	if _, _, err := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&param))); err != 0 {
		t.Skip("real-time priority is not permitted:", err)
	}
	if !realTime() {
		t.Fatal("a thread with real-time priority has none")
	}
	const yields = 50
	switches := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
			t.Fatal(err)
		}
		return u.Nvcsw
	}
	before := switches()
	for range yields {
		Do(YieldLower)
	}
	// A sleep is over without a switch where its time has passed before the thread is off the processor, as on a machine
	// that takes the processor away for that long. sched_yield(2) gives none of them.
	if n := switches() - before; n < yields/2 {
		t.Errorf("slept %d times in %d yields, want %d at least", n, yields, yields/2)
	}
}
