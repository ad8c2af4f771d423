package client

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestArenasComeBeforeTheirRings: when a program gets the answer that names a ring in a new arena, it has mapped that
// arena.
func TestArenasComeBeforeTheirRings(t *testing.T) {
	h, c := pair(t, server.Config{}, Options{})
	s := h.Only(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 4096})
				if err != nil {
					t.Error(err)
					return
				}
				g := ring.Geometry{Entries: int(q.Depth), Stride: int(q.Stride)}
				r, err := ring.OpenCQ(c.Arena(q.Ring.Arena)[q.Ring.Offset:], g)
				if err != nil {
					t.Error(err)
					return
				}
				s.Push(t, q.Handle, ring.CQE{ID: uint64(q.Handle)})
				var out [2]ring.CQE
				if n := r.Poll(out[:]); n != 1 || out[0].ID != uint64(q.Handle) {
					t.Errorf("polled %d completions, first %+v; want one of this CQ", n, out[0])
				}
			}
		}()
	}
	wg.Wait()
	if n := len(*c.arenas.Load()); n < 3 {
		t.Errorf("%d arenas, want several", n)
	}
}

// TestEventsInOrderWithBackPressure: events arrive in order, and the driver sends no more of them than the program
// has granted credit for.
func TestEventsInOrderWithBackPressure(t *testing.T) {
	h, c := pair(t, server.Config{}, Options{})
	s := h.Only(t)
	const n = 3000
	for i := range n {
		s.Pending <- command.Event{Type: command.EventGIDChange, Context: uint64(i)}
	}
	await.Eventually(t, "the credit is used up", func() bool {
		c.events.mu.Lock()
		defer c.events.mu.Unlock()
		return len(c.events.list) == proto.EventCredits
	})
	if left := len(s.Pending); left < n-proto.EventCredits-proto.MaxPush {
		t.Errorf("%d of %d events left in the driver", left, n)
	}
	out := make([]command.Event, 50)
	for i := 0; i < n; {
		k, err := c.Events(ctx, out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range out[:k] {
			if e.Context != uint64(i) {
				t.Fatalf("event %d arrived in place of %d", e.Context, i)
			}
			i++
		}
	}
	cctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := c.Events(cctx, out); !fake.IsCode(err, command.TimedOut) {
		t.Errorf("without events: error %v, want timed out", err)
	}
}
