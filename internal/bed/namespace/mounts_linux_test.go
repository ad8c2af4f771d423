package namespace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What is mounted is there for what runs behind it, and nowhere else.
func TestMounts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	Mounts(t, func() error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k") }, func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(file); err == nil {
		t.Error("what was written to the mount is outside of it")
	}
}
