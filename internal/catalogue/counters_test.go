package catalogue

import (
	"regexp"
	"slices"
	"testing"
)

var short = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// Each name of a counter set leads to that set alone, and in a set each name of a counter to one counter. Short names
// can be part of metric names.
func TestCounterNamesAreUnique(t *testing.T) {
	sets := map[string]string{}
	for i := range CounterSets() {
		s := &CounterSets()[i]
		for _, n := range append([]string{s.Name, s.Short}, s.Aliases...) {
			if found, ok := CounterSetNamed(n); !ok || found != s {
				t.Errorf("%q does not lead to %q", n, s.Name)
			}
			if other, ok := sets[n]; ok {
				t.Errorf("%q is a name of %q and of %q", n, other, s.Name)
			}
			sets[n] = s.Name
		}
		for j := range s.Counters {
			c := &s.Counters[j]
			if s.Index(c.Name) != j || s.Index(c.Short) != j {
				t.Errorf("%s: %q or %q names another counter", s.Name, c.Name, c.Short)
			}
			if !short.MatchString(c.Short) || !short.MatchString(s.Short) {
				t.Errorf("%s, %s: short name %q", s.Name, c.Name, c.Short)
			}
		}
	}
}

func TestCounterSetsAreComplete(t *testing.T) {
	instances := []string{"adapter", "device", "port", "priority", "cpu", "queue", "vport", "function", "interface", "team", "member",
		"vlan", "queues", "overlay"}
	for i := range CounterSets() {
		s := &CounterSets()[i]
		if s.Generations == 0 || !slices.Contains(instances, s.Instances) || s.Description == "" || len(s.Counters) == 0 {
			t.Errorf("%s has no generation, instances, description or counters", s.Name)
		}
		for j := range s.Counters {
			c := &s.Counters[j]
			if c.Description == "" || c.Generations&^s.Generations != 0 {
				t.Errorf("%s, %s: no description, or a generation that its set does not have", s.Name, c.Name)
			}
			if len(c.Of) > 0 && c.Kind != Rate && c.Kind != Ratio {
				t.Errorf("%s, %s: only rates and ratios are computed from others", s.Name, c.Name)
			}
			for _, of := range c.Of {
				if at := s.Index(of); at < 0 || s.Counters[at].Short != of || s.Counters[at].Kind != Total ||
					s.Counters[at].Status != c.Status {
					t.Errorf("%s, %s: %q is not a total of the set with the same status", s.Name, c.Name, of)
				}
			}
			if c.Keeps != (c.Kind == Level) {
				t.Errorf("%s, %s: a reset must keep levels and nothing else", s.Name, c.Name)
			}
		}
	}
}

// A counter has its own generations if it names any, and otherwise those of its set.
func TestCountersOfAGeneration(t *testing.T) {
	set, _ := CounterSetNamed("adapter_diagnostics")
	at := set.Index("Minor Stall Watermark Reached")
	if at < 0 || !set.Has(at, MLX5) || set.Has(at, MLX4) || !set.Has(0, MLX4) {
		t.Error("the stall watermarks belong to mlx5 alone, and the set's first counter to mlx4 too")
	}
}
