package driver

import (
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
)

// TestWire_Team: an adapter on a team of two ports of a switch talks with one at another port, has the team's MAC, and status says who is
// active, in the manual's words (WinOF 5.50, 4.2.8.3).
func TestWire_Team(t *testing.T) {
	c := twoAdapters(t)
	c.Adapters = nil
	for _, text := range []string{"a=192.0.2.1/24,team=AFT,members=switch:s+switch:s:primary,path=wire", "b=192.0.2.2/24,switch=s,path=wire"} {
		a, err := config.ParseAdapter(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Adapters = append(c.Adapters, a)
	}
	d := start(t, c)
	defer stop(t, d)
	across(t, end{d, 0}, end{d, 1})
	across(t, end{d, 1}, end{d, 0})
	teams := d.Status().Teams
	if len(teams) != 1 || teams[0].Adapter != "a" || teams[0].Type != "AFT" || len(teams[0].Members) != 2 {
		t.Fatalf("teams %+v", teams)
	}
	for i, role := range []string{"Backup", "Active"} {
		if m := teams[0].Members[i]; m.Role != role || m.Status != "Connected" || m.Primary != (i == 1) {
			t.Errorf("member %d is %+v, want it to be %s", i, m, role)
		}
	}
	if d.Status().Adapters[0].Wire != "team AFT of switch s, switch s" {
		t.Errorf("the wire is %q", d.Status().Adapters[0].Wire)
	}
}

// TestWire_TeamOfSeveral: several adapters on one team reach each other and who is elsewhere, and go on when their first one ends; the
// team is the first one's.
func TestWire_TeamOfSeveral(t *testing.T) {
	d := start(t, parsed(t, "a=192.0.2.1/24,team=AFT,members=switch:s+switch:s:primary,path=wire",
		"b=192.0.2.2/24,team,of=a,mac=02:00:00:00:00:02,path=wire", "c=192.0.2.3/24,switch=s,path=wire"))
	defer stop(t, d)
	across(t, end{d, 0}, end{d, 1})
	across(t, end{d, 1}, end{d, 2})
	across(t, end{d, 2}, end{d, 0})
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "b", Name: "vf", Settings: []string{"address=192.0.2.11/24"}}); err != nil {
		t.Fatal(err)
	}
	across(t, end{d, 1}, end{d, 2})
	s := d.Status()
	if len(s.Teams) != 1 || s.Teams[0].Adapter != "a" || s.Adapters[1].Wire != "team of a" || len(s.Adapters[1].Functions) != 1 {
		t.Errorf("teams %+v, and the second adapter is on %q", s.Teams, s.Adapters[1].Wire)
	}
	if err := d.SetAdapter(AdapterRequest{Adapter: "a"}); err != nil {
		t.Fatal(err)
	}
	across(t, end{d, 1}, end{d, 2})
}
