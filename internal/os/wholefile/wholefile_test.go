package wholefile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// names returns the names in a directory.
func names(t *testing.T, directory string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Write replaces a file, which its owner alone can read, and leaves nothing else in the directory.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, content := range []string{"the first, which is longer", "the second", ""} {
		if err := Write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != content {
			t.Errorf("the file holds %q, want %q: %v", b, content, err)
		}
		s, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && s.Mode() != 0o600 {
			t.Errorf("mode %v, want 0600", s.Mode())
		}
		_ = os.Chmod(name, 0o644)
	}
	if all := names(t, dir); len(all) != 1 {
		t.Errorf("the directory holds %v, want the file alone", all)
	}
}

// Where Write fails, what was there stays and nothing else is left.
func TestCannot(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "none", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v, want %v", err, fs.ErrNotExist)
	}
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if Write(taken, []byte("x")) == nil {
		t.Error("a directory was replaced")
	}
	if all := names(t, dir); len(all) != 1 || all[0] != "taken" {
		t.Errorf("the directory holds %v, want what was there", all)
	}
	if SyncDirectory(filepath.Join(dir, "none")) == nil && runtime.GOOS != "windows" {
		t.Error("SyncDirectory of a directory that is not there gives no error")
	}
}

// A reader finds one of the whole files while others write.
func TestReadersSeeWholeFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows an open file cannot be replaced")
	}
	name := filepath.Join(t.TempDir(), "file")
	page := func(c byte) []byte { return bytes.Repeat([]byte{c}, 64<<10) }
	if err := Write(name, page('a')); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for c := range byte(2) {
		writers.Go(func() {
			for range 20 {
				if err := Write(name, page('a'+c)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() {
		writers.Wait()
		close(over)
	}()
	for {
		b, err := os.ReadFile(name)
		if err != nil || len(b) != 64<<10 || !bytes.Equal(b, page(b[0])) {
			t.Fatalf("read %d bytes, %v; want one of the whole files", len(b), err)
		}
		select {
		case <-over:
			return
		default:
		}
	}
}
