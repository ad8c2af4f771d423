package shared

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What is shared cannot be made smaller under who made it.
func TestSizeIsSealed(t *testing.T) {
	fd, mem, err := New("softvpi-test", 8192)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	defer unix.Munmap(mem)
	if err := unix.Ftruncate(fd, 0); err == nil {
		t.Error("shrunk")
	}
	if err := unix.Ftruncate(fd, 1<<20); err == nil {
		t.Error("grown")
	}
}
