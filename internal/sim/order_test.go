package sim

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestTimers_LikeALookAtAll: whatever deadlines are set, the first deadline and the members that are due are those
// that a look at all members finds.
func TestTimers_LikeALookAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x timers
		want := make([]clock.Time, 40)
		for i := range want {
			x.join()
			want[i] = clock.Never
		}
		now := clock.Time(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				now += clock.Time(rapid.IntRange(0, 30).Draw(t, "time"))
				for i := x.due(now); i >= 0; i = x.due(now) {
					if want[i] > now {
						t.Fatalf("%d is due at %v, before its deadline %v", i, now, want[i])
					}
					want[i] = clock.Never
				}
			default:
				i := rapid.IntRange(0, len(want)-1).Draw(t, "member")
				at := now + clock.Time(rapid.IntRange(0, 100).Draw(t, "deadline"))
				if at%7 == 0 {
					at = clock.Never
				}
				x.set(i, at)
				want[i] = at
			}
			first := clock.Never
			for _, at := range want {
				first = min(first, at)
			}
			if got := x.deadline(); got != first {
				t.Fatalf("the first deadline is %v, want %v", got, first)
			}
		}
	})
}

// TestSet_InOrder: a walk meets every number that is in the set when it comes by, in order, also those that are added
// during the walk ahead of it.
func TestSet_InOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 10_000
		var s set
		s.grow(size)
		in := map[int]bool{}
		number := rapid.IntRange(0, size-1)
		add := func(i int) {
			s.add(i)
			in[i] = true
		}
		for range rapid.IntRange(0, 50).Draw(t, "numbers") {
			add(number.Draw(t, "number"))
		}
		last := -1
		for i := s.next(0); i >= 0; i = s.next(i + 1) {
			if i <= last || !in[i] {
				t.Fatalf("the walk meets %d after %d; in the set: %v", i, last, in[i])
			}
			for j := range in {
				if j > last && j < i {
					t.Fatalf("the walk passed over %d", j)
				}
			}
			last = i
			delete(in, i)
			if rapid.IntRange(0, 3).Draw(t, "more") == 0 {
				add(number.Draw(t, "added"))
			}
		}
		if s.count != len(in) {
			t.Fatalf("%d are left, want %d", s.count, len(in))
		}
	})
}

// TestArrivals_InOrder: packets leave the queue by their times, and among equals in the order of their lanes,
// whatever number of lanes they are in.
func TestArrivals_InOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q arrivals
		lanes := make([]lane, rapid.IntRange(1, 60).Draw(t, "lanes"))
		last := make([]clock.Time, len(lanes))
		var waiting []*packet
		for i := range lanes {
			lanes[i].rank = uint64(i)
		}
		now := clock.Time(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "step") > 0 {
				i := rapid.IntRange(0, len(lanes)-1).Draw(t, "lane")
				last[i] = max(last[i], now+clock.Time(rapid.IntRange(0, 50).Draw(t, "delay")))
				p := &packet{at: last[i], flow: uint32(i)}
				q.push(&lanes[i], p)
				waiting = append(waiting, p)
				continue
			}
			first := slices.MinFunc(append(waiting, &packet{at: clock.Never}), func(a, b *packet) int {
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.flow, b.flow))
			})
			if q.deadline() != first.at {
				t.Fatalf("the first packet arrives at %d, want %d", q.deadline(), first.at)
			}
			if first.at == clock.Never {
				continue
			}
			if p := q.pop(); p != first {
				t.Fatalf("a packet of lane %d arrives, want lane %d", p.flow, first.flow)
			}
			now = first.at
			waiting = slices.DeleteFunc(waiting, func(p *packet) bool { return p == first })
		}
	})
}
