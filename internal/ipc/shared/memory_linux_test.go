package shared

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestSizeIsSealed: shared memory can be neither shrunk nor grown by whoever gets its descriptor.
func TestSizeIsSealed(t *testing.T) {
	fd, mem, err := New("softvpi-test", 8192)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	defer unix.Munmap(mem)
	if err := unix.Ftruncate(fd, 0); err == nil {
		t.Error("the memory was shrunk")
	}
	if err := unix.Ftruncate(fd, 1<<20); err == nil {
		t.Error("the memory was grown")
	}
}
