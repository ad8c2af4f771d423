package config

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// TestComplete_Switch: each adapter has a port of its own at a switch; those in one VLAN of it are neighbours, whether their
// frames have the tag or their ports put it there.
func TestComplete_Switch(t *testing.T) {
	parse := func(texts ...string) (Config, error) { return parseAll(t, texts) }
	c, err := parse("a=192.0.2.1,switch=s,pvid=10", "b=192.0.2.2,switch=s,vlan=10", "c=192.0.2.3,switch=s", "d=192.0.2.4,switch=t,pvid=10",
		"e=192.0.2.5,switch=s,pvid=1,trunk=10")
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Adapters {
		if c.FirstOnWire(i) != i || c.Adapters[i].StationMAC() == [6]byte{} {
			t.Errorf("adapter %d: first on the wire %d, MAC %x", i, c.FirstOnWire(i), c.Adapters[i].StationMAC())
		}
		for j := range c.Adapters {
			want := map[[2]int]bool{{0, 1}: true, {1, 0}: true, {2, 4}: true, {4, 2}: true}[[2]int{i, j}] || i == j
			if got := c.Adapters[i].Neighbours(&c.Adapters[j]); got != want {
				t.Errorf("%s and %s are neighbours: %v", c.Adapters[i].Name, c.Adapters[j].Name, got)
			}
		}
	}
	const mac = ",mac=02:00:00:00:00:02"
	for field, texts := range map[string][]string{
		"adapters[1].link_mtu": {"a=192.0.2.1,switch=s", "b=192.0.2.2,switch=s,linkmtu=9000"},
		"adapters[1].mac":      {"a=192.0.2.1,switch=s,pvid=10" + mac, "b=192.0.2.2,switch=s,vlan=10" + mac},
	} {
		_, err := parse(texts...)
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%q: %v, want %s refused", texts, err, field)
		}
	}
	if _, err := parse("a=192.0.2.1,switch=s"+mac, "b=192.0.2.2,switch=s,vlan=10"+mac, "c=192.0.2.3,switch=t"+mac); err != nil {
		t.Errorf("the same MAC in another VLAN, or at another switch: %v", err)
	}
}
