package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// TestForesight: whatever shards are told to foresee, and whenever, the result is the same, and hosts forget what was foreseen of them.
func TestForesight(t *testing.T) {
	both(t, func(t *testing.T, lean bool) {
		const step, steps = 3 * time.Microsecond, 20
		var results [2][]byte
		for i := range results {
			r := prepare(t, fmt.Sprintf(`{"topology": {"kind": "leaf-spine", "leaves": 3, "hosts": 16}, "lean": %v, "switch": {"most": "30KB"},
				"workload": [{"kind": "shift", "by": 1, "size": "60KB"}, {"kind": "incast", "size": "20KB", "to": "host7"}], "duration": "1ms"}`, lean))
			worth := 0
			for k := range steps {
				r.pass(clock.Time(k+1) * clock.Time(step))
				for n := range r.n.shards {
					h := &r.n.shards[n]
					if h.turns >= worthwhile {
						worth++
					}
					if i == 1 {
						h.turns = worthwhile
						h.foresee(h.now.Add(step))
						forgotten(t, h)
					}
				}
			}
			if worth == 0 {
				t.Error("no shard has had a window for which it foresees the next")
			}
			x, err := r.Run(t.Context(), 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			if results[i], err = json.Marshal(x); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(results[0], results[1]) {
			t.Error("the result is another")
		}
	})
}

// forgotten checks that no host of a shard has a flow whose memory it would ask for.
func forgotten(t *testing.T, h *shard) {
	t.Helper()
	for _, x := range h.hosts {
		var l *last
		switch x := x.(type) {
		case *rcHost:
			l = &x.last
		case *leanHost:
			l = &x.last
		}
		if l.sends != nil || l.receives != nil {
			t.Error("a host still asks for the memory of its flows")
		}
	}
}
