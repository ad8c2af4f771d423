package testbed

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Page is the size of a page of memory.
const Page = 4096

// Resident returns how many pages of mem are in memory.
func Resident(t testing.TB, mem []byte) (n int) {
	t.Helper()
	in := make([]byte, len(mem)/Page)
	at, out := uintptr(unsafe.Pointer(&mem[0])), uintptr(unsafe.Pointer(&in[0]))
	if _, _, e := unix.Syscall(unix.SYS_MINCORE, at, uintptr(len(mem)), out); e != 0 {
		t.Fatal(e)
	}
	for _, b := range in {
		n += int(b & 1)
	}
	return n
}

// Unmap takes the page at an offset of mem away, as free does with part of a mapping.
func Unmap(t testing.TB, mem []byte, at int) {
	t.Helper()
	if _, _, e := unix.Syscall(unix.SYS_MUNMAP, uintptr(unsafe.Pointer(&mem[at])), Page, 0); e != 0 {
		t.Fatal(e)
	}
}
