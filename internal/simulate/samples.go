package simulate

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

// mostFlows is of how many flows there are time series.
const mostFlows = 256

// samples are the time series of a run.
type samples struct {
	at     []clock.Time
	flows  int
	got    [][]int64 // by flow: bytes that had arrived
	jain   []float64
	queue  [][]int32 // by port: bytes that waited
	marks  []uint64
	cnps   []uint64
	pauses []uint64
	sum    []int64 // bytes that had arrived, of all flows

	before []int64 // by flow: got at the last sample
	data   uint8   // priorities of flows
	ports  []ethernet.End
}

func (s *samples) init(r *Run) {
	g := r.s.Graph
	for i := range g.Nodes {
		for p := range g.Nodes[i].Links {
			if !g.Nodes[i].Host {
				s.ports = append(s.ports, ethernet.End{Node: i, Port: p})
			}
		}
	}
	s.queue = make([][]int32, len(s.ports))
	s.flows = min(len(r.flows), mostFlows)
	s.got = make([][]int64, s.flows)
	s.before = make([]int64, len(r.flows))
	for i := range r.flows {
		s.data |= 1 << r.s.Flows.All[i].Priority
	}
}

// take takes a sample.
func (s *samples) take(r *Run) {
	s.at = append(s.at, r.now)
	sum, cnps := int64(0), uint64(0)
	rates, squares, n := 0., 0., 0
	for i := range r.flows {
		f := r.flows[i]
		sum += f.got
		cnps += f.cnps
		if i < s.flows {
			s.got[i] = append(s.got[i], f.got)
		}
		since := clock.Time(0)
		if len(s.at) > 1 {
			since = s.at[len(s.at)-2]
		}
		if f.began <= since && f.ended > r.now { // all the time
			d := float64(f.got - s.before[i])
			rates += d
			squares += d * d
			n++
		}
		s.before[i] = f.got
	}
	s.jain = append(s.jain, jain(rates, squares, n))
	s.sum, s.cnps = append(s.sum, sum), append(s.cnps, cnps)
	marks, pauses := uint64(0), uint64(0)
	for i, e := range s.ports {
		p := r.n.Switch(e.Node).Port(e.Port)
		waits := 0
		for q := range uint8(ethernet.Priorities) {
			if s.data>>q&1 != 0 {
				_, bytes := p.Queued(q)
				waits += bytes
			}
		}
		s.queue[i] = append(s.queue[i], int32(waits))
		m, x := p.Events()
		marks += m
		pauses += x
	}
	s.marks, s.pauses = append(s.marks, marks), append(s.pauses, pauses)
}

// jain returns Jain's index of n rates, by their sum and that of their squares; 1 where there is none.
func jain(sum, squares float64, n int) float64 {
	if squares == 0 {
		return 1
	}
	return sum * sum / squares / float64(n)
}

// rate returns the rate of bytes in a time, in Gb/s.
func rate(bytes int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(bytes) * 8 / float64(d)
}
