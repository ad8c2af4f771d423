package queue

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPool: rings of a pool have together as many packets as it has buffers, each as many as it has slots, and what is removed, or goes
// with its ring, makes room for the others.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, size := rapid.IntRange(0, 20).Draw(t, "buffers"), rapid.IntRange(1, 12).Draw(t, "slots")
		p := NewPool(most)
		rings := make([]*Ring, 3)
		anew := func(i int) {
			rings[i] = NewRing(size, 1)
			rings[i].Share(p)
		}
		for i := range rings {
			anew(i)
		}
		model := make([]int, len(rings))
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(rings)-1).Draw(t, "ring")
			r, all := rings[i], model[0]+model[1]+model[2]
			room := size - model[i]
			if most > 0 {
				room = min(room, most-all)
			}
			if r.Room() != room || r.Len() != model[i] {
				t.Fatalf("room for %d with %d, want %d with %d", r.Room(), r.Len(), room, model[i])
			}
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				n := rapid.IntRange(0, model[i]).Draw(t, "gone")
				r.Remove(n)
				model[i] -= n
			case 1:
				r.Release()
				anew(i)
				model[i] = 0
			default:
				ok := r.Put(&Packet{Parts: [][]byte{{1}}}, false)
				if ok != (room > 0) {
					t.Fatalf("a put with room for %d: %t", room, ok)
				}
				if ok {
					model[i]++
				}
			}
		}
	})
}
