package ipc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/hugepages"
	"github.com/softvpi/softvpi/internal/memory"
)

func TestProcessVM(t *testing.T) {
	h, c := pair(t, ServerConfig{}, Options{Path: command.MemoryProcessVM})
	if c.MemoryPath() != command.MemoryProcessVM || h.only(t).cfg.MemoryPath != command.MemoryProcessVM {
		t.Fatalf("path %d %s", c.MemoryPath(), h.only(t).cfg.MemoryPath)
	}
	b, addr := ordinary(t, 100_000)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))})
	if err != nil || m.Path != command.MemoryProcessVM {
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

// TestLargePages: memory that the kernel copies for the driver is put into large pages, and keeps what is in it.
func TestLargePages(t *testing.T) {
	modes, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || bytes.Contains(modes, []byte("[never]")) {
		t.Skipf("this system has no large pages: %s %v", modes, err)
	}
	for _, path := range []command.MemoryPath{command.MemoryProcessVM, command.MemoryCopier} {
		_, c := pair(t, ServerConfig{}, Options{Path: path})
		b, addr := ordinary(t, 3*hugepages.Size)
		for i := range b {
			b[i] = byte(i / 4096)
		}
		if _, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))}); err != nil {
			t.Fatal(err)
		}
		if got := advised(t, addr+hugepages.Size); got != (path == command.MemoryProcessVM) {
			t.Errorf("path %d: large pages asked for: %t", path, got)
		}
		for i := range b {
			if b[i] != byte(i/4096) {
				t.Fatalf("byte %d is %d", i, b[i])
			}
		}
	}
}

// advised reports whether the kernel was asked for large pages at an address of this process.
func advised(t *testing.T, addr uint64) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	here := false
	for line := range strings.Lines(string(text)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			here = addr >= from && addr < to
		}
		if here && strings.HasPrefix(line, "VmFlags:") {
			return strings.Contains(line, " hg")
		}
	}
	return false
}

func TestForcedPathIsKept(t *testing.T) {
	h := &fakeHost{}
	_, path := serve(t, h, ServerConfig{Path: command.MemoryCopier})
	if c := dial(t, path, Options{}); c.MemoryPath() != command.MemoryCopier {
		t.Errorf("path %d", c.MemoryPath())
	}
	if _, err := Dial(ctx, path, Options{Path: command.MemoryProcessVM}); !isCode(err, command.Unsupported) {
		t.Errorf("%v", err)
	}
	t.Setenv(PathVariable, "tea")
	if _, err := Dial(ctx, path, Options{}); !isCode(err, command.Invalid) {
		t.Errorf("%v", err)
	}
	t.Setenv(PathVariable, "copier")
	if c := dial(t, path, Options{}); c.MemoryPath() != command.MemoryCopier {
		t.Errorf("path %d", c.MemoryPath())
	}
}
