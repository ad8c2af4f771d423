package catalogue

import (
	"regexp"
	"slices"
	"testing"
)

func TestEventsAreUnique(t *testing.T) {
	type id struct {
		source string
		id     uint32
	}
	ids := map[id]string{}
	for i := range Events() {
		e := &Events()[i]
		if other, ok := ids[id{e.Source, e.ID}]; ok {
			t.Errorf("%s and %s both have ID %#x of %s", e.Symbol, other, e.ID, e.Source)
		}
		ids[id{e.Source, e.ID}] = e.Symbol
		for _, g := range []Generation{MLX5, MLX4} {
			if e.Generations&g == 0 {
				continue
			}
			if found, ok := EventFor(e.Symbol, g); !ok || found != e {
				t.Errorf("%s of %v leads to %+v", e.Symbol, g, found)
			}
		}
	}
}

func TestEventsAreComplete(t *testing.T) {
	symbol := regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	for i := range Events() {
		e := &Events()[i]
		if !symbol.MatchString(e.Symbol) || e.Source == "" || e.Generations == 0 || e.Text == "" {
			t.Errorf("%+v has no valid symbol, or no source, generation or text", e)
		}
		if (e.Source == sourceSoftVPI) != (len(e.Sources) == 0) {
			t.Errorf("%s: events of the manuals name their sources, and SoftVPI's own have none", e.Symbol)
		}
		if e.OwnID != (e.ID >= firstOwnID) || e.ID > 0xffff {
			t.Errorf("%s: ID %#x is out of range where the ID is SoftVPI's own: %v", e.Symbol, e.ID, e.OwnID)
		}
		var in []string
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(e.Text, -1) {
			if !slices.Contains(in, m[1]) {
				in = append(in, m[1])
			}
		}
		if !slices.Equal(in, e.Fields) {
			t.Errorf("%s: declares the fields %v, but its text has %v", e.Symbol, e.Fields, in)
		}
	}
}

func TestMessage(t *testing.T) {
	e, _ := EventFor("LinkUp", MLX4)
	if got := e.Message(map[string]string{"Adapter": "Ethernet {1}",
		"Port": "1"}); got != "Ethernet {1}: the link of port 1 is up, and the port works." {
		t.Error("the message is ", got)
	}
}

// mlx5 and mlx4 use different IDs for the events of dropless mode (WinOF 5.50, 4.1.12.6; WinOF-2 Ethernet, Dropless
// Mode).
func TestDroplessByGeneration(t *testing.T) {
	for symbol, ids := range map[string][2]uint32{"DroplessEntered": {77, 0x57}, "DroplessExited": {78, 0x58},
		"DelayDropTimeout": {75, 0x59}} {
		five, _ := EventFor(symbol, MLX5)
		four, _ := EventFor(symbol, MLX4)
		if five.ID != ids[0] || four.ID != ids[1] || five.Source != sourceMLX5 || four.Source != sourceMLX4Bus {
			t.Errorf("%s: %+v and %+v, want the IDs %v", symbol, five, four, ids)
		}
	}
}
