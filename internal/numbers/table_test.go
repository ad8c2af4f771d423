package numbers

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestTable: a table behaves as a map does, whatever the numbers.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.Uint8Max(8).Draw(t, "shift")
		table, want := New[int](), map[uint32]*int{}
		pattern := rapid.Uint32Max(1<<12).Draw(t, "pattern") << 8
		number := rapid.Custom(func(t *rapid.T) uint32 { return rapid.Uint32Range(1, 400).Draw(t, "n")<<shift ^ pattern<<shift }).
			Filter(func(n uint32) bool { return n != 0 })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n, v := number.Draw(t, "number"), new(int)
				table.Put(n, v)
				want[n] = v
			},
			"reserve": func(t *rapid.T) {
				n := number.Draw(t, "number")
				if table.Free(n) && want[n] == nil {
					table.Put(n, nil)
					if !table.Has(n) || table.Get(n) != nil {
						t.Fatalf("%#x is not reserved", n)
					}
					table.Remove(n)
				}
			},
			"remove": func(t *rapid.T) {
				n := number.Draw(t, "number")
				table.Remove(n)
				delete(want, n)
			},
			"": func(t *rapid.T) {
				if table.Len() != len(want) {
					t.Fatalf("%d numbers, want %d", table.Len(), len(want))
				}
				for k := range uint32(401) {
					if n := k<<shift ^ pattern<<shift; n != 0 && table.Get(n) != want[n] {
						t.Fatalf("number %#x finds another value than the one put there", n)
					}
				}
				seen := 0
				for n, v := range table.All() {
					if seen++; want[n] != v {
						t.Fatalf("All yields another value of %#x than the one put there", n)
					}
				}
				if seen != len(want) {
					t.Fatalf("All yields %d values, want %d", seen, len(want))
				}
			},
		})
	})
}

// TestSize: random numbers that find their places free take at most four places each.
func TestSize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table := New[int]()
	v, tries := new(int), 0
	const count = 100_000
	for table.Len() < count {
		tries++
		if n := r.Uint32(); table.Free(n) {
			table.Put(n, v)
		}
	}
	if len(table.places) > 4*count || tries > 2*count {
		t.Errorf("%d numbers have %d places, after %d tries", count, len(table.places), tries)
	}
}

func BenchmarkGet(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	table := New[int]()
	var all []uint32
	for len(all) < 1000 {
		if n := r.Uint32(); table.Free(n) {
			table.Put(n, new(int))
			all = append(all, n)
		}
	}
	for i := range b.N {
		if table.Get(all[i%len(all)]) == nil {
			b.Fatal("lost")
		}
	}
}
