package verbs

import (
	"runtime"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// The number of places in use is that of places taken and not given back, even when something completes that took
// none.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := places{taken: ^uint32(0) - 3, given: ^uint32(0) - 3} // about to wrap
		want := int32(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			n := rapid.Int32Range(0, 5).Draw(t, "n")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				p.take(1)
				want++
			case 1: // a request that was refused
				p.take(1)
				p.take(-1)
			case 2:
				p.give(n)
				want = max(want-n, 0)
			case 3:
				p.keep(n)
				want = n
			}
			if got := p.used(); got != want {
				t.Fatalf("%d places are taken, want %d", got, want)
			}
		}
	})
}

// One thread takes places and another gives them back, without a common lock: none is lost.
func TestPlacesOfTwoThreads(t *testing.T) {
	const most, all = 64, 100000
	var p places
	var wg sync.WaitGroup
	posted := make(chan struct{}, most)
	wg.Go(func() {
		for range all {
			for p.used() >= most {
				runtime.Gosched()
			}
			p.take(1)
			posted <- struct{}{}
		}
		close(posted)
	})
	for range posted {
		if used := p.used(); used < 1 || used > most {
			t.Errorf("%d places are taken, want 1 to %d", used, most)
		}
		p.give(1)
	}
	wg.Wait()
	if used := p.used(); used != 0 {
		t.Errorf("%d places are taken at the end, want 0", used)
	}
}
