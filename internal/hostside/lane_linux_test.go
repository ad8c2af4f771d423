package hostside

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/os/processors"
)

// TestLane_Processor: the thread of a queue runs on the queue's processor alone, and others stay free.
func TestLane_Processor(t *testing.T) {
	all := processors.List()
	last := all[len(all)-1].Number
	at := make(chan []int, 1)
	l := startLane(func([]byte) Outcome {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		var list []int
		for n := range 64 * len(set) {
			if set.IsSet(n) {
				list = append(list, n)
			}
		}
		at <- list
		return Taken
	}, last)
	l.add([][]byte{{1}})
	l.ring()
	if got := <-at; !slices.Equal(got, []int{last}) {
		t.Errorf("it runs on %v, want %d", got, last)
	}
	l.end()
	if !l.empty() || l.written.Load() != 1 {
		t.Errorf("%d frames are written, want 1", l.written.Load())
	}
}
