package wait

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDescriptors: a descriptor that becomes readable ends the sleep. A bell is read empty; another
// descriptor is left to its owner.
func TestDescriptors(t *testing.T) {
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var fds [2]int
	for i := range fds {
		if fds[i], err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fds[i])
	}
	b.Watch(fds[:1], fds[1:])
	var v [8]byte
	for i, drained := range []bool{false, true} {
		if _, err := unix.Write(fds[i], []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		b.Sleep(-1)
		if _, err := unix.Read(fds[i], v[:]); (err == unix.EAGAIN) != drained {
			t.Errorf("descriptor %d: %v", i, err)
		}
	}
	b.Watch(nil, nil)
	if _, err := unix.Write(fds[0], []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if b.Sleep(5 * time.Millisecond); time.Since(began) < 5*time.Millisecond {
		t.Error("a descriptor that is no longer watched ended the sleep")
	}
}

// TestBrokenBell: a bell that can only be at its end, because the program has closed it, ends one sleep and not every
// one; the others still ring. A new bell with the number of an old one is watched.
func TestBrokenBell(t *testing.T) {
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var broken, good [2]int
	for _, p := range []*[2]int{&broken, &good} {
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
	}
	defer unix.Close(broken[0])
	b.Watch(nil, []int{broken[0], good[0]})
	unix.Close(broken[1])
	b.Sleep(-1)
	began := time.Now()
	if b.Sleep(5 * time.Millisecond); time.Since(began) < 5*time.Millisecond {
		t.Error("a broken bell ended a second sleep")
	}
	rings := func() {
		t.Helper()
		if _, err := unix.Write(good[1], []byte{1}); err != nil {
			t.Fatal(err)
		}
		b.Sleep(-1)
		if _, err := unix.Read(good[0], make([]byte, 1)); err != unix.EAGAIN {
			t.Errorf("a bell was not read empty: %v", err)
		}
	}
	rings()
	if err := unix.Dup3(good[0], broken[0], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	unix.Close(good[0])
	good[0] = broken[0]
	b.Watch(nil, []int{good[0]})
	rings()
}

// TestPoller_SleepsOnAfterSignals: a signal to the sleeping thread, as the runtime sends to stop it, does not end a sleep.
func TestPoller_SleepsOnAfterSignals(t *testing.T) {
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	thread := make(chan int)
	done := make(chan time.Duration)
	const d = 50 * time.Millisecond
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		began := time.Now()
		b.Sleep(d)
		done <- time.Since(began)
	}()
	tid := <-thread
	for {
		select {
		case took := <-done:
			if took < d {
				t.Errorf("woken after %v of %v by a signal", took, d)
			}
			return
		default:
			if err := unix.Tgkill(unix.Getpid(), tid, unix.SIGURG); err != nil {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
}
