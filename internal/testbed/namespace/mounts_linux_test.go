package namespace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// What is mounted is visible to the function that Mounts runs, and nowhere else.
func TestMounts(t *testing.T) {
	systemtest.Mark(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	Mounts(t, func() error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k") }, func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error("writing to the mount: ", err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Error("the file in the mount: ", err)
		}
	})
	if _, err := os.Stat(file); err == nil {
		t.Error("a file that was written to the mount is visible outside of it")
	}
}
