package client

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestYieldPolicy_YieldsAfterEachLookWhileYieldsAreUsed: a poller that is alone offers the processor once every
// patience looks. While others take the offers it offers after each look, until contendedOffers offers in a row were not taken.
func TestYieldPolicy_YieldsAfterEachLookWhileYieldsAreUsed(t *testing.T) {
	var c yieldPolicy
	offers := func(looks uint32) (n int) {
		for i := uint32(1); i <= looks; i++ {
			if i%patience == 0 || c.offers.Load() > 0 {
				n++
			}
		}
		return n
	}
	if n := offers(4 * patience); n != 4 {
		t.Errorf("alone: %d offers in %d looks, want 4", n, 4*patience)
	}
	c.offered(takenTime)
	if n := offers(patience); n != patience {
		t.Errorf("contended: %d offers in %d looks, want all", n, patience)
	}
	for range contendedOffers - 1 {
		c.offered(takenTime - 1)
	}
	if n := offers(patience); n != patience {
		t.Errorf("after %d offers that nobody took: %d offers in %d looks, want all", contendedOffers-1, n, patience)
	}
	c.offered(takenTime - 1)
	if n := offers(patience); n != 1 {
		t.Errorf("after %d offers that nobody took: %d offers in %d looks, want 1", contendedOffers, n, patience)
	}
}

// TestYieldPolicy_YieldsAfterPatienceLooksWhenAlone: only the last of patience looks offers the processor.
func TestYieldPolicy_YieldsAfterPatienceLooksWhenAlone(t *testing.T) {
	var c yieldPolicy
	for i := uint32(1); i < patience; i++ {
		if c.poll(i) {
			t.Fatalf("look %d offered the processor", i)
		}
	}
	if !c.poll(patience) {
		t.Errorf("look %d did not offer the processor", patience)
	}
}

// TestYieldPolicy_NapsSeldomer: the gap between naps doubles up to maxGap, and starts again at firstGap after a long rest.
func TestYieldPolicy_NapsSeldomer(t *testing.T) {
	var c yieldPolicy
	now := time.Now()
	gap := time.Duration(0)
	for i := range 20 {
		if gap > 0 && c.nap(now.Add(gap-1)) {
			t.Fatalf("nap %d came sooner than %v after the one before", i, gap)
		}
		now = now.Add(gap)
		if !c.nap(now) {
			t.Fatalf("nap %d did not come %v after the one before", i, gap)
		}
		if gap = min(2*gap, maxGap); gap == 0 {
			gap = firstGap
		}
		if c.gap != gap {
			t.Fatalf("gap after nap %d is %v, want %v", i, c.gap, gap)
		}
	}
	c.nap(now.Add(longRest + 1))
	if c.gap != firstGap {
		t.Errorf("gap after a long rest is %v, want %v", c.gap, firstGap)
	}
}

// TestYieldPolicy_CountsOnlyUsedYields: only offers that were taken count towards weariness, and
// contendedOffers that were not clear the count.
func TestYieldPolicy_CountsOnlyUsedYields(t *testing.T) {
	var c yieldPolicy
	for range 2 * wearyOffers {
		c.offered(0)
	}
	if n := c.taken.Load(); n != 0 {
		t.Errorf("%d offers count as taken, want 0", n)
	}
	for range 2 * wearyOffers {
		c.offered(takenTime)
	}
	if n := c.taken.Load(); n != wearyOffers {
		t.Errorf("%d offers count as taken, want %d", n, wearyOffers)
	}
	for range contendedOffers {
		c.offered(0)
	}
	if n := c.taken.Load(); n != 0 {
		t.Errorf("%d offers count as taken once alone, want 0", n)
	}
}

// TestUrgentPollersSleep: a thread with real-time priority that has looked in vain for long sleeps between looks,
// because sched_yield(2) gives its processor to no thread of lower priority, which may be the one it waits for.
func TestUrgentPollersSleep(t *testing.T) {
	runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
	param := struct{ priority int32 }{1}
	if _, _, err := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, 0, 1, uintptr(unsafe.Pointer(&param))); err != 0 {
		t.Skip("real-time priority is not permitted:", err)
	}
	if !urgent() {
		t.Fatal("a thread with real-time priority is not urgent")
	}
	const polls = 50
	switches := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
			t.Fatal(err)
		}
		return u.Nvcsw
	}
	var c yieldPolicy
	before := switches()
	for n := range uint32(polls) {
		if !c.poll(urgentLooks + n*patience) {
			t.Fatal("the processor was not offered")
		}
	}
	if n := switches() - before; n < polls {
		t.Errorf("slept %d times in %d polls", n, polls)
	}
}
