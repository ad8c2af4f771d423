package transport

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestUndeliveredCompletionsAreBounded posts to a QP on the local path while nobody takes the engines' completions:
// the rings fill, the completion queues stay within their bound, and every request completes once completions are
// taken.
func TestUndeliveredCompletionsAreBounded(t *testing.T) {
	_, a, b := newPair(t, 1, command.RC)
	connect(a, b, defaultConnection())
	if err := a.e.Join(0, a.q, b.q); err != nil {
		t.Fatal(err)
	}
	key := a.region(0x1000, make([]byte, 8), allowAll).Key
	wr := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1}
	wr.SGE[0] = ring.SGE{Addr: 0x1000, Length: 0, LKey: key}
	posted := 0
	fill := func() bool {
		was := posted
		for {
			if err := b.recv.Post(&ring.RecvWR{}); err != nil && !errors.Is(err, ring.ErrFull) {
				t.Fatal(err)
			}
			err := a.send.Post(&wr)
			if errors.Is(err, ring.ErrFull) {
				return posted > was
			}
			if err != nil {
				t.Fatal(err)
			}
			posted++
		}
	}
	var out [8]frame.Out
	for range 1000 {
		if !fill() {
			break
		}
		a.e.Doorbell(a.q)
		a.e.Doorbell(b.q)
		a.turn(0, out[:])
	}
	for _, x := range []*end{a, b} {
		if n := x.e.completions.len(); n > maxUndelivered+2*localMessages {
			t.Errorf("%d completions wait, want about %d at most", n, maxUndelivered)
		}
	}
	if fill() {
		t.Error("after the queues of completions are full, a request was still taken")
	}
	for len(a.comps) < posted {
		before := len(a.comps)
		a.drain(0)
		b.drain(0)
		a.turn(0, out[:])
		if a.drain(0); len(a.comps) == before {
			t.Fatalf("%d of %d requests complete", len(a.comps), posted)
		}
	}
}
