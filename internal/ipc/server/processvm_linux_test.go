package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/cpu/hugepages"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestProcessVM: with process_vm_readv and process_vm_writev the kernel copies between the driver and the program's
// memory, without allocation; memory that is not mapped is an error, at registration too.
func TestProcessVM(t *testing.T) {
	h, c := pair(t, server.Config{}, client.Options{Path: command.MemoryProcessVM})
	if c.MemoryPath() != command.MemoryProcessVM || h.Only(t).Config.MemoryPath != command.MemoryProcessVM {
		t.Fatalf("the program uses memory path %d, the driver %s; want process_vm", c.MemoryPath(), h.Only(t).Config.MemoryPath)
	}
	b, addr := fake.Memory(t, 100_000)
	for i := 0; i < len(b); i += 4096 { // it is there: for what is not, the driver waits 2 ms, in which a busy machine may do nothing
		b[i] = 1
	}
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))})
	if err != nil || m.Path != command.MemoryProcessVM {
		t.Fatal(m, err)
	}
	a := h.Only(t).Region(m.Handle).Remote
	if err := a.Write(addr+10, []byte("hello")); err != nil || string(b[10:15]) != "hello" {
		t.Error(err, b[10:15])
	}
	got := make([]byte, 5)
	if err := a.Read(got, addr+10); err != nil || string(got) != "hello" {
		t.Error(err, got)
	}
	err = a.Read(got, 8)
	if d, slow := a.(memory.Deferred); slow && errors.Is(err, memory.ErrBlock) {
		d.Start(&memory.Transfer{Kind: memory.CopyRead, Addr: 8, Data: got})
		var out [1]memory.Finished
		await.Eventually(t, "the copy ends", func() bool { return d.Finish(out[:]) == 1 })
		err = out[0].Err
	}
	if !errors.Is(err, memory.ErrGone) {
		t.Errorf("reading unmapped memory: error %v, want %v", err, memory.ErrGone)
	}
	if _, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: 8, Length: 8}); !fake.IsCode(err, command.Invalid) {
		t.Errorf("registering unmapped memory: error %v, want invalid", err)
	}
	if n := fake.Allocs(func() { _ = a.Read(got, addr) }); n != 0 {
		t.Errorf("%v allocations per copy, want none", n)
	}
}

// TestLargePages: the driver asks for large pages for memory that the kernel copies for it, and not with a copier.
// The memory keeps its content.
func TestLargePages(t *testing.T) {
	modes, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || bytes.Contains(modes, []byte("[never]")) {
		t.Skipf("this system has no large pages: %s %v", modes, err)
	}
	for _, path := range []command.MemoryPath{command.MemoryProcessVM, command.MemoryCopier} {
		_, c := pair(t, server.Config{}, client.Options{Path: path})
		b, addr := fake.Memory(t, 3*hugepages.Size)
		for i := range b {
			b[i] = byte(i / 4096)
		}
		if _, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))}); err != nil {
			t.Fatal(err)
		}
		if got := advised(t, addr+hugepages.Size); got != (path == command.MemoryProcessVM) {
			t.Errorf("memory path %d: large pages asked for: %t, want them with process_vm only", path, got)
		}
		for i := range b {
			if b[i] != byte(i/4096) {
				t.Fatalf("byte %d is %d", i, b[i])
			}
		}
	}
}

// advised reports whether large pages were asked for at an address of this process.
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

// TestForcedPathIsKept: the driver's configuration and the program's environment can force a memory path. A program
// that asks for another path than the driver's is refused, and so is an unknown name.
func TestForcedPathIsKept(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{Path: command.MemoryCopier})
	if c := dial(t, path, client.Options{}); c.MemoryPath() != command.MemoryCopier {
		t.Errorf("memory path %d, want the copier", c.MemoryPath())
	}
	if _, err := client.Dial(ctx, path, client.Options{Path: command.MemoryProcessVM}); !fake.IsCode(err, command.Unsupported) {
		t.Errorf("another path than the driver's: error %v, want unsupported", err)
	}
	t.Setenv(client.PathVariable, "tea")
	if _, err := client.Dial(ctx, path, client.Options{}); !fake.IsCode(err, command.Invalid) {
		t.Errorf("an unknown path: error %v, want invalid", err)
	}
	t.Setenv(client.PathVariable, "copier")
	if c := dial(t, path, client.Options{}); c.MemoryPath() != command.MemoryCopier {
		t.Errorf("memory path %d, want the copier", c.MemoryPath())
	}
}
