package cm

import (
	"iter"
	"testing"

	"pgregory.net/rapid"
)

// TestTable: a table behaves as a map does, and keeps no pages without ids.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, want := NewTable[int](), map[ID]*int{}
		pattern := rapid.Uint32().Draw(t, "pattern")
		id := rapid.Custom(func(t *rapid.T) ID { return ID(rapid.Uint32Max(400).Draw(t, "n") ^ pattern) })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				i, v := id.Draw(t, "id"), new(int)
				table.Put(i, v)
				want[i] = v
			},
			"remove": func(t *rapid.T) {
				i := id.Draw(t, "id")
				table.Remove(i)
				delete(want, i)
			},
			"": func(t *rapid.T) {
				if table.Len() != len(want) || len(table.pages) > len(want) {
					t.Fatalf("%d ids on %d pages, want %d", table.Len(), len(table.pages), len(want))
				}
				for n := range uint32(401) {
					if i := ID(n ^ pattern); table.Get(i) != want[i] {
						t.Fatalf("id %#x finds another value than the one put there", uint32(i))
					}
				}
			},
		})
	})
}

// all iterates over the ids and their values.
func (t *Table[T]) all() iter.Seq2[ID, *T] {
	return func(yield func(ID, *T) bool) {
		for upper, p := range t.pages {
			for lower, v := range p.at {
				if v != nil && !yield(upper<<pageBits|ID(lower), v) {
					return
				}
			}
		}
	}
}
