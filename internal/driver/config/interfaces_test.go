package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/api"
)

// TestInterfaces: a team of IPoIB interfaces is of adapters with InfiniBand ports, and has the syntax of others, in the file and on a
// command line.
func TestInterfaces(t *testing.T) {
	file, err := decode(strings.NewReader(`{"adapters": [{"name": "a", "link": "cable", "team": {"type": "aft", "no_fail_back_to_primary": true,
		"members": [{"adapter": "b", "primary": true}, {"adapter": "a"}]}}, {"name": "b", "link": "cable"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if file, err = file.Complete(); err != nil {
		t.Fatal(err)
	}
	want := Team{Type: "AFT", NoFailBackToPrimary: true, Members: []TeamMember{{Adapter: "b", Primary: true}, {Adapter: "a"}}}
	if d := cmp.Diff(want, *file.Adapters[0].Team); d != "" || !file.Adapters[0].TeamOfInterfaces() {
		t.Error(d)
	}
	for _, text := range []string{"a=cable,team=AFT,members=adapter:b:primary+adapter:a,nofailback", "a=cable,team,nofailback,members=adapter:b:primary+adapter:a"} {
		a, err := ParseAdapter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, *a.Team); d != "" || a.Link != LinkCable || a.WholeFrames() {
			t.Errorf("%s: link %s, %s", text, a.Link, d)
		}
	}
}

// TestInterfaces_Refused: what such a team cannot be is refused by its field, with what it may be.
func TestInterfaces_Refused(t *testing.T) {
	const team, members = "adapters[0].team.", "adapters[0].team.members"
	for text, want := range map[string][2]string{
		"type=SLB,members=adapter:a+adapter:b":        {team + "type", "AFT, the only one"},
		"type=LBFO,members=adapter:a":                 {team + "type", "AFT, the only one"},
		"members=adapter:a+adapter:b,hash=L3":         {team + "of, hash, slow_lacp, passive_lacp, lacp_choice", "nothing for IPoIB"},
		"members=adapter:a+adapter:b,slow":            {team + "of, hash, slow_lacp, passive_lacp, lacp_choice", "nothing for IPoIB"},
		"of=b":                                        {team + "of, hash, slow_lacp, passive_lacp, lacp_choice", "nothing for IPoIB"},
		"":                                            {members, "1 to 8 members"},
		"members=adapter:a+switch:s":                  {members + "[1]", "members of one kind"},
		"members=interface:eth1":                      {members + "[0]", "members of one kind"},
		"members=adapter:a+adapter:e":                 {members + "[1].adapter", `members of one kind`},
		"members=adapter:a+adapter:red":               {members + "[1].adapter", `virtual functions are in no team): "a", "b", "c"`},
		"members=adapter:a+adapter:b+adapter:a":       {members + "[2].adapter", "no other member"},
		"members=adapter:b":                           {members, "this adapter among them"},
		"members=adapter:a:primary+adapter:b:primary": {members + "[1].primary", "another member"},
		"members=adapter:a:teammac":                   {members + "[0].set_team_mac_address", "the member that carries"},
		"members=adapter:a+adapter:c":                 {"adapters[2].team.members[0].adapter", "no other team"},
		"members=" + strings.Repeat("adapter:a+", 8) + "adapter:a": {members, "8 at most"},
	} {
		kind, rest, _ := strings.Cut(text, ",")
		option := "a=cable,team"
		if k, ok := strings.CutPrefix(kind, "type="); ok {
			option, text = option+"="+k, rest
		}
		if text != "" {
			option += "," + text
		}
		var all Config
		var err error
		for _, s := range []string{option, "b=cable", "c=cable,team,members=adapter:c", "e=192.0.2.5/24,switch=s"} {
			var a Adapter
			if a, err = ParseAdapter(s); err != nil {
				break
			}
			all.Adapters = append(all.Adapters, a)
		}
		if err == nil {
			_, err = all.Complete()
		}
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || wrong.Field != want[0] || !strings.Contains(wrong.Allowed, want[1]) {
			t.Errorf("%s: %v, want %s refused, and %q", option, err, want[0], want[1])
		}
	}
	var wrong *api.FieldError
	if _, err := ParseAdapter("e=192.0.2.1/24,team,members=switch:s+adapter:a"); !errors.As(err, &wrong) || wrong.Field != members+"[1].adapter" ||
		!strings.Contains(wrong.Allowed, "members of one kind") {
		t.Errorf("an adapter in a team of wires: %v", err)
	}
}
