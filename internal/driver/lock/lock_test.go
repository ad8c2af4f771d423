package lock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/softvpi/softvpi/internal/os/ownfile"
)

func TestOneDriverAStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if l.Stale {
		t.Error("a new state directory counts as left by a crash")
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrRunning) {
		t.Errorf("second driver: got %v, want ErrRunning", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	l, err = Acquire(dir)
	if err != nil || l.Stale {
		t.Fatalf("after a clean stop: %+v, %v", l, err)
	}
	// After a crash the system has released the lock, and the text is still there.
	l.file.Close()
	l, err = Acquire(dir)
	if err != nil || !l.Stale {
		t.Fatalf("after a crash: %+v, %v", l, err)
	}
	l.Release()
}

func TestStateDirectoryThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(filepath.Join(file, "state")); err == nil {
		t.Error("a directory below a file was accepted")
	}
}

// TestLinkInPlaceOfTheLock: in a directory where somebody has laid a link in place of the lock's file, what it names is not
// written to.
func TestLinkInPlaceOfTheLock(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "driver.lock")); err != nil {
		t.Skip(err)
	}
	var e *ownfile.Error
	if l, err := Acquire(dir); !errors.As(err, &e) {
		t.Errorf("got %v, want an error about the link", err)
		if l != nil {
			l.Release()
		}
	}
	if b, _ := os.ReadFile(victim); string(b) != "as it was" {
		t.Errorf("what the link names holds %q", b)
	}
}
