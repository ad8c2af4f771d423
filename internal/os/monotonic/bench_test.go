package monotonic

import "testing"

// BenchmarkNow reads the clock, BenchmarkWatch what stamps completions on the direct path.
func BenchmarkNow(b *testing.B) { benchmark(b, Now) }

func BenchmarkWatch(b *testing.B) { benchmark(b, NewWatch().Now) }

func benchmark(b *testing.B, now func() uint64) {
	var sum uint64
	for b.Loop() {
		sum += now()
	}
	if sum == 0 {
		b.Error("the clock stands")
	}
}
