package workload

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func hosts(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// order plays flows in the order of what they wait for, and returns in which round each is.
func order(t *testing.T, f *Flows) []int {
	f.Settle()
	round, waits := make([]int, len(f.All)), make([]int32, len(f.All))
	var next []int
	for i := range f.All {
		if waits[i] = f.All[i].Waits; waits[i] == 0 {
			next = append(next, i)
		}
	}
	done := 0
	for len(next) > 0 {
		i := next[0]
		next = next[1:]
		done++
		for _, a := range f.After(i) {
			round[a] = max(round[a], round[i]+1)
			if waits[a]--; waits[a] == 0 {
				next = append(next, int(a))
			}
		}
	}
	if done != len(f.All) {
		t.Errorf("%d of %d flows can start", done, len(f.All))
	}
	return round
}

// TestRing: an allreduce over a ring of n hosts has 2 (n-1) rounds, in each of which every host sends an n-th to the next.
func TestRing(t *testing.T) {
	var f Flows
	f.Ring(Base{Hosts: hosts(5), Bytes: 101})
	rounds := map[int]int{}
	for i, r := range order(t, &f) {
		rounds[r]++
		if x := f.All[i]; x.Bytes != 21 || x.To != (x.From+1)%5 {
			t.Errorf("flow %d: %+v", i, x)
		}
	}
	if len(rounds) != 8 || rounds[0] != 5 || rounds[7] != 5 {
		t.Errorf("rounds %v", rounds)
	}
}

// TestTree: an allreduce over a tree of n hosts has n-1 flows up and n-1 down; none goes down before all have gone up below it.
func TestTree(t *testing.T) {
	for _, n := range []int{2, 3, 6, 7} {
		var f Flows
		f.Tree(Base{Hosts: hosts(n), Bytes: 100})
		round := order(t, &f)
		if len(round) != 2*(n-1) {
			t.Fatalf("%d hosts: %d flows", n, len(round))
		}
		last := 0
		for i := range n - 1 {
			if x := f.All[i]; x.To != (x.From-1)/2 {
				t.Errorf("flow %d goes up from %d to %d", i, x.From, x.To)
			}
			last = max(last, round[i])
		}
		for i := n - 1; i < len(round); i++ {
			if round[i] <= last {
				t.Errorf("%d hosts: flow %d goes down in round %d, the last up is in %d", n, i, round[i], last)
			}
		}
	}
}

// TestPermutation: each host sends one flow and receives one, not from itself.
func TestPermutation(t *testing.T) {
	var f Flows
	f.Permutation(Base{Hosts: hosts(9), Bytes: 1}, rand.New(rand.NewPCG(1, 2)))
	var from, to int
	for _, x := range f.All {
		from |= 1 << x.From
		to |= 1 << x.To
		if x.From == x.To {
			t.Errorf("%+v", x)
		}
	}
	if from != 1<<9-1 || to != 1<<9-1 {
		t.Errorf("%b send, %b receive", from, to)
	}
}

// TestPoisson: flows make the load, in the mean, and their sizes have the distribution.
func TestPoisson(t *testing.T) {
	sizes, err := ReadSizes(strings.NewReader("# size and share\n1000 0\n3000 50\n5000 100\n"))
	if err != nil {
		t.Fatal(err)
	}
	if m := sizes.Mean(); m != 3000 {
		t.Errorf("the mean is %v", m)
	}
	var f Flows
	f.Poisson(Base{Hosts: hosts(4)}, sizes, 0.5, func(int) float64 { return 1e9 }, time.Second, rand.New(rand.NewPCG(1, 2)))
	bytes := 0.
	for _, x := range f.All {
		bytes += float64(x.Bytes)
		if x.From == x.To || x.Bytes < 1000 || x.Bytes > 5000 || x.Start > 1e9 {
			t.Fatalf("%+v", x)
		}
	}
	if load := bytes * 8 / 4e9; math.Abs(load-0.5) > 0.01 {
		t.Errorf("the load is %.3f", load)
	}
}

// TestReadSizes: distributions that are none are refused by line.
func TestReadSizes(t *testing.T) {
	for text, line := range map[string]int{"": 0, "1 2 3": 1, "1 0\n2 x": 2, "2 10\n1 100": 2, "1 10\n2 5": 2, "1 0\n2 90": 2, "-1 0": 1} {
		_, err := ReadSizes(strings.NewReader(text))
		var bad *LineError
		if !errors.As(err, &bad) || bad.Line != line {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
}

// TestFlows_Most: there are no more flows than Most.
func TestFlows_Most(t *testing.T) {
	var f Flows
	f.AllToAll(Base{Hosts: hosts(1100), Bytes: 1})
	if f.Error == nil || len(f.All) != Most {
		t.Errorf("%d flows, %v", len(f.All), f.Error)
	}
}
