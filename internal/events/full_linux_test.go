package events

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// mount mounts a small file system of its own at a directory and returns it.
func mount(t *testing.T, options string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestRealFullDisk: events are kept in memory while the disk is full, and written when it has room again.
func TestRealFullDisk(t *testing.T) {
	dir := mount(t, "size=64k")
	l := open(t, Config{Directory: filepath.Join(dir, "events")})
	l.Raise(0, up(0))
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 64<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	n := 1
	for ; l.Kept() == nil && n < 1000; n++ { // a page of the file may have room left
		l.Raise(0, up(n))
	}
	if !errors.Is(l.Kept(), unix.ENOSPC) {
		t.Fatalf("%v after %d events", l.Kept(), n)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	l.Raise(0, up(n))
	if err := l.Kept(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range all(t, open(t, Config{Directory: filepath.Join(dir, "events")}), Query{}).Events {
		if r.Symbol == "LinkUp" {
			got = append(got, r.Adapter)
		} else if r.Symbol != "NothingKept" {
			t.Errorf("the event is %+v, want NothingKept", r)
		}
	}
	if d := cmp.Diff(numbers(0, n), got); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestReadOnlyDisk: on a read-only file system the stored events can be read, and new ones are in memory.
func TestReadOnlyDisk(t *testing.T) {
	dir := mount(t, "size=256k")
	l := open(t, Config{Directory: dir})
	l.Raise(0, up(0))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("remount: %v", err)
	}
	l = open(t, Config{Directory: dir})
	l.Raise(0, up(1))
	if d := cmp.Diff([]string{"0", "", "1"}, names(all(t, l, Query{}).Events)); d != "" || !errors.Is(l.Kept(), unix.EROFS) {
		t.Error(d, l.Kept())
	}
}
