package client

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestHostileArguments: invalid handles, segments and values are ordinary errors.
func TestHostileArguments(t *testing.T) {
	_, c := pair(t, server.Config{}, Options{})
	if err := c.Destroy(ctx, command.KindCQ, 0xffffffff); !fake.IsCode(err, command.NotFound) {
		t.Errorf("destroying an unknown CQ: error %v, want not found", err)
	}
	if err := c.freeSegment(77); !fake.IsCode(err, command.NotFound) {
		t.Errorf("freeing an unknown segment: error %v, want not found", err)
	}
	if _, _, err := c.AllocSegment(ctx, 0); !fake.IsCode(err, command.Invalid) {
		t.Errorf("a segment of no bytes: error %v, want invalid", err)
	}
	if _, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: ^uint64(0), Length: 10}); err != nil &&
		!fake.IsCode(err, command.Invalid) {
		t.Errorf("a region that wraps: error %v, want none or invalid", err)
	}
}

// TestHostileRings: if a program overwrites everything it has mapped, its rings end with errors in the driver.
func TestHostileRings(t *testing.T) {
	h, c := pair(t, server.Config{}, Options{Path: command.MemoryCopier})
	s := h.Only(t)
	q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 16})
	if err != nil {
		t.Fatal(err)
	}
	b, addr := fake.Memory(t, 64)
	m, err := c.RegisterMemory(ctx, command.RegisterMemory{Base: addr, Length: 64})
	if err != nil {
		t.Fatal(err)
	}
	l := s.Region(m.Handle).Remote.(memory.Deferred)
	for i := range c.Arena(0) {
		c.Arena(0)[i] = 0xa5
	}
	for i := 0; ; i++ {
		if _, err := s.CQs[q.Handle].Push(&ring.CQE{}); err != nil {
			break
		}
		if i > int(q.Depth) {
			t.Fatal("the overwritten CQ still takes completions")
		}
	}
	if _, _, err := s.Doorbells.Drain(make([]uint32, 8)); err == nil {
		t.Error("the overwritten doorbells give no error")
	}
	s.Config.Notify(0, ^uint64(0))
	s.Config.Notify(99, 0)
	c.stop.Store(true) // its copier ends soon and does not act on what is written here then
	await.Eventually(t, "the copier's rubbish is noticed", func() bool {
		binary.LittleEndian.PutUint32(c.copier[64:], 12345)
		done := transfers(t, l, memory.Transfer{Kind: memory.CopyWrite, Addr: addr, Data: b})
		return len(done) == 1 && errors.Is(done[0].Err, memory.ErrGone)
	})
	await.Eventually(t, "disconnected", func() bool { return h.Count() == 0 })
}
