package registry

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/namespace"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
	"golang.org/x/sys/unix"
)

// onDisk runs fn with a file system of the given size, in a mount namespace of its own.
func onDisk(t *testing.T, size string, fn func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	namespace.Mounts(t, func() error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size) }, func() { fn(dir) })
}

// TestFullDisk: on a full disk a change that does not fit fails and leaves memory and file as they were.
func TestFullDisk(t *testing.T) {
	systemtest.Mark(t)
	onDisk(t, "256k", func(dir string) {
		r := open2(t, dir)
		var err error
		var before string
		for i := 0; err == nil; i++ {
			before = dump(r)
			if i > 100 {
				t.Error("a disk of 256 kB holds 2 MB")
				return
			}
			err = r.Set(path(t, roce), String(fmt.Sprint("value ", i), strings.Repeat("x", 10000)))
		}
		var e *StoreError
		if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &e) {
			t.Errorf("got %v, want a *StoreError of ENOSPC", err)
		}
		if dump(r) != before {
			t.Error("the change that failed can be read")
		}
		r.Close()
		r = open2(t, dir)
		if aside, cause := r.SetAside(); aside != "" || dump(r) != before {
			t.Errorf("the file is not as before the change that failed: %v", cause)
		}
		r.Close()
	})
}

// TestNoRoomForTheFile: on a disk that is full from the start Open fails and leaves nothing behind.
func TestNoRoomForTheFile(t *testing.T) {
	systemtest.Mark(t)
	onDisk(t, "8k", func(dir string) {
		var e *StoreError
		if _, err := Open(dir); !errors.As(err, &e) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v, want a *StoreError of ENOSPC", err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
			t.Errorf("the directory holds %v (%v), want nothing", list, err)
		}
	})
}

func TestReadOnlyDisk(t *testing.T) {
	systemtest.Mark(t)
	onDisk(t, "1m", func(dir string) {
		r := open2(t, dir)
		if err := r.Set(path(t, roce), DWord("roce_mode", 0)); err != nil {
			t.Error(err)
			return
		}
		r.Close()
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Error(err)
			return
		}
		checkVolatile(t, dir)
	})
}
