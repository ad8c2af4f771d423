// Package workload is what the hosts of a simulated network send to each other: flows, each from one host to another, that start at
// a time or when other flows are complete.
package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Most is how many flows there may be.
const Most = 1 << 20

// Flow is bytes that go from a host to another.
type Flow struct {
	From, To int32 // numbers of hosts
	Bytes    int64 // 0: without end
	Start    clock.Time
	Priority uint8
	// Waits is how many flows must be complete before it starts, besides the time. All of them go to the host from which it goes.
	Waits int32
}

// Flows are those of a scenario, with what depends on them.
type Flows struct {
	All []Flow
	// after[first[i]:first[i+1]] are the flows that wait for flow i.
	first []int32
	after []int32
	edges []edge
	Error error // that there are too many
}

type edge struct{ before, after int32 }

// After returns the flows that wait for one.
func (f *Flows) After(i int) []int32 { return f.after[f.first[i]:f.first[i+1]] }

// add adds a flow and returns its number.
func (f *Flows) add(x Flow) int32 {
	if len(f.All) == Most {
		f.Error = fmt.Errorf("more than %d flows", Most)
		return 0
	}
	f.All = append(f.All, x)
	return int32(len(f.All) - 1)
}

// wait makes a flow wait for another.
func (f *Flows) wait(before, after int32) {
	if f.Error != nil {
		return
	}
	f.edges = append(f.edges, edge{before, after})
	f.All[after].Waits++
}

// Settle completes what After returns. It is called once, when all flows are there.
func (f *Flows) Settle() {
	f.first = make([]int32, len(f.All)+1)
	for _, e := range f.edges {
		f.first[e.before+1]++
	}
	for i := range f.All {
		f.first[i+1] += f.first[i]
	}
	f.after = make([]int32, len(f.edges))
	next := append([]int32(nil), f.first...)
	for _, e := range f.edges {
		f.after[next[e.before]] = e.after
		next[e.before]++
	}
	f.edges = nil
}

// Base is what all flows of a pattern have in common.
type Base struct {
	Hosts    []int // that take part
	Bytes    int64
	Start    time.Duration
	Priority uint8
}

func (b *Base) flow(from, to int) Flow {
	return Flow{From: int32(from), To: int32(to), Bytes: b.Bytes, Start: clock.Time(b.Start), Priority: b.Priority}
}

// Incast adds flows from all hosts to one of them. Each starts a time later than the one before.
func (f *Flows) Incast(b Base, to int, apart time.Duration) {
	n := 0
	for _, h := range b.Hosts {
		if h == to {
			continue
		}
		x := b.flow(h, to)
		x.Start = x.Start.Add(time.Duration(n) * apart)
		f.add(x)
		n++
	}
}

// Permutation adds a flow from each host to another, so that each receives one.
func (f *Flows) Permutation(b Base, random *rand.Rand) {
	order := random.Perm(len(b.Hosts)) // each sends to the one behind it in a circle
	for i, at := range order {
		f.add(b.flow(b.Hosts[at], b.Hosts[order[(i+1)%len(order)]]))
	}
}

// Shift adds a flow from each host to the one that is so many places behind it.
func (f *Flows) Shift(b Base, by int) {
	for i := range b.Hosts {
		if to := (i + by) % len(b.Hosts); to != i {
			f.add(b.flow(b.Hosts[i], b.Hosts[to]))
		}
	}
}

// AllToAll adds a flow from each host to each other one.
func (f *Flows) AllToAll(b Base) {
	n := len(b.Hosts)
	for k := 1; k < n && f.Error == nil; k++ {
		f.Shift(b, k)
	}
}

// Ring adds an allreduce over a ring of Bytes at each host: 2 (n-1) steps, in each of which every host sends an n-th to the next,
// when it has received that of the step before.
func (f *Flows) Ring(b Base) {
	n := len(b.Hosts)
	b.Bytes = (b.Bytes + int64(n) - 1) / int64(n)
	before := make([]int32, n)
	for step := 0; step < 2*(n-1) && f.Error == nil; step++ {
		now := make([]int32, n)
		for i := range n {
			now[i] = f.add(b.flow(b.Hosts[i], b.Hosts[(i+1)%n]))
			if step > 0 {
				f.wait(before[(i+n-1)%n], now[i])
			}
		}
		before = now
	}
}

// Tree adds an allreduce over a binary tree of Bytes at each host: up to the root, where each host waits for those below it, and
// down again.
func (f *Flows) Tree(b Base) {
	n := len(b.Hosts)
	up := make([]int32, n)
	for i := n - 1; i > 0 && f.Error == nil; i-- {
		up[i] = f.add(b.flow(b.Hosts[i], b.Hosts[(i-1)/2]))
		for c := 2*i + 1; c <= min(2*i+2, n-1); c++ {
			f.wait(up[c], up[i])
		}
	}
	down := make([]int32, n)
	for i := 1; i < n && f.Error == nil; i++ {
		down[i] = f.add(b.flow(b.Hosts[(i-1)/2], b.Hosts[i]))
		if parent := (i - 1) / 2; parent > 0 {
			f.wait(down[parent], down[i])
			continue
		}
		for c := 1; c <= min(2, n-1); c++ {
			f.wait(up[c], down[i])
		}
	}
}

// Poisson adds flows whose starts are a Poisson process at each host, to another host each, so that all together are a share of
// what a host's link carries, until a time.
func (f *Flows) Poisson(b Base, sizes *Sizes, load float64, rate func(host int) float64, until time.Duration, random *rand.Rand) {
	for i, h := range b.Hosts {
		gap := sizes.Mean() * 8 / (load * rate(h)) * 1e9
		at := float64(b.Start)
		for f.Error == nil {
			if at += random.ExpFloat64() * gap; at >= float64(until) {
				break
			}
			to := random.IntN(len(b.Hosts) - 1)
			if to >= i {
				to++
			}
			x := b.flow(h, b.Hosts[to])
			x.Start, x.Bytes = clock.Time(at), sizes.Draw(random)
			f.add(x)
		}
	}
}

// Add adds one flow.
func (f *Flows) Add(x Flow) { f.add(x) }
