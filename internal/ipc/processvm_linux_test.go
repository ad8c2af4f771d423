package ipc

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
)

// TestWriteAllStopsAtAHole writes pieces to three pages of which the middle one is
// not mapped: what lies before it is written, and the error is of the piece in it.
func TestWriteAllStopsAtAHole(t *testing.T) {
	const page = 4096
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	if err := unix.Mprotect(mem[page:2*page], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	p := newProcessVM(os.Getpid())
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
		t.Errorf("%d pieces of the last page written, %v", n, err)
	}
	many := make([]memory.Piece, 3*vmVectors+1)
	for i := range many {
		many[i] = memory.Piece{Addr: base + uint64(i%64), Data: data[:1]}
	}
	if n, err := p.WriteAll(many); n != len(many) || err != nil {
		t.Errorf("%d of %d pieces written, %v", n, len(many), err)
	}
}

func TestProcessVM(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{Path: PathProcessVM})
	if c.MemoryPath() != PathProcessVM || h.only(t).cfg.MemoryPath != "process_vm" {
		t.Fatalf("path %d %s", c.MemoryPath(), h.only(t).cfg.MemoryPath)
	}
	b, addr := ordinary(t, 100_000)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))})
	if err != nil || m.Path != PathProcessVM {
		t.Fatal(m, err)
	}
	a := h.only(t).region(m.Handle).Remote
	if err := a.Write(addr+10, []byte("hello")); err != nil || string(b[10:15]) != "hello" {
		t.Error(err, b[10:15])
	}
	got := make([]byte, 5)
	if err := a.Read(got, addr+10); err != nil || string(got) != "hello" {
		t.Error(err, got)
	}
	if err := a.Read(got, 8); !errors.Is(err, memory.ErrGone) {
		t.Errorf("unmapped: %v", err)
	}
	if _, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: 8, Length: 8}); !isCode(err, command.Invalid) {
		t.Errorf("register what is not there: %v", err)
	}
	if n := allocs(func() { _ = a.Read(got, addr) }); n != 0 {
		t.Errorf("%v allocations a copy", n)
	}
}

func TestForcedPathIsKept(t *testing.T) {
	h := &fakeHost{}
	_, path := serve(t, h, ServerConfig{Path: PathCopier})
	if c := dial(t, path, Options{}); c.MemoryPath() != PathCopier {
		t.Errorf("path %d", c.MemoryPath())
	}
	if _, err := Dial(ctx, path, Options{Path: PathProcessVM}); !isCode(err, command.Unsupported) {
		t.Errorf("%v", err)
	}
	t.Setenv(PathVariable, "tea")
	if _, err := Dial(ctx, path, Options{}); !isCode(err, command.Invalid) {
		t.Errorf("%v", err)
	}
	t.Setenv(PathVariable, "copier")
	if c := dial(t, path, Options{}); c.MemoryPath() != PathCopier {
		t.Errorf("path %d", c.MemoryPath())
	}
}
