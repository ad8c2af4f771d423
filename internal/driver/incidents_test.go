package driver

import (
	"testing"

	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/internal/link/cable"
)

// TestHeard: each incident of a fabric is told of once, and those of one that has begun anew too.
func TestHeard(t *testing.T) {
	var h heard
	part := func(now int64, numbers ...uint64) *state.Part {
		p := &state.Part{Now: now}
		for _, n := range numbers {
			p.Incidents = append(p.Incidents, state.Incident{Number: n})
		}
		return p
	}
	for i, c := range []struct {
		part *state.Part
		want int
	}{{part(10), 0}, {part(20, 1, 2), 2}, {part(30, 1, 2), 0}, {part(40, 2, 3), 1}, {part(5, 1), 1}, {part(6, 1, 2), 1}} {
		if got := h.fresh(c.part); len(got) != c.want {
			t.Errorf("%d: %d incidents, want %d", i, len(got), c.want)
		}
	}
}

// TestTold: of what the sessions of several adapters tell over UDP each incident counts once, and those of another fabric too.
func TestTold(t *testing.T) {
	var seen told
	one, two := [16]byte{1}, [16]byte{2}
	for i, c := range []struct {
		fabric [16]byte
		number uint64
		want   bool
	}{{one, 1, true}, {one, 2, true}, {one, 1, false}, {one, 2, false}, {one, 3, true}, {two, 1, true}, {two, 1, false}, {two, 2, true}} {
		if got := seen.first(cable.Incident{Fabric: c.fabric, Number: c.number}); got != c.want {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
}

// What the fabric tells waits for the driver, and what finds no room does not hold up the fabric.
func TestIncidents_DoNotBlock(t *testing.T) {
	x := newIncidents()
	for i := range uint64(2 * mostTold) {
		x.told(cable.Incident{Number: i + 1})
	}
	if first := <-x.news; first.Number != 1 || len(x.news) != mostTold-1 {
		t.Errorf("the first is %d, %d more wait", first.Number, len(x.news))
	}
}
