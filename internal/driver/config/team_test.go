package config

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/internal/team"
)

// TestParseAdapter_Team: the command line names a team's type, members and rules.
func TestParseAdapter_Team(t *testing.T) {
	for text, want := range map[string]Team{
		"e=192.0.2.1/24,team,members=interface:eth1+tap:t0": {Type: "AFT", Hash: "L4",
			Members: []TeamMember{{Interface: "eth1"}, {TAP: "t0"}}},
		"e=192.0.2.1/24,team=3ad,members=datagram:/run/x+switch:s,hash=l2,slow,passive": {Type: "3AD", Hash: "L2", SlowLACP: true,
			PassiveLACP: true, Members: []TeamMember{{Datagram: "/run/x"}, {Switch: "s"}}},
		"e=192.0.2.1/24,team=SFT2,members=interface:a:primary+interface:b:teammac,nofailback": {Type: "SFT", Hash: "L4",
			NoFailBackToPrimary: true, Members: []TeamMember{{Interface: "a", Primary: true}, {Interface: "b", SetTeamMACAddress: true}}},
	} {
		a, err := ParseAdapter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, *a.Team); d != "" || a.Link != LinkTeam || !a.WholeFrames() {
			t.Errorf("%s: link %s, %s", text, a.Link, d)
		}
	}
	a, err := ParseAdapter("e=192.0.2.1,team=3AD,members=tap:a:primary+tap:b:teammac,hash=L3,choice=bandwidth")
	if err != nil {
		t.Fatal(err)
	}
	c := a.Team.Engine()
	if c.Type != team.LACP || c.Choice != lacp.Bandwidth || c.Hash != team.L3 || !c.Fast || c.Passive ||
		!c.Members[0].Primary || !c.Members[1].GivesMAC {
		t.Errorf("it is %+v", c)
	}
	if w := a.Team.Members[0].Wire(&a); w.Link != LinkTAP || w.Interface != "a" {
		t.Errorf("its first wire is %+v", w)
	}
	x, errX := a.MemberMAC(0)
	y, errY := a.MemberMAC(1)
	if x == y || x[0]&1 != 0 || errX != nil || errY != nil {
		t.Errorf("members have %x and %x: %v, %v", x, y, errX, errY)
	}
}

// TestParseAdapter_TeamRefused: what a team cannot be is refused by its field.
func TestParseAdapter_TeamRefused(t *testing.T) {
	for text, field := range map[string]string{
		"e=192.0.2.1,team=AFT":                                                               "adapters[0].team.members",
		"e=192.0.2.1,members=tap:a":                                                          "adapters[0].team",
		"e=192.0.2.1,tap=x,team=AFT":                                                         "--adapter option",
		"e=192.0.2.1,team=LBFO,members=tap:a":                                                "adapters[0].team.type",
		"e=192.0.2.1,team=AFT,members=tap:a,hash=L7":                                         "adapters[0].team.hash",
		"e=192.0.2.1,team=AFT,of=a":                                                          "adapters[0].team",
		"e=192.0.2.1,team,of=a,members=tap:a":                                                "adapters[0].team",
		"e=192.0.2.1,tap=x,of=a":                                                             "adapters[0].team",
		"e=192.0.2.1,team=AFT,members=tap:a,slow":                                            "adapters[0].team.slow_lacp, passive_lacp, lacp_choice",
		"e=192.0.2.1,team=SLA,members=tap:a,choice=count":                                    "adapters[0].team.slow_lacp, passive_lacp, lacp_choice",
		"e=192.0.2.1,team=3AD,members=tap:a,choice=most":                                     "adapters[0].team.lacp_choice",
		"e=192.0.2.1,team=AFT,members=tap":                                                   "--adapter option",
		"e=192.0.2.1,team=AFT,members=fabric:x":                                              "--adapter option",
		"e=192.0.2.1,team=AFT,members=tap:a:first":                                           "--adapter option",
		"e=192.0.2.1,team=AFT,members=tap:a/b":                                               "adapters[0].team.members[0].interface",
		"e=192.0.2.1,team=AFT,members=datagram:x":                                            "adapters[0].team.members[0].datagram",
		"e=192.0.2.1,team=AFT,members=tap:a+tap:a":                                           "adapters[0].team.members[1]",
		"e=192.0.2.1,team=SFT,members=tap:a+tap:b+tap:c":                                     "adapters[0].team.members",
		"e=192.0.2.1,team=AFT,members=tap:a:primary+tap:b:primary":                           "adapters[0].team.members[1].primary",
		"e=192.0.2.1,team=AFT,members=tap:a:teammac+tap:b:teammac":                           "adapters[0].team.members[1].set_team_mac_address",
		"e=192.0.2.1,team=AFT,members=tap:a,peer=/run/x":                                     "adapters[0].peer",
		"e=192.0.2.1,team=AFT,members=tap:a,follow":                                          "adapters[0].follow_interface",
		"e=192.0.2.1,team=AFT,members=tap:a+tap:b+tap:c+tap:d+tap:e+tap:f+tap:g+tap:h+tap:i": "adapters[0].team.members",
	} {
		_, err := ParseAdapter(text)
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v, want %s refused", text, err, field)
		}
	}
}

// TestTeam_OneOfAKind: a member names one wire.
func TestTeam_OneOfAKind(t *testing.T) {
	for _, m := range []TeamMember{{}, {TAP: "a", Interface: "b"}, {TAP: "a", Peer: "/run/x"}} {
		a := Adapter{Link: LinkTeam, Address: netip.MustParseAddr("192.0.2.1"), Team: &Team{Members: []TeamMember{m}}}
		_, err := Config{Adapters: []Adapter{a}}.Complete()
		var wrong *api.FieldError
		if !errors.As(err, &wrong) || wrong.Field != "adapters[0].team.members[0].interface, tap, switch, datagram" {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// TestTeam_WiresOfOthers: a wire of a team is nobody else's, neither alone nor in another team; a switch has ports for all.
func TestTeam_WiresOfOthers(t *testing.T) {
	for text, refused := range map[string]bool{
		"b=192.0.2.2,tap=t0": true, "b=192.0.2.2,team,members=tap:t0": true, "b=192.0.2.2,tap=t1": false,
		"b=192.0.2.2,team=SLA,members=tap:t1+switch:s": false,
	} {
		a, err := ParseAdapter("a=192.0.2.1,team,members=tap:t0+switch:s")
		b, err2 := ParseAdapter(text)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		_, err = Config{Adapters: []Adapter{a, b}}.Complete()
		var wrong *api.FieldError
		if errors.As(err, &wrong) != refused || refused && wrong.Field != "adapters[0].team.members[0]" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestTeam_Of: several adapters stand on the team of one that is before them, each with a MAC of its own.
func TestTeam_Of(t *testing.T) {
	for _, c := range []struct{ second, third, field string }{
		{"b=192.0.2.2,team,of=a,mac=02:00:00:00:00:02", "c=192.0.2.3,team,of=a,mac=02:00:00:00:00:03", ""},
		{"b=192.0.2.2,team,of=a", "c=192.0.2.3,tap=t1", "adapters[1].mac"},
		{"b=192.0.2.2,team,of=a,mac=02:00:00:00:00:02", "c=192.0.2.3,team,of=a,mac=02:00:00:00:00:02", "adapters[2].mac"},
		{"b=192.0.2.2,team,of=c,mac=02:00:00:00:00:02", "c=192.0.2.3,team,members=tap:t1,mac=02:00:00:00:00:03", "adapters[1].team.of"},
		{"b=192.0.2.2,team,of=b,mac=02:00:00:00:00:02", "c=192.0.2.3,tap=t1", "adapters[1].team.of"},
		{"b=192.0.2.2,tap=t1", "c=192.0.2.3,team,of=b,mac=02:00:00:00:00:03", "adapters[2].team.of"},
		{"b=192.0.2.2,team,of=a,mac=02:00:00:00:00:02", "c=192.0.2.3,team,of=b,mac=02:00:00:00:00:03", "adapters[2].team.of"},
	} {
		var all []Adapter
		for _, text := range []string{"a=192.0.2.1,team,members=tap:t0+switch:s", c.second, c.third} {
			a, err := ParseAdapter(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, a)
		}
		whole, err := Config{Adapters: all}.Complete()
		var wrong *api.FieldError
		if c.field != "" {
			if !errors.As(err, &wrong) || wrong.Field != c.field {
				t.Errorf("%s, %s: %v, want %s refused", c.second, c.third, err, c.field)
			}
			continue
		}
		if err != nil || whole.FirstOnWire(1) != 0 || whole.FirstOnWire(2) != 0 || whole.Adapters[1].WireName() != "team of a" {
			t.Errorf("%s, %s: %v, the second is at the port of %d", c.second, c.third, err, whole.FirstOnWire(1))
		}
	}
}
