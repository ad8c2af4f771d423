package transport

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/ib"
)

// TestResultsAreAQueue: whatever is pushed, dropped and answered, results come back in order, and the first pending one
// is the oldest.
func TestResultsAreAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r results
		var model []result
		next := ib.PSN(1)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				x := result{first: next, pending: rapid.Bool().Draw(t, "pending")}
				next = next.Next()
				*r.push(rapid.IntRange(0, 16).Draw(t, "depth")) = x
				model = append(model, x)
			},
			"drop": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("there is none")
				}
				r.drop()
				model = model[1:]
			},
			"answer": func(t *rapid.T) {
				if p := r.pending(); p != nil {
					p.pending = false
					for i := range model {
						if model[i].first == p.first {
							model[i].pending = false
						}
					}
				}
			},
			"": func(t *rapid.T) {
				if int(r.n) != len(model) {
					t.Fatalf("%d results, want %d", r.n, len(model))
				}
				var oldest *result
				for i := range model {
					if *r.at(int32(i)) != model[i] {
						t.Fatalf("result %d is %+v, want %+v", i, *r.at(int32(i)), model[i])
					}
					if oldest == nil && model[i].pending {
						oldest = r.at(int32(i))
					}
				}
				if r.pending() != oldest {
					t.Fatalf("the first pending one is %p, want %p", r.pending(), oldest)
				}
			},
		})
	})
}
