package driver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/ipoib/service"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/internal/team/carrier"
)

// mostIPoIBTeams is how many teams of IPoIB interfaces there are at most.
const mostIPoIBTeams = 64

// ipoibTeams are the teams of IPoIB interfaces (WinOF 5.50, 4.2.8), which vlan_config makes with IPoIB. Their members are adapters with
// InfiniBand ports, which stay enabled: RDMA is theirs. The network interface of the first one is the team's.
type ipoibTeams struct {
	d     *Driver
	made  []*ipoibTeam // with changes held
	shown atomic.Pointer[[]shownIPoIBTeam]
}

// ipoibTeam is one of them.
type ipoibTeam struct {
	registry.Team
	run *service.Team // nil: it has no members
}

// start makes the teams again that the registry keeps. The caller holds changes, or is alone.
func (x *ipoibTeams) start() {
	for _, kept := range x.d.registry.Teams() {
		if !kept.IPoIB {
			continue
		}
		t := &ipoibTeam{Team: kept}
		for _, i := range x.d.membersOf(&t.Team) {
			if why := x.noMember(i); why != "" {
				x.d.log.Warn("an adapter is not in its team any more", "team", kept.Name, "adapter", x.d.running[i].Name, "cause", why)
				t.Members = slices.DeleteFunc(slices.Clone(t.Members), func(g string) bool { return g == x.d.running[i].GUID() })
			}
		}
		x.made = append(x.made, t)
		if err := x.begin(t, nil); err != nil {
			x.d.log.Warn("a team of IPoIB interfaces does not run", "team", kept.Name, "cause", err)
		}
	}
}

// membersOf returns the members of a team that the configuration has, in the team's order.
func (d *Driver) membersOf(t *registry.Team) (list []int) {
	for _, g := range t.Members {
		if i := slices.IndexFunc(d.running, func(r *running) bool { return r.GUID() == g }); i >= 0 {
			list = append(list, i)
		}
	}
	return list
}

// noMember says why the interface of an adapter can be in no team; empty: it can.
func (x *ipoibTeams) noMember(i int) string {
	switch {
	case !x.d.infiniBand(i):
		return "members of one kind: adapters with InfiniBand ports, in a team of IPoIB interfaces"
	case len(x.d.functions.of(uint32(i))) > 0: // WinOF 5.50, 1.7.1: "supported only on native machines (and not in HyperV or SR-IOV)"
		return "an adapter without virtual functions, with which the manual has no teams of IPoIB interfaces"
	}
	return ""
}

// of returns the team that an adapter's interface is in; nil: it is in none.
func (x *ipoibTeams) of(i int) *ipoibTeam {
	for _, t := range x.made {
		if slices.Contains(t.Members, x.d.running[i].GUID()) {
			return t
		}
	}
	return nil
}

// named finds a team by its name, in capitals or not, or its GUID; nil: there is none.
func (x *ipoibTeams) named(name string) *ipoibTeam {
	for _, t := range x.made {
		if strings.EqualFold(t.Name, name) || strings.EqualFold(strings.Trim(t.GUID, "{}"), strings.Trim(name, "{}")) {
			return t
		}
	}
	return nil
}

// taken reports whether one of them has a name. The caller holds changes.
func (x *ipoibTeams) taken(name string) bool {
	return slices.ContainsFunc(x.made, func(t *ipoibTeam) bool { return strings.EqualFold(t.Name, name) })
}

func (x *ipoibTeams) create(q *api.TeamRequest) (api.Team, error) {
	if len(x.made) == mostIPoIBTeams {
		return api.Team{}, api.Wrong("teams", fmt.Sprint(len(x.made)), fmt.Sprintf("%d of IPoIB interfaces at most", mostIPoIBTeams))
	}
	if err := onlyAFT(q.Type); err != nil {
		return api.Team{}, err
	}
	if err := x.d.Roster.FreeName(q.Name); err != nil {
		return api.Team{}, err
	}
	t := &ipoibTeam{Team: registry.Team{GUID: registry.NewGUID(), Name: q.Name, Type: uint32(team.AFT), NoFallBack: q.NoFailBack, Number: 1,
		IPoIB: true}}
	for _, o := range x.d.registry.Teams() {
		t.Number = max(t.Number, o.Number+1)
	}
	if err := x.d.registry.Apply(t.Keep()...); err != nil {
		return api.Team{}, err
	}
	x.made = append(x.made, t)
	return x.describe(t), nil
}

// onlyAFT refuses other types (WinOF 5.50, 4.1.6.1: "for IPoIB team, only 'AFT' type is supported").
func onlyAFT(name string) error {
	kind, ok := team.ParseType(name)
	switch {
	case !ok:
		return api.Wrong("type", strconv.Quote(name), team.Types)
	case kind != team.AFT:
		return api.Wrong("type", strconv.Quote(name), "AFT, the only one for IPoIB interfaces: an InfiniBand port has no other's address")
	}
	return nil
}

func (x *ipoibTeams) modify(t *ipoibTeam, q *api.TeamRequest) (api.Team, error) {
	err := onlyAFT(q.Type)
	if err == nil && !strings.EqualFold(q.Name, t.Name) {
		err = x.d.Roster.FreeName(q.Name)
	}
	if err != nil {
		return api.Team{}, err
	}
	next := t.Team
	next.Name = q.Name
	if err := x.d.registry.Apply(next.Keep()...); err != nil {
		return api.Team{}, err
	}
	t.Team = next
	x.show()
	return x.describe(t), nil
}

func (x *ipoibTeams) remove(t *ipoibTeam) (api.Team, error) {
	was := x.describe(t)
	next := t.Team
	next.Members, next.Primary = nil, ""
	if err := x.change(t, next); err != nil {
		return was, err
	}
	if err := x.d.registry.Apply(t.Forget()); err != nil {
		return was, err
	}
	x.made = slices.DeleteFunc(x.made, func(o *ipoibTeam) bool { return o == t })
	x.show()
	return was, nil
}

func (x *ipoibTeams) attach(t *ipoibTeam, adapter string, q api.TeamMemberRequest) (api.Team, error) {
	i, err := x.d.adapterNamed(adapter)
	if err == nil {
		err = x.mayAttach(t, i, q)
	}
	if err != nil {
		return api.Team{}, err
	}
	next := t.Team
	next.Members = append(slices.Clone(next.Members), x.d.running[i].GUID())
	if q.Primary {
		next.Primary = x.d.running[i].GUID()
	}
	err = x.change(t, next)
	return x.describe(t), err
}

// mayAttach returns why an adapter's interface cannot be a member of a team, or not of this one.
func (x *ipoibTeams) mayAttach(t *ipoibTeam, i int, q api.TeamMemberRequest) error {
	named := strconv.Quote(x.d.running[i].Name)
	if o := x.of(i); o != nil {
		return api.Wrong("adapter", named+", a member of team "+strconv.Quote(o.Name), "one that is in no team")
	}
	if why := x.noMember(i); why != "" {
		return api.Wrong("adapter", named, why)
	}
	switch {
	case len(t.Members) >= ipoib.MostMembers:
		return api.Wrong("members", fmt.Sprint(len(t.Members)+1), fmt.Sprintf("%d at most", ipoib.MostMembers))
	case q.Primary && t.Primary != "":
		return api.Wrong("primary", "given", "nothing while "+t.Primary+" is the primary member; detach that first")
	case q.GivesMAC:
		return api.Wrong("SetTeamMacAddress", "given", "nothing for IPoIB interfaces: the team has the address of the member that carries")
	}
	return nil
}

func (x *ipoibTeams) detach(t *ipoibTeam, adapter string) (api.Team, error) {
	was, g := x.describe(t), "{"+strings.ToUpper(strings.Trim(adapter, "{}"))+"}"
	if i, err := x.d.adapterNamed(adapter); err == nil {
		g = x.d.running[i].GUID()
	}
	if !slices.Contains(t.Members, g) {
		allowed := "a member; the team has none"
		if len(t.Members) > 0 {
			allowed = "the GUID or name of a member: " + strings.Join(t.Members, ", ")
		}
		return was, api.Wrong("adapter", strconv.Quote(adapter), allowed)
	}
	next := t.Team
	next.Members = slices.DeleteFunc(slices.Clone(next.Members), func(m string) bool { return m == g })
	if next.Primary == g {
		next.Primary = ""
	}
	return was, x.change(t, next)
}

// change gives a team other members.
func (x *ipoibTeams) change(t *ipoibTeam, next registry.Team) error {
	before := t.Team
	if err := x.d.registry.Apply(next.Keep()...); err != nil {
		return err
	}
	left := x.d.membersOf(&before)
	t.Team = next
	err := x.begin(t, left)
	if err == nil {
		return nil
	}
	t.Team = before
	return errors.Join(err, x.d.registry.Apply(before.Keep()...), x.begin(t, x.d.membersOf(&next)))
}

// begin has the interfaces of a team's members, and of those that were members before, run as they are to now.
func (x *ipoibTeams) begin(t *ipoibTeam, before []int) error {
	members := x.d.membersOf(&t.Team)
	cfg := service.TeamConfig{TeamConfig: ipoib.TeamConfig{Members: len(members), Primary: -1, NoFailBack: t.NoFallBack}}
	for k, i := range members {
		if x.d.running[i].GUID() == t.Primary {
			cfg.Primary = k
		}
	}
	cfg.Changed = func(n carrier.News) { x.tell(members, n) }
	run, err := x.d.ipoib.setTeam(t.GUID, members, before, cfg)
	t.run = run
	x.show()
	return err
}

// tell writes the event of a member's status and role (WinOF 5.50, 4.2.8.3).
func (x *ipoibTeams) tell(members []int, n carrier.News) {
	first, name := x.d.running[members[0]], x.d.running[members[n.Member]].Name
	if n.Status == carrier.Connected {
		x.d.events.Raise(first.Generation, events.TeamMemberChanged{Adapter: first.Name, Member: name, Status: n.Status.String(),
			Role: n.Role.String()})
		return
	}
	x.d.events.Raise(first.Generation, events.TeamMemberLost{Adapter: first.Name, Member: name, Status: n.Status.String(),
		Role: n.Role.String()})
}
