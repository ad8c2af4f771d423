package registry

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/softvpi/softvpi/internal/bed/namespace"
	"golang.org/x/sys/unix"
)

// onDisk runs fn with a file system of its own of that size, in a mount namespace that ends with it.
func onDisk(t *testing.T, size string, fn func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	namespace.Mounts(t, func() error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size) }, func() { fn(dir) })
}

// A full disk: the change that does not fit fails and leaves what was there, in memory and in the file.
func TestFullDisk(t *testing.T) {
	onDisk(t, "256k", func(dir string) {
		r := open2(t, dir)
		var err error
		var before string
		for i := 0; err == nil; i++ {
			before = dump(r)
			if i > 100 {
				t.Error("a disk of 256 kB takes 2 MB")
				return
			}
			err = r.Set(path(t, roce), String(fmt.Sprint("value ", i), strings.Repeat("x", 10000)))
		}
		var e *StoreError
		if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &e) {
			t.Errorf("got %v, want a *StoreError of ENOSPC", err)
		}
		if dump(r) != before {
			t.Error("the change that failed is seen")
		}
		r.Close()
		r = open2(t, dir)
		if aside, cause := r.SetAside(); aside != "" || dump(r) != before {
			t.Errorf("the file is not as before the change that failed: %v", cause)
		}
		r.Close()
	})
}

// A disk that is full from the start has no room for the file.
func TestNoRoomForTheFile(t *testing.T) {
	onDisk(t, "8k", func(dir string) {
		var e *StoreError
		if _, err := Open(dir); !errors.As(err, &e) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v, want a *StoreError of ENOSPC", err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
			t.Errorf("left behind: %v, %v", list, err)
		}
	})
}

func TestReadOnlyDisk(t *testing.T) {
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
