package server_test

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/client"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestSegments: a program allocates segments that the driver maps, within its budget, registers regions in them and
// frees them.
func TestSegments(t *testing.T) {
	h, c := pair(t, server.Config{Memory: memoryFor(1<<20, 2<<20), MaxSegments: 2}, client.Options{})
	s := h.Only(t)
	id, mem, err := c.AllocSegment(ctx, 100_000)
	if err != nil || len(mem) != 100_000 {
		t.Fatal(len(mem), err)
	}
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Length: 1000, Segment: id, SegmentOffset: 99_000})
	if err != nil || m.Path != command.MemoryMapped {
		t.Fatal(m, err)
	}
	copy(mem[99_000:], "from the program")
	got := s.Region(m.Handle)
	if !bytes.HasPrefix(got.Bytes, []byte("from the program")) || len(got.Bytes) != 1000 {
		t.Errorf("the driver sees %q, want what the program wrote", got.Bytes[:20])
	}
	for _, r := range []command.RegisterMemory{
		{Length: 1, Segment: id + 1}, {Length: 2, Segment: id, SegmentOffset: 102_399},
		{Length: ^uint64(0), Segment: id, SegmentOffset: 2}, {Length: 1, Segment: id, SegmentOffset: ^uint64(0)},
	} {
		if _, err := c.RegisterMemory(ctx, r); err == nil {
			t.Errorf("the registration %+v, beyond the segment, was accepted", r)
		}
	}
	if _, _, err := c.AllocSegment(ctx, 1<<20+attachedBytes); !fake.IsCode(err, command.Exhausted) {
		t.Errorf("a segment beyond the budget: error %v, want exhausted", err)
	}
	if _, _, err := c.AllocSegment(ctx, 1<<60); !fake.IsCode(err, command.Invalid) {
		t.Errorf("a huge segment: error %v, want invalid", err)
	}
	// The segment is freed while a region lies in it: the driver keeps its mapping until the region is gone.
	if err := c.FreeSegment(id); err != nil {
		t.Fatal(err)
	}
	got.Bytes[0]++
	if _, err := c.RegisterMemory(ctx, command.RegisterMemory{Length: 1, Segment: id}); !fake.IsCode(err, command.NotFound) {
		t.Errorf("a region in a freed segment: error %v, want not found", err)
	}
	if err := c.Destroy(ctx, command.KindMemory, m.Handle); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.AllocSegment(ctx, 1<<20); err != nil {
		t.Errorf("the whole budget after all was freed: %v", err)
	}
	if err := c.FreeSegment(99); !fake.IsCode(err, command.NotFound) {
		t.Errorf("freeing an unknown segment: error %v, want not found", err)
	}
}

// TestSegmentsOfAllPrograms: what one program takes of the common budget is not available to others until it is
// freed, also by the program's end.
func TestSegmentsOfAllPrograms(t *testing.T) {
	h := &fake.Host{}
	_, path := fake.Serve(t, h, server.Config{Memory: memoryFor(64<<20, 64<<20)})
	a, b := dial(t, path, client.Options{}), dial(t, path, client.Options{})
	if _, _, err := a.AllocSegment(ctx, 45<<20); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.AllocSegment(ctx, 45<<20); !fake.IsCode(err, command.Exhausted) {
		t.Errorf("a segment beyond the common budget: error %v, want exhausted", err)
	}
	a.Close()
	await.Eventually(t, "the budget is back", func() bool {
		_, _, err := b.AllocSegment(ctx, 45<<20)
		return err == nil
	})
}

// TestLargeSegmentsComeAtOnce: a large segment is usable before all of its memory is populated. It can be freed at
// once, and its budget is available again then.
func TestLargeSegmentsComeAtOnce(t *testing.T) {
	const size = server.PopulateFirst + 64<<20
	h, c := pair(t, server.Config{Memory: memoryFor(size, 2*size)}, client.Options{})
	for range 3 {
		id, mem, err := c.AllocSegment(ctx, size)
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.RegisterMemory(ctx, command.RegisterMemory{Length: size, Segment: id})
		if err != nil {
			t.Fatal(err)
		}
		mem[size-1] = 7
		if got := h.Only(t).Region(m.Handle).Bytes; got[size-1] != 7 || got[size-2] != 0 {
			t.Errorf("the driver sees %d and %d at the end", got[size-1], got[size-2])
		}
		if err := c.Destroy(ctx, command.KindMemory, m.Handle); err != nil {
			t.Fatal(err)
		}
		if err := c.FreeSegment(id); err != nil {
			t.Fatal(err)
		}
	}
	id, mem, err := c.AllocSegment(ctx, size)
	if err != nil {
		t.Fatal(err)
	}
	clear(mem) // while the driver may still populate it
	if err := c.FreeSegment(id); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.AllocSegment(ctx, size); err != nil {
		t.Fatal(err)
	}
	c.Close() // in the middle of it
}
