package sim

import (
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// follower sends a packet to another port again and again, and checks that it was told of each packet before it arrived.
type follower struct {
	t       *testing.T
	route   frame.Route
	due     clock.Time
	steps   map[int]int
	next    int
	arrived int
}

func (f *follower) Prefetch(step int, packet []byte) {
	if f.arrived > 0 && step != f.next+1 || packet[0] != byte(ib.RCSendOnly) {
		f.t.Errorf("step %d follows step %d, for a packet that begins with %d", step, f.next, packet[0])
	}
	f.next = step
	f.steps[step]++
}

func (f *follower) Receive(clock.Time, []frame.In) {
	f.next = -1
	f.arrived++
}

func (f *follower) Transmit(now clock.Time, out []frame.Out) int {
	if now < f.due {
		return 0
	}
	f.due = now.Add(10 * time.Microsecond)
	out[0].Reset(&f.route)
	out[0].Head[frame.HeadRoom] = byte(ib.RCSendOnly)
	out[0].HeadEnd = frame.HeadRoom + ib.BTHLen
	return 1
}

func (f *follower) Advance(clock.Time)   {}
func (f *follower) Deadline() clock.Time { return f.due }

// TestPrefetch_StepByStep: where there are many ports, an engine is told what arrives in all steps, one after the other,
// while others have their turns.
func TestPrefetch_StepByStep(t *testing.T) {
	n := New(1)
	n.Default.Delay = 3 * time.Microsecond
	all := make([]*follower, 2*many)
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	for i := range all {
		all[i] = &follower{t: t, next: -1, steps: map[int]int{}, due: clock.Time(10_000 * i / len(all))}
		all[i].route = frame.Route{Src: addr(i), Dst: addr((i + 1) % len(all))}
		n.Add(addr(i), all[i])
	}
	n.Pass(time.Millisecond)
	for i, f := range all {
		for step := range PrefetchSteps {
			if f.steps[step] < f.arrived*3/4 {
				t.Errorf("port %d: step %d was done %d times for %d packets", i, step, f.steps[step], f.arrived)
			}
		}
	}
}
