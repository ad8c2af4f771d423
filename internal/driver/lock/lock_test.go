package lock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
