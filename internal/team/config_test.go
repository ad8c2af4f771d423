package team

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestParseType: the names are those of vlan_config's help, and SFT2 of its example is type 2 (WinOF 5.50, 4.1.6.1, 4.1.6.6, 4.1.6.9).
func TestParseType(t *testing.T) {
	for name, want := range map[string]Type{"AFT": AFT, "sft": SFT, "SFT2": 2, "SLB": SLB, "RLB": RLB, "ALB": ALB, "3AD": LACP, "3ad": LACP,
		"SLA": SLA, "LACP": 0, "": 0, "none": 0} {
		if got, ok := ParseType(name); got != want || ok != (want != 0) {
			t.Errorf("%q is %v, %v, want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"L2", "L3", "L4"} {
		if h, ok := ParseHash(name); !ok || h.String() != name {
			t.Errorf("%q is %v, %v", name, h, ok)
		}
	}
	if _, ok := ParseHash("L5"); ok {
		t.Error("there is a layer L5")
	}
}

// TestCheck: what cannot be is refused, and the error names the field and what it may be.
func TestCheck(t *testing.T) {
	one := func(m ...Member) []Member { return m }
	a, b, c := Member{MAC: memberMAC(0)}, Member{MAC: memberMAC(1)}, Member{MAC: memberMAC(2)}
	prime, gives := a, a
	prime.Primary, gives.GivesMAC = true, true
	prime2, gives2 := b, b
	prime2.Primary, gives2.GivesMAC = true, true
	for _, x := range []struct {
		cfg   Config
		field string
	}{
		{Config{}, "Type"},
		{Config{Type: SLA + 1}, "Type"},
		{Config{Type: AFT, Hash: L2 + 1}, "Hash"},
		{Config{Type: AFT, Fast: true}, "Type"},
		{Config{Type: SLA, Choice: lacp.Count}, "Type"},
		{Config{Type: LACP, Choice: lacp.Count + 1}, "Choice"},
		{Config{Type: AFT, Members: make([]Member, MostMembers+1)}, "Members"},
		{Config{Type: SFT, Members: one(a, b, c)}, "Members"},
		{Config{Type: AFT, Members: one(a, Member{})}, "Members[1].MAC"},
		{Config{Type: AFT, Members: one(Member{MAC: eth.Broadcast})}, "Members[0].MAC"},
		{Config{Type: AFT, Members: one(a, a)}, "Members[1].MAC"},
		{Config{Type: AFT, Members: one(prime, prime2)}, "Members[1].Primary"},
		{Config{Type: AFT, Members: one(gives, gives2)}, "Members[1].GivesMAC"},
	} {
		var e *Error
		if _, err := New(x.cfg); !errors.As(err, &e) || e.Field != x.field || e.Want == "" {
			t.Errorf("%+v: error %v, want one about %s", x.cfg, err, x.field)
		}
	}
	for _, cfg := range []Config{{Type: AFT}, {Type: SFT, Members: one(a, b)}, {Type: LACP},
		{Type: LACP, Fast: true, Members: one(prime, b)}, {Type: ALB, Hash: L2, Members: one(a, gives2, c)}} {
		if _, err := New(cfg); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestMAC: the team's address is that of the member that gives it, as it is, and otherwise a locally administered one from the primary
// member, or the first.
func TestMAC(t *testing.T) {
	a, b := Member{MAC: eth.MAC{0x00, 2, 0xc9, 0, 0, 1}}, Member{MAC: eth.MAC{0x00, 2, 0xc9, 0, 0, 2}}
	primary, gives := b, b
	primary.Primary, gives.GivesMAC = true, true
	local := Member{MAC: eth.MAC{0x02, 2, 0xc9, 0, 0, 1}}
	for _, x := range []struct {
		members []Member
		want    eth.MAC
	}{
		{nil, eth.MAC{}},
		{[]Member{a, b}, eth.MAC{0x02, 2, 0xc9, 0, 0, 1}},
		{[]Member{a, primary}, eth.MAC{0x02, 2, 0xc9, 0, 0, 2}},
		{[]Member{a, gives}, b.MAC},
		{[]Member{a, local}, eth.MAC{0x06, 2, 0xc9, 0, 0, 1}}, // the first choice is the other member's
		{[]Member{local}, eth.MAC{0x06, 2, 0xc9, 0, 0, 1}},
	} {
		if got := (&Config{Members: x.members}).MAC(); got != x.want {
			t.Errorf("with %v it is %v, want %v", x.members, got, x.want)
		}
	}
}
