package client

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// transfers carries out deferred copies until all of them have ended, and returns their results.
func transfers(t *testing.T, d memory.Deferred, list ...memory.Transfer) []memory.Finished {
	t.Helper()
	var done []memory.Finished
	out := make([]memory.Finished, 8)
	total := len(list)
	await.Eventually(t, "copies", func() bool {
		for len(list) > 0 && d.Start(&list[0]) {
			list = list[1:]
		}
		for n := d.Finish(out); n > 0; n = d.Finish(out) {
			done = append(done, out[:n]...)
		}
		return len(done) == total
	})
	return done
}

// TestCopier: with the copier, the program copies to and from its own memory for the driver: writes, reads and
// atomics, with an error where the memory is gone.
func TestCopier(t *testing.T) {
	h, c := pair(t, server.Config{}, Options{Path: command.MemoryCopier})
	if c.MemoryPath() != command.MemoryCopier || h.Only(t).Config.MemoryPath != command.MemoryCopier {
		t.Fatalf("the program uses memory path %d, the driver %s, want the copier", c.MemoryPath(), h.Only(t).Config.MemoryPath)
	}
	b, addr := fake.Memory(t, 64)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))})
	if err != nil || m.Path != command.MemoryCopier {
		t.Fatal(m, err)
	}
	d := h.Only(t).Region(m.Handle).Remote.(memory.Deferred)
	if d.Blocking() || d.Write(addr, b) == nil {
		t.Error("a copier must not block the loop")
	}
	b[32] = 40
	read := make([]byte, 5)
	done := transfers(t, d,
		memory.Transfer{Kind: memory.CopyWrite, Tag: 1, Addr: addr + 3, Data: []byte("hello"), Last: true},
		memory.Transfer{Kind: memory.CopyRead, Tag: 2, Addr: addr + 3, Data: read},
		memory.Transfer{Kind: memory.CopyFetchAdd, Tag: 3, Addr: addr + 32, Swap: 2},
		memory.Transfer{Kind: memory.CopyCompareSwap, Tag: 4, Addr: addr + 32, Compare: 42, Swap: 7},
		memory.Transfer{Kind: memory.CopyCompareSwap, Tag: 5, Addr: addr + 32, Compare: 42, Swap: 9},
		memory.Transfer{Kind: memory.CopyRead, Tag: 6, Addr: 8, Data: make([]byte, 8)},
		memory.Transfer{Kind: memory.CopyFetchAdd, Tag: 7, Addr: addr + 33},
		memory.Transfer{Kind: memory.CopyRead, Tag: 8, Addr: addr, Data: make([]byte, d.Limit()+1)},
		memory.Transfer{Kind: 77, Tag: 9, Addr: addr},
	)
	if len(done) != 9 {
		t.Fatalf("%d copies ended, want 9", len(done))
	}
	for i, want := range []struct {
		old  uint64
		fail bool
	}{{0, false}, {0, false}, {40, false}, {42, false}, {7, false}, {0, true}, {0, true}, {0, true}, {0, true}} {
		f := done[i]
		if f.Tag != uint64(i+1) || f.Old != want.old || (f.Err != nil) != want.fail || want.fail && !errors.Is(f.Err, memory.ErrGone) {
			t.Errorf("%d: %+v, want %+v", i, f, want)
		}
	}
	if string(read) != "hello" || b[32] != 7 {
		t.Errorf("read %q and the operand is %d, want \"hello\" and 7", read, b[32])
	}
}

// TestCopierMany: many copies at a time arrive completely.
func TestCopierMany(t *testing.T) {
	h, c := pair(t, server.Config{}, Options{Path: command.MemoryCopier})
	b, addr := fake.Memory(t, 1<<20)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: uint64(len(b))})
	if err != nil {
		t.Fatal(err)
	}
	d := h.Only(t).Region(m.Handle).Remote.(memory.Deferred)
	src := make([]byte, len(b))
	for i := range src {
		src[i] = byte(i * 7 >> 3)
	}
	var list []memory.Transfer
	for off := 0; off < len(src); off += 5000 {
		piece := src[off:min(off+5000, len(src))]
		list = append(list, memory.Transfer{Kind: memory.CopyWrite, Tag: uint64(off), Addr: addr + uint64(off), Data: piece})
	}
	for _, f := range transfers(t, d, list...) {
		if f.Err != nil {
			t.Fatal(f.Err)
		}
	}
	if !bytes.Equal(b, src) {
		t.Error("the bytes copied differ from the source")
	}
}

// TestCopierHangs: a copier that hangs costs its own program its session, and nothing else.
func TestCopierHangs(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{CopierTimeout: 50 * time.Millisecond})
	c := dial(t, path, Options{Path: command.MemoryCopier})
	b, addr := fake.Memory(t, 8)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: 8})
	if err != nil {
		t.Fatal(err)
	}
	s := h.Only(t)
	d := s.Region(m.Handle).Remote.(memory.Deferred)
	c.stop.Store(true) // its copier ends soon, in the middle of its work
	await.Eventually(t, "a copy fails", func() bool {
		done := transfers(t, d, memory.Transfer{Kind: memory.CopyWrite, Addr: addr, Data: b})
		return len(done) == 1 && errors.Is(done[0].Err, memory.ErrGone)
	})
	await.Eventually(t, "disconnected", func() bool { return h.Count() == 0 })
	if _, err := c.AllocPD(ctx, 0); !fake.IsCode(err, command.Removed) || !bytes.Contains([]byte(err.Error()), []byte("copier")) {
		t.Errorf("error %v, want removed, naming the copier", err)
	}
}
