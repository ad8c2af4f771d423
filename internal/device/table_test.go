package device

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/command"
)

// A handle names its object until it is removed, and nothing after that, also
// when the slot is in use again; handles of another kind name nothing.
func TestHandlesNameOneObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := objects[int]{kind: command.KindQP}
		other := objects[int]{kind: command.KindCQ}
		live := map[command.Handle]*int{}
		var dead []command.Handle
		for i := range rapid.IntRange(1, 100).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "remove") {
				for h := range live {
					table.remove(h)
					delete(live, h)
					dead = append(dead, h)
					break
				}
			} else {
				v := new(int)
				*v = i
				h, ok := table.add(v)
				if !ok || h == 0 {
					t.Fatalf("add: %v %v", h, ok)
				}
				live[h] = v
			}
			for h, v := range live {
				if table.get(h) != v {
					t.Fatalf("handle %#x lost its object", h)
				}
				if other.get(h) != nil {
					t.Fatalf("handle %#x names an object of another kind", h)
				}
			}
			for _, h := range dead {
				if table.get(h) != nil {
					t.Fatalf("removed handle %#x names an object", h)
				}
			}
			if table.live != len(live) {
				t.Fatalf("live %d, want %d", table.live, len(live))
			}
		}
	})
}
