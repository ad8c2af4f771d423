package driver

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
)

// twoWires are the ends of two wires: a and b are at one end of the first, c and d at one of the second, and e and f at the others.
func twoWires(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a, c := filepath.Join(dir, "a"), filepath.Join(dir, "c")
	return []string{"a=192.0.2.1/24,datagram=" + a + ",path=wire", "b=192.0.2.2/24,path=wire,mac=02:00:00:00:00:02,datagram=" + a,
		"c=192.0.2.3/24,path=wire,datagram=" + c, "d=192.0.2.4/24,path=wire,mac=02:00:00:00:00:04,datagram=" + c,
		"e=192.0.2.5/24,path=wire,datagram=" + a + ".peer,peer=" + a, "f=192.0.2.6/24,path=wire,datagram=" + c + ".peer,peer=" + c}
}

// TestTeam_Beside: adapters that share the wires of members stand on the team beside its carrier, with their virtual functions, by
// whichever wire is active; they do so when the driver starts anew, and are back on their wires when the team is gone.
func TestTeam_Beside(t *testing.T) {
	t.Parallel()
	parts := parsed(t, twoWires(t)...)
	d := start(t, parts)
	defer func() { stop(t, d) }()
	reach := func(when string, far int, from ...int) {
		t.Helper()
		t.Log(when)
		for _, i := range from {
			across(t, end{d, i}, end{d, far})
			across(t, end{d, far}, end{d, i})
		}
	}
	const a, b, c, e, f = 0, 1, 2, 4, 5
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "b", Name: "vf", Settings: []string{"address=192.0.2.12/24"}}); err != nil {
		t.Fatal(err)
	}
	reach("before", e, a, b)
	mustTeam(t, d, "AFT", "c", "a") // c carries it, and a is active
	up := func() {
		t.Helper()
		if all := d.Functions(); len(all) != 1 || !all[0].Up || all[0].Adapter != "b" {
			t.Errorf("there are functions %+v", all)
		}
		for _, i := range []int{b, c, c + 1} {
			if s := d.Status().Adapters[i]; s.Wire != "team T" || !s.Enabled {
				t.Errorf("%s is on %q, enabled: %v", s.Name, s.Wire, s.Enabled)
			}
		}
		if s := d.Teams()[0]; !reflect.DeepEqual(s.Beside, []string{"b", "d"}) || s.Carrier != "c" {
			t.Errorf("the team is %+v", s)
		}
	}
	up()
	reach("by the wire of a", e, b, c, c+1)
	if err := d.SetAdapter(AdapterRequest{Adapter: "a"}); err != nil {
		t.Fatal(err)
	}
	reach("by the wire of c", f, b, c, c+1)
	stop(t, d)
	d = start(t, parts)
	up()
	reach("after a restart", f, b, c, c+1)
	if _, err := d.RemoveTeam("T"); err != nil {
		t.Fatal(err)
	}
	if err := d.SetAdapter(AdapterRequest{Adapter: "a", Enable: true}); err != nil {
		t.Fatal(err)
	}
	reach("without the team", e, a, b)
	reach("without the team", f, c, c+1)
	if all := d.Functions(); !all[0].Up {
		t.Errorf("the function is %+v", all[0])
	}
}

// TestTeam_Clash: a member that would give the team a MAC that somebody on it has is refused, with both named, and nothing changes; so is
// one who is not the first on a wire.
func TestTeam_Clash(t *testing.T) {
	d := start(t, parsed(t, twoWires(t)...))
	defer stop(t, d)
	mac := d.Status().Adapters[0].MAC
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "c", Name: "red", Settings: []string{"mac=" + mac}}); err != nil {
		t.Fatal(err)
	}
	mustTeam(t, d, "AFT", "c")
	for what, x := range map[string]struct {
		adapter string
		q       api.TeamMemberRequest
		field   string
		names   []string
	}{
		"a function's MAC": {"a", api.TeamMemberRequest{GivesMAC: true}, "MAC", []string{mac, "the team", `"red"`}},
		"not the first":    {"b", api.TeamMemberRequest{}, "adapter", []string{`"a"`, "first on the wire"}},
	} {
		var wrong *api.FieldError
		_, err := d.AttachMember("T", x.adapter, x.q)
		if !errors.As(err, &wrong) || wrong.Field != x.field {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, name := range x.names {
			if !strings.Contains(wrong.Error(), name) {
				t.Errorf("%s: %v, want %s in it", what, err, name)
			}
		}
	}
	if all := d.Functions(); len(d.Teams()[0].Members) != 1 || !all[0].Up {
		t.Errorf("there are %+v and %+v", d.Teams(), all)
	}
	across(t, end{d, 2}, end{d, 5})
}
