package ndperf

import (
	"math"
	"math/bits"
	"time"
)

// A histogram stores latencies in fixed memory: exact to 1 ns below 2048 ns, to 0.1 % above, with exact
// minimum, maximum, mean and standard deviation.
type histogram struct {
	counts   [histogramSize]uint64
	n        uint64
	min, max time.Duration
	mean, m2 float64 // Welford's running mean and sum of squared deviations, ns
}

const (
	histogramBits = 10 // of precision below the leading one
	histogramSize = (40 - histogramBits) << histogramBits
)

func slot(v uint64) int {
	if v < 1<<(histogramBits+1) {
		return int(v)
	}
	shift := bits.Len64(v) - histogramBits - 1
	return min(shift<<histogramBits+int(v>>shift), histogramSize-1)
}

// middle returns the value in the middle of a slot.
func middle(slot int) float64 {
	if slot < 1<<(histogramBits+1) {
		return float64(slot)
	}
	shift := slot>>histogramBits - 1
	low := uint64(slot-shift<<histogramBits) << shift
	return float64(low) + float64(uint64(1)<<shift-1)/2
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[slot(uint64(d))]++
	if h.n == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.n++
	delta := float64(d) - h.mean
	h.mean += delta / float64(h.n)
	h.m2 += delta * (float64(d) - h.mean)
}

// percentile returns the value at or below which p percent lie, by nearest rank, in ns.
func (h *histogram) percentile(p float64) float64 {
	rank := max(uint64(math.Ceil(float64(h.n)*p/100-1e-9)), 1)
	var seen uint64
	for i, c := range &h.counts {
		if seen += c; seen >= rank && c > 0 {
			return min(max(middle(i), float64(h.min)), float64(h.max))
		}
	}
	return 0
}

// summary returns the figures in microseconds.
func (h *histogram) summary() *LatencyRow {
	if h.n == 0 {
		return &LatencyRow{}
	}
	us := func(ns float64) float64 { return math.Round(ns) / 1000 }
	return &LatencyRow{
		Min: us(float64(h.min)), Max: us(float64(h.max)), Typical: us(h.percentile(50)),
		Average: us(h.mean), Stdev: us(math.Sqrt(h.m2 / float64(h.n))),
		P99: us(h.percentile(99)), P999: us(h.percentile(99.9)),
	}
}
