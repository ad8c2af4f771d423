package ndperf

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPercentilesAreOfTheNearestRankToAThousandth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 100_000_000_000), 1, 300).Draw(t, "values")
		var h histogram
		sum := 0.0
		for _, v := range values {
			h.add(time.Duration(v))
			sum += float64(v)
		}
		slices.Sort(values)
		for _, p := range []float64{50, 99, 99.9} {
			rank := max(int(math.Ceil(float64(len(values))*p/100-1e-9)), 1)
			want, got := float64(values[rank-1]), h.percentile(p)
			if math.Abs(got-want) > want/1000+0.5 {
				t.Fatalf("%v %%: got %v, want %v", p, got, want)
			}
		}
		if h.min != time.Duration(values[0]) || h.max != time.Duration(values[len(values)-1]) {
			t.Fatalf("min %v, max %v; want %v and %v", h.min, h.max, time.Duration(values[0]), time.Duration(values[len(values)-1]))
		}
		if mean := sum / float64(len(values)); math.Abs(h.mean-mean) > 1e-6*mean+1e-6 {
			t.Fatalf("mean %v, want %v", h.mean, mean)
		}
	})
}

func TestSummary(t *testing.T) {
	var h histogram
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Microsecond)
	}
	s := h.summary()
	if s.Min != 1 || s.Max != 1000 || s.Average != 500.5 || math.Abs(s.Typical-500) > 0.5 || math.Abs(s.P99-990) > 1 ||
		math.Abs(s.P999-999) > 1 || math.Abs(s.Stdev-288.675) > 0.001 {
		t.Errorf("summary of 1 to 1000: %+v", s)
	}
	var none histogram
	if got := *none.summary(); got != (LatencyRow{}) {
		t.Errorf("without samples: %+v, want zeros", got)
	}
}

func TestAddingALatencyAllocatesNothing(t *testing.T) {
	var h histogram
	if n := testing.AllocsPerRun(100, func() { h.add(12345) }); n != 0 {
		t.Errorf("%v allocations to add a latency, want none", n)
	}
}
