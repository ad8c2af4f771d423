package hugepages

import (
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Gather without patience makes one large page at each call, returns how far it came, and leaves the contents
// unchanged.
func TestGatherStepByStep(t *testing.T) {
	if refused() {
		t.Skip("this system has no large pages")
	}
	mem, err := unix.Mmap(-1, 0, 5*Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	for i := range mem {
		mem[i] = byte(i / 4096)
	}
	base, length := uint64(uintptr(unsafe.Pointer(&mem[0])))+4096, uint64(len(mem)-4096)
	from, to := whole(base, length)
	calls := 0
	for length > 0 {
		calls++
		done := Gather(base, length, 0)
		if done == 0 || done > length || done < length && (base+done-from)%Size != 0 {
			t.Fatalf("call %d: %d of %d bytes, want whole pages", calls, done, length)
		}
		base, length = base+done, length-done
	}
	if want := int((to - from) / Size); calls != want {
		t.Errorf("%d calls, want %d, one for each large page", calls, want)
	}
	for i := range mem {
		if mem[i] != byte(i/4096) {
			t.Fatalf("byte %d is %d, want %d", i, mem[i], byte(i/4096))
		}
	}
	if n := uint64(len(mem)); Gather(from, n-Size, time.Hour) != n-Size || Gather(from, Size-1, 0) != Size-1 {
		t.Error("Gather of large pages with patience, or of less than one, does not do all")
	}
}
