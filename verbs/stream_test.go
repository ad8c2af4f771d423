package verbs

import (
	"sync/atomic"
	"testing"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/wait"
)

// A consumer that receives a stream polls less often for a while; one that answers does not.
func TestReceiversOfStreamsAreCalm(t *testing.T) {
	var cq CQ
	if cq.calm(1) {
		t.Error("calm before anything was received")
	}
	cq.streamed.Store(true)
	if !cq.calm(wait.StreamLooks) {
		t.Error("not calm while receives complete")
	}
	if cq.calm(wait.StreamLooks + 1) {
		t.Error("calm although nothing has come for long")
	}
	cq.answered()
	if cq.calm(1) {
		t.Error("calm after a request was posted")
	}
}

// Only receives that peers complete on the direct path make a stream: a driver in the program itself works while it
// is polled.
func TestReceivesThroughTheDriverAreNoStream(t *testing.T) {
	cq := CQ{users: map[uint32]*QP{}}
	qp := &QP{number: 7}
	cq.users[7] = qp
	e := []ring.CQE{{QPN: 7, Flags: ring.ReceiveSide}}
	cq.settle(e)
	if cq.streamed.Load() {
		t.Error("a queue pair without a direct path is streamed to")
	}
	record := new(direct.Record)
	slot := new(direct.Slot)
	slot.Store(direct.NewInitiator(record, 0, direct.Surroundings{}))
	qp.direct = slot
	if cq.settle(e); cq.streamed.Load() {
		t.Error("a path that is not delegated is streamed on")
	}
	record.Way[1].Delegate(1, new(direct.Terms))
	if cq.settle(e); !cq.streamed.Load() {
		t.Error("receives on a path that is delegated are no stream")
	}
}

// offered is a backend that records with which number of empty polls it was called, and that reports more each time.
type offered struct {
	backend
	idle []uint32
}

func (o *offered) Poll(idle uint32) bool {
	o.idle = append(o.idle, idle)
	return true
}

// A poll counts once however often it looks: backends yield the processor after a round number of empty polls, also
// while requests wait in rings.
func TestEmptyPollsAreCountedOnce(t *testing.T) {
	g := ring.CQGeometry(16)
	r, err := ring.OpenCQ(make([]byte, g.Size()), g)
	if err != nil {
		t.Fatal(err)
	}
	b := new(offered)
	cq := CQ{dev: &Device{host: &Host{backend: b}}, ring: r, life: life{fatals: new(atomic.Uint32)}}
	cq.late.Store(1)
	const polls = 200
	for range polls {
		if n, err := cq.Poll(make([]WC, 1)); n != 0 || err != nil {
			t.Fatalf("%d completions: %v", n, err)
		}
	}
	if len(b.idle) != polls {
		t.Fatalf("%d calls for %d empty polls", len(b.idle), polls)
	}
	for i, n := range b.idle {
		if n != uint32(i+1) {
			t.Fatalf("empty poll %d is counted as %d", i+1, n)
		}
	}
}

// driven is a backend whose loop makes made completions when a poll drives it.
type driven struct {
	backend
	ring  *ring.CQ
	made  int
	calls int
}

func (d *driven) Poll(uint32) bool {
	d.calls++
	d.push(d.made)
	return d.made > 0
}

func (d *driven) push(n int) {
	for range n {
		_, _ = d.ring.Push(&ring.CQE{})
	}
}

// A program whose completions come one by one, each while its poll drives the loop, drives it before it looks; not so
// one that finds completions that were there before, several at a time, as many as it asked for, or in a driver's ring.
func TestPollsThatWouldFindNothingDriveFirst(t *testing.T) {
	for _, c := range []struct {
		name          string
		attached      bool
		room          int
		before, comes int // completions there before a poll, and those that driving makes
		first         bool
	}{
		{"one by one", false, 4, 0, 1, true},
		{"there before", false, 4, 1, 0, false},
		{"several", false, 4, 0, 2, false},
		{"no room for more", false, 1, 0, 1, false},
		{"attached", true, 4, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := ring.CQGeometry(64)
			r, err := ring.OpenCQ(make([]byte, g.Size()), g)
			if err != nil {
				t.Fatal(err)
			}
			b := &driven{ring: r, made: 1}
			host := &Host{backend: b, device: new(device.Host)}
			if c.attached {
				host.device = nil
			}
			cq := CQ{dev: &Device{host: host}, ring: r, life: life{fatals: new(atomic.Uint32)}}
			out := make([]WC, c.room)
			poll := func() {
				t.Helper()
				if n, err := cq.Poll(out); err != nil || n == 0 {
					t.Fatalf("%d completions: %v", n, err)
				}
			}
			poll() // a completion that comes alone, when the loop is driven
			b.push(c.before)
			b.made = c.comes
			poll()

			b.made, b.calls = 0, 0
			b.push(2)
			poll()
			if first := b.calls > 0; first != c.first {
				t.Errorf("drove first: %t, want %t", first, c.first)
			}
			b.calls = 0
			b.push(1)
			for !r.Empty() {
				poll()
			}
			if b.calls > 0 {
				t.Error("drove first although completions were there")
			}
		})
	}
}
