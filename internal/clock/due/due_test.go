package due

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestTimes: the next is always the one with the earliest time, and of several the one with the lowest number, whatever was set before.
func TestTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := make([]clock.Time, rapid.IntRange(1, 70).Draw(t, "members"))
		for i := range want {
			want[i] = clock.Never
		}
		d := New(len(want))
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			i := rapid.IntRange(0, len(want)-1).Draw(t, "member")
			at := clock.Time(rapid.Int64Range(0, 5).Draw(t, "time"))
			if rapid.IntRange(0, 3).Draw(t, "never") == 0 {
				at = clock.Never
			}
			d.Set(i, at)
			want[i] = at
			first := 0
			for k := range want {
				if want[k] < want[first] {
					first = k
				}
			}
			if d.Next() != first || d.First() != want[first] || d.Get(i) != at {
				t.Fatalf("next %d at %d, want %d at %d", d.Next(), d.First(), first, want[first])
			}
			others := slices.Contains(want[first+1:], want[first])
			if next, several := d.Soonest(); next != first || several != others {
				t.Fatalf("%v: next %d, several %v; want %d, %v", want, next, several, first, others)
			}
		}
	})
}

// TestTimes_Rest: the earliest of all but one is what is first once that one wants none.
func TestTimes_Rest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SliceOfN(rapid.Int64Range(0, 9), 1, 70).Draw(t, "times")
		d := New(len(at))
		for i, x := range at {
			d.Set(i, clock.Time(x))
		}
		i := rapid.IntRange(0, len(at)-1).Draw(t, "member")
		rest := d.Rest(i)
		if d.Set(i, clock.Never); rest != d.First() {
			t.Fatalf("all but %d of %v: %d, want %d", i, at, rest, d.First())
		}
	})
}

// TestTimes_None: without members, or while none wants a turn, there is no time.
func TestTimes_None(t *testing.T) {
	for n := range 5 {
		if d := New(n); d.First() != clock.Never || d.Next() != 0 {
			t.Errorf("%d members: next %d at %d", n, d.Next(), d.First())
		}
	}
}
