package handle

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/command"
)

// TestHandlesNameOneObject: a handle names its object until that is removed, and nothing afterwards, also when the
// slot is used again. Handles of another kind name nothing.
func TestHandlesNameOneObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := New[int](command.KindQP, Owner{})
		other := New[int](command.KindCQ, Owner{})
		live := map[command.Handle]*int{}
		var dead []command.Handle
		for i := range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "remove") {
				for h := range live {
					table.Remove(h)
					delete(live, h)
					dead = append(dead, h)
					break
				}
			} else {
				v := new(int)
				*v = i
				h, err := table.Add(v)
				if err != nil || h == 0 {
					t.Fatalf("add: %v %v", h, err)
				}
				live[h] = v
			}
			for h, v := range live {
				if table.Get(h) != v {
					t.Fatalf("handle %#x lost its object", h)
				}
				if other.Get(h) != nil {
					t.Fatalf("handle %#x names an object of another kind", h)
				}
			}
			for _, h := range dead {
				if table.Get(h) != nil {
					t.Fatalf("removed handle %#x names an object", h)
				}
			}
			if table.Live() != len(live) {
				t.Fatalf("live %d, want %d", table.Live(), len(live))
			}
		}
	})
}

// TestSome: Some visits every object once, however few it takes at a time, also if the objects it returns are
// removed.
func TestSome(t *testing.T) {
	table := New[int](command.KindQP, Owner{})
	handles := map[int]command.Handle{}
	for i := range 10 {
		h, err := table.Add(&i)
		if err != nil {
			t.Fatal(err)
		}
		if Kind(h) != command.KindQP || Index(h) != uint32(i) {
			t.Errorf("handle %#x: kind %d, index %d", h, Kind(h), Index(h))
		}
		handles[i] = h
	}
	table.Remove(handles[4])
	var seen []int
	for at, rounds := 0, 0; at >= 0; rounds++ {
		if rounds > 10 {
			t.Fatal("Some does not come to an end")
		}
		at = table.Some(at, 2, func(o *int) {
			seen = append(seen, *o)
			table.Remove(handles[*o])
		})
	}
	if want := []int{0, 1, 2, 3, 5, 6, 7, 8, 9}; !slices.Equal(seen, want) || table.Live() != 0 {
		t.Errorf("%v, want %v; %d are left", seen, want, table.Live())
	}
}
