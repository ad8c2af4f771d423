package reach

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
	"golang.org/x/sys/unix"
)

// TestWriteAllStopsAtAHole writes pieces to three pages, the middle one unmapped: the pieces before it are written,
// and the error says how many.
func TestWriteAllStopsAtAHole(t *testing.T) {
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	if err := unix.Mprotect(mem[page:2*page], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	vm := NewProcessVM(os.Getpid(), &Movers{}, func() {})
	defer vm.Close()
	p := newVMRegion(vm)
	p.patience = time.Minute // the hole is found at once, but the machine may be busy
	data := bytes.Repeat([]byte{7}, 1024)
	var pieces []memory.Piece
	for off := uint64(0); off < 3*page; off += 1024 {
		pieces = append(pieces, memory.Piece{Addr: base + off, Data: data})
	}
	n, err := p.WriteAll(pieces)
	if errors.Is(err, memory.ErrGone) && n == 0 {
		var probe [16]byte
		if p.Read(probe[:], base) != nil {
			t.Skip("the kernel does not let a process reach its own memory")
		}
	}
	if n != 4 || !errors.Is(err, memory.ErrGone) {
		t.Fatalf("%d pieces written, %v; want the 4 of the first page and memory.ErrGone", n, err)
	}
	if !bytes.Equal(mem[:page], bytes.Repeat([]byte{7}, page)) {
		t.Error("the first page was not written")
	}
	if n, err := p.WriteAll(pieces[8:]); n != 4 || err != nil {
		t.Errorf("%d pieces of the last page written (%v), want 4", n, err)
	}
	many := make([]memory.Piece, 3*vmVectors+1)
	for i := range many {
		many[i] = memory.Piece{Addr: base + uint64(i%64), Data: data[:1]}
	}
	if n, err := p.WriteAll(many); n != len(many) || err != nil {
		t.Errorf("%d of %d pieces written, %v", n, len(many), err)
	}
}
