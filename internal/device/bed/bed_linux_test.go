package bed

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDescriptors: a descriptor that becomes readable ends the sleep. An eventfd to drain is read empty; another
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
