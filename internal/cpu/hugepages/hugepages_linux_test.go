package hugepages

import (
	"os"
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

// GatherHeap finds the heap: what is reached by a pointer is in large pages afterwards, and holds what it did. Called again and again
// without patience, it ends.
func TestGatherHeap(t *testing.T) {
	if refused() {
		t.Skip("this system has no large pages")
	}
	data := make([]byte, 8*Size)
	for i := range data {
		data[i] = byte(i / 4096)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	at := uint64(uintptr(unsafe.Pointer(&data[0])))
	found := false
	for _, x := range heapOf(maps, at) {
		found = found || x.from <= at && at+uint64(len(data)) <= x.to
	}
	if !found {
		t.Error("what has been allocated is no part of what is taken for the heap")
	}
	for calls := 0; !GatherHeap(time.Hour); calls++ {
		if calls == 1000 {
			t.Fatal("it never ends")
		}
	}
	for i := range data {
		if data[i] != byte(i/4096) {
			t.Fatalf("byte %d is %d, want %d", i, data[i], byte(i/4096))
		}
	}
}
