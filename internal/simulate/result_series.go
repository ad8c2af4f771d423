package simulate

import (
	"math"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

const mostQueues = 16

func (r *Run) resultSeries(x *Result) {
	s := &r.samples
	before := clock.Time(0)
	steps := make([]time.Duration, len(s.at))
	for i, at := range s.at {
		steps[i] = at.Sub(before)
		before = at
		x.Series.Time = append(x.Series.Time, us(at))
	}
	rates := func(total []int64) (v []float64) {
		last := int64(0)
		for i, b := range total {
			v = append(v, round(rate(b-last, steps[i])))
			last = b
		}
		return v
	}
	counts := func(total []uint64) (v []uint64) {
		last := uint64(0)
		for _, n := range total {
			v = append(v, n-last)
			last = n
		}
		return v
	}
	x.Series.Sum = rates(s.sum)
	for _, j := range s.jain {
		x.Series.Jain = append(x.Series.Jain, round(j))
	}
	x.Series.Marks, x.Series.CNPs, x.Series.Pauses = counts(s.marks), counts(s.cnps), counts(s.pauses)
	for i := range s.flows {
		x.Series.Flows = append(x.Series.Flows, FlowRate{i, rates(s.got[i])})
	}
	r.queues(x)
}

// queues takes over the longest queues.
func (r *Run) queues(x *Result) {
	s := &r.samples
	order := make([]int, len(s.ports))
	sums := make([]int64, len(s.ports))
	for i := range order {
		order[i] = i
		for _, b := range s.queue[i] {
			sums[i] += int64(b)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case sums[a] > sums[b]:
			return -1
		case sums[a] < sums[b]:
			return 1
		}
		return 0
	})
	for k, i := range order[:min(len(order), mostQueues)] {
		if sums[i] == 0 && k > 0 {
			break
		}
		q := PortQueues{Port: r.queueName(s.ports[i])}
		for _, b := range s.queue[i] {
			q.KB = append(q.KB, float64(b)/1e3)
		}
		if k == 0 {
			x.Summary.Queue, x.Summary.QueuePort = percentiles(slices.Clone(q.KB)), q.Port
		}
		x.Series.Queues = append(x.Series.Queues, q)
	}
}

// round leaves four digits behind the point.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
