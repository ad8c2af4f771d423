package driver

import (
	"errors"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
)

// parsed returns a configuration with these adapters.
func parsed(t *testing.T, adapters ...string) config.Config {
	t.Helper()
	c := twoAdapters(t)
	c.Adapters = nil
	for _, text := range adapters {
		a, err := config.ParseAdapter(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Adapters = append(c.Adapters, a)
	}
	return c
}

var threeAtASwitch = []string{"a=192.0.2.1/24,switch=s,path=wire", "b=192.0.2.2/24,switch=s,path=wire", "c=192.0.2.3/24,switch=s,path=wire"}

// mustTeam makes a team of adapters, the second its primary member.
func mustTeam(t *testing.T, d *Driver, kind string, members ...string) {
	t.Helper()
	if _, err := d.CreateTeam(api.TeamRequest{Name: "T", Type: kind}); err != nil {
		t.Fatal(err)
	}
	for i, a := range members {
		if _, err := d.AttachMember("t", a, api.TeamMemberRequest{Primary: i == 1, GivesMAC: i == 1}); err != nil {
			t.Fatal(err)
		}
	}
}

// roles returns what the members of the only team do.
func roles(t *testing.T, d *Driver) (text string) {
	t.Helper()
	for _, m := range d.Teams()[0].Members {
		text += m.Adapter + " " + m.Status + " " + m.Role + " "
	}
	return text
}

// TestTeam_Life: a team is made, has members, serves its carrier's address by the wires of all, changes its type, is there after a restart,
// loses the wire of its carrier, and is removed; the adapters are what they were then (WinOF 5.50, 4.1.6).
func TestTeam_Life(t *testing.T) {
	c := parsed(t, threeAtASwitch...)
	d := start(t, c)
	b := d.Status().Adapters[1]
	mustTeam(t, d, "AFT", "a", "b")
	across(t, end{d, 0}, end{d, 2})
	if got := roles(t, d); got != "a Connected Backup b Connected Active " {
		t.Errorf("they are %s", got)
	}
	s := d.Status()
	if a := s.Adapters[0]; a.MAC != b.MAC || a.Wire != "team T" || !a.Enabled || s.Adapters[1].Enabled {
		t.Errorf("the carrier is %+v, want it to have the MAC %s of the second", a, b.MAC)
	}
	if len(s.Teams) != 1 || s.Teams[0].Name != "T" || s.Teams[0].Members[1].Adapter != "b" || s.Teams[0].Members[1].Wire != "switch s" {
		t.Errorf("status has %+v", s.Teams)
	}
	if _, err := d.ModifyTeam("T", api.TeamRequest{Name: "U", Type: "SFT2"}); err != nil {
		t.Fatal(err)
	}
	stop(t, d)
	d = start(t, c)
	defer func() { stop(t, d) }()
	if all := d.Teams(); len(all) != 1 || all[0].Name != "U" || all[0].TypeNumber != 2 || all[0].Carrier != "a" || !all[0].Members[1].Primary {
		t.Fatalf("after a restart there are %+v", all)
	}
	across(t, end{d, 2}, end{d, 0})
	if _, err := d.DetachMember("U", "a"); err != nil { // it carries the team, by the wire of the other
		t.Fatal(err)
	}
	across(t, end{d, 0}, end{d, 2})
	if was, err := d.RemoveTeam("u"); err != nil || len(was.Members) != 1 {
		t.Fatalf("%+v, %v", was, err)
	}
	across(t, end{d, 1}, end{d, 2})
	if now := d.Status().Adapters[1]; now.MAC != b.MAC || now.Wire != b.Wire || len(d.Teams()) != 0 || len(d.Registry().Teams()) != 0 {
		t.Errorf("an adapter that was in a team is %+v, want %+v", now, b)
	}
}

// TestTeam_Functions: an adapter that carries a team has its virtual functions on it, those from before and new ones, also after a restart;
// they are there when its wire has left the team, and when there is no team any more.
func TestTeam_Functions(t *testing.T) {
	c := parsed(t, threeAtASwitch...)
	d := start(t, c)
	defer func() { stop(t, d) }()
	create := func(name, address string) {
		t.Helper()
		if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "a", Name: name, Settings: []string{"address=" + address}}); err != nil {
			t.Fatal(err)
		}
	}
	up := func(when string, want ...bool) {
		t.Helper()
		all := d.Functions()
		if len(all) != len(want) {
			t.Fatalf("%s: there are %+v", when, all)
		}
		for i, f := range all {
			if f.Up != want[i] || f.Adapter != "a" {
				t.Errorf("%s: %s of %s is up: %v, want %v", when, f.Name, f.Adapter, f.Up, want[i])
			}
		}
	}
	create("first", "192.0.2.11/24")
	mustTeam(t, d, "AFT", "a", "b")
	create("second", "192.0.2.12/24")
	up("on the team", true, true)
	if err := d.SetAdapter(AdapterRequest{Adapter: "b"}); err != nil { // the other is active
		t.Fatal(err)
	}
	up("with another active", true, true)
	if err := d.SetAdapter(AdapterRequest{Adapter: "b", Enable: true}); err != nil {
		t.Fatal(err)
	}
	restart(t, d, "a")
	stop(t, d)
	d = start(t, c)
	up("after a restart", true, true)
	if _, err := d.DetachMember("T", "a"); err != nil {
		t.Fatal(err)
	}
	up("detached", true, true)
	if s := d.Status().Adapters; len(s[1].Functions) != 0 || s[1].Wire != "none: team T has it" || s[0].Wire != "team T" {
		t.Errorf("who carries the team is %+v, and the member %+v", s[0], s[1])
	}
	across(t, end{d, 0}, end{d, 2})
	if _, err := d.RemoveTeam("T"); err != nil {
		t.Fatal(err)
	}
	up("without a team", true, true)
}

// TestTeam_DisabledMember: a member that is disabled is out of use and another is active, also after a restart; a member that does not
// carry the team cannot be restarted.
func TestTeam_DisabledMember(t *testing.T) {
	c := parsed(t, threeAtASwitch...)
	d := start(t, c)
	defer func() { stop(t, d) }()
	mustTeam(t, d, "AFT", "a", "b")
	if err := d.SetAdapter(AdapterRequest{Adapter: "b"}); err != nil {
		t.Fatal(err)
	}
	want := "a Connected Active b Disabled Backup "
	if got := roles(t, d); got != want {
		t.Errorf("they are %s, want %s", got, want)
	}
	across(t, end{d, 0}, end{d, 2})
	wantEvent(t, d, "TeamMemberLost", "a: member b", "Disabled", "Backup")
	wantEvent(t, d, "TeamMemberChanged", "a: member a", "Connected", "Active")
	var wrong *api.FieldError
	if err := d.RestartAdapter("b"); !errors.As(err, &wrong) || wrong.Allowed != `"a", which carries the team` {
		t.Errorf("restarting a member: %v", err)
	}
	stop(t, d)
	d = start(t, c)
	if got := roles(t, d); got != want {
		t.Errorf("after a restart they are %s, want %s", got, want)
	}
	if err := d.SetAdapter(AdapterRequest{Adapter: "b", Enable: true}); err != nil {
		t.Fatal(err)
	}
	if got := roles(t, d); got != "a Connected Backup b Connected Active " {
		t.Errorf("enabled again they are %s", got)
	}
}

// TestTeam_Counted: teams made by command and those of the configuration are counter sets and metrics, each member by a name of its own,
// with what it has carried and what it is.
func TestTeam_Counted(t *testing.T) {
	d := start(t, parsed(t, append(threeAtASwitch, "e=192.0.2.5/24,team=3AD,members=switch:s+switch:s")...))
	defer stop(t, d)
	mustTeam(t, d, "AFT", "a", "b")
	across(t, end{d, 0}, end{d, 2})
	w := httptest.NewRecorder()
	d.counters.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, line := range []string{`softvpi_team_members{adapter="a",team="T"} 2`, `softvpi_team_active_members{adapter="a",team="T"} 1`,
		`softvpi_team_up{adapter="a",team="T"} 1`, `softvpi_team_member_active{adapter="a",member="b",team="T"} 1`,
		`softvpi_team_member_info{adapter="a",lacp="none",member="a",role="Backup",status="Connected",team="T"} 1`,
		`softvpi_team_members{adapter="e",team="e"} 2`, `softvpi_team_member_up{adapter="e",member="switch s (2)",team="e"} 1`} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, carried := range []string{"sent_frames", "sent_bytes", "received_frames", "received_bytes"} {
		if !regexp.MustCompile(`softvpi_team_member_` + carried + `_total\{adapter="a",member="b",team="T"\} [1-9]`).MatchString(text) {
			t.Errorf("the active member has no %s", carried)
		}
	}
	if m := d.Status().Teams[1].Members[1]; m.SentFrames == 0 || m.SentBytes < 64 || m.ReceivedFrames == 0 {
		t.Errorf("status has %+v of the active member", m)
	}
}

// TestTeam_Refused: what a team cannot be is refused by its field, and changes nothing.
func TestTeam_Refused(t *testing.T) {
	d := start(t, parsed(t, append(threeAtASwitch, "u=127.0.0.77", "v=192.0.2.5/24,switch=s")...))
	defer stop(t, d)
	mustTeam(t, d, "SFT", "a", "b")
	if _, err := d.CreateTeam(api.TeamRequest{Name: "O", Type: "AFT"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateTeam(api.TeamRequest{Name: "I", Type: "AFT", IPoIB: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateFunction(api.FunctionRequest{Adapter: "v", Name: "vf"}); err != nil {
		t.Fatal(err)
	}
	create := func(q api.TeamRequest) error { _, err := d.CreateTeam(q); return err }
	attach := func(team, adapter string, q api.TeamMemberRequest) error {
		_, err := d.AttachMember(team, adapter, q)
		return err
	}
	modify := func(name string, q api.TeamRequest) error { _, err := d.ModifyTeam(name, q); return err }
	detach := func(team, adapter string) error { _, err := d.DetachMember(team, adapter); return err }
	remove := func(team string) error { _, err := d.RemoveTeam(team); return err }
	function := func(name string) error {
		_, err := d.CreateFunction(api.FunctionRequest{Adapter: name, Name: "x"})
		return err
	}
	plain := api.TeamMemberRequest{}
	before := d.Teams()
	for what, c := range map[string]struct {
		err   error
		field string
	}{
		"type":              {create(api.TeamRequest{Name: "N", Type: "LBFO"}), "type"},
		"no name":           {create(api.TeamRequest{Type: "AFT"}), "team name"},
		"name with a break": {create(api.TeamRequest{Name: "a\nb", Type: "AFT"}), "team name"},
		"name again":        {create(api.TeamRequest{Name: "t", Type: "AFT"}), "team name"},
		"adapter's name":    {create(api.TeamRequest{Name: "A", Type: "AFT"}), "team name"},
		"IPoIB of SLB":      {create(api.TeamRequest{Name: "N", Type: "SLB", IPoIB: true}), "type"},
		"Ethernet in IPoIB": {attach("I", "c", plain), "adapter"},
		"unknown team":      {attach("X", "c", plain), "team"},
		"unknown adapter":   {attach("T", "{00000000-0000-0000-0000-000000000000}", plain), "adapter"},
		"in the team":       {attach("T", "a", plain), "adapter"},
		"in another team":   {attach("O", "a", plain), "adapter"},
		"UDP":               {attach("O", "u", plain), "adapter"},
		"with functions":    {attach("T", "v", plain), "adapter"},
		"third of SFT":      {attach("T", "c", plain), "members"},
		"second primary":    {attach("T", "c", api.TeamMemberRequest{Primary: true}), "primary"},
		"second MAC":        {attach("T", "c", api.TeamMemberRequest{GivesMAC: true}), "SetTeamMacAddress"},
		"detach another":    {detach("T", "c"), "adapter"},
		"detach of none":    {detach("O", "c"), "adapter"},
		"modify unknown":    {modify("X", api.TeamRequest{Name: "N", Type: "AFT"}), "team"},
		"modify type":       {modify("T", api.TeamRequest{Name: "T", Type: "4AD"}), "type"},
		"modify name":       {modify("T", api.TeamRequest{Name: "o", Type: "SFT"}), "team name"},
		"remove unknown":    {remove("X"), "team"},
	} {
		var wrong *api.FieldError
		if !errors.As(c.err, &wrong) || wrong.Field != c.field || wrong.Allowed == "" {
			t.Errorf("%s: %v, want %s refused", what, c.err, c.field)
		}
	}
	if err := function("b"); !errors.Is(err, api.ErrUnsupported) {
		t.Errorf("a function of a member: %v, want that it is not supported", err)
	}
	if len(before) != len(d.Teams()) || len(d.Teams()[0].Members) != 2 {
		t.Errorf("there are %+v, want %+v", d.Teams(), before)
	}
}
