package driver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOneDriverAStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	l, err := acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if l.stale {
		t.Error("a new state directory counts as left by a crash")
	}
	if _, err := acquire(dir); !errors.Is(err, ErrRunning) {
		t.Errorf("second driver: got %v, want ErrRunning", err)
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
	l, err = acquire(dir)
	if err != nil || l.stale {
		t.Fatalf("after a clean stop: %+v, %v", l, err)
	}
	// A crash: the system lets go of the lock, the text stays.
	l.file.Close()
	l, err = acquire(dir)
	if err != nil || !l.stale {
		t.Fatalf("after a crash: %+v, %v", l, err)
	}
	l.release()
}

func TestStateDirectoryThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := acquire(filepath.Join(file, "state")); err == nil {
		t.Error("a directory below a file was accepted")
	}
}
