package bench

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestAlternate_Result: a row is made of the ratios of pairs, though the machine changes by far more between them than the feature costs,
// and its aim is met only if the whole interval meets it.
func TestAlternate_Result(t *testing.T) {
	f := live{part: "p", name: "f", least: 0.98}
	r := rand.New(rand.NewPCG(1, 2))
	pairs := func(cost, noise float64) (list []turnPair) {
		for range 60 {
			machine := 1 + r.Float64()
			list = append(list, turnPair{on: machine * cost * (1 + noise*r.NormFloat64()), off: machine})
		}
		return list
	}
	for _, c := range []struct {
		cost, noise float64
		met         bool
	}{{0.995, 0.01, true}, {0.96, 0.02, false}, {0.985, 0.5, false}, {1, 0, true}} {
		x := f.result(4096, pairs(c.cost, c.noise))
		if *x.Met != c.met || x.RatioLow > x.Ratio || x.RatioHigh < x.Ratio || x.Low > x.Value || x.High < x.Value {
			t.Errorf("%+v: %+v", c, x)
		}
		var b strings.Builder
		if x.write(&b); !strings.Contains(b.String(), " - ") || !strings.Contains(b.String(), "(") {
			t.Errorf("it is written as %s", b.String())
		}
	}
}

// TestInOrder: of each four turns the feature is on in the outer two or in the inner two, and chance says which.
func TestInOrder(t *testing.T) {
	for n := range 12 {
		r, flips := rand.New(rand.NewPCG(uint64(n), 3)), 0
		order := inOrder(n, func() bool { flips++; return r.IntN(2) == 0 })
		if len(order) != n || flips != (n+1)/2 {
			t.Fatalf("%d pairs: %v of %d coins", n, order, flips)
		}
		for i := 1; i < n; i += 2 {
			if order[i] == order[i-1] {
				t.Errorf("%d pairs: %v; pairs %d and %d begin alike", n, order, i, i+1)
			}
		}
	}
	r := runner{o: Options{Rounds: 10, Seconds: 1}}
	if n := r.turnPairs(); n != 1500 { // a minute of turns
		t.Errorf("10 rounds of 1 s: %d pairs", n)
	}
	if r.o = (Options{Rounds: 1, Seconds: 0.001}); r.turnPairs() != 1 {
		t.Errorf("the shortest: %d pairs", r.turnPairs())
	}
}

// TestAlternate_Standstill: a turn in which nothing was sent counts against whatever was then on or off, as any other.
func TestAlternate_Standstill(t *testing.T) {
	f := live{part: "p", name: "f", least: 0.98}
	still := []turnPair{{on: 0, off: 5}, {on: 5, off: 0}, {on: 0, off: 0}}
	var pairs []turnPair
	for range 10 {
		pairs = append(pairs, still...)
	}
	if x := f.result(4096, pairs); x.Ratio != 1 || x.RatioLow > 0.001 || x.RatioHigh < 1000 || *x.Met {
		t.Errorf("%+v", x)
	}
}
