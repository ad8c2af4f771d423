package driver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/events"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
)

var _ api.TeamSource = (*Driver)(nil)

const (
	// mostTeams is how many teams there are at most, and mostTeamName how long the name of one is.
	mostTeams    = 64
	mostTeamName = 63
)

// Teams implements api.TeamSource.
func (d *Driver) Teams() []api.Team {
	d.changes.Lock()
	defer d.changes.Unlock()
	list := []api.Team{}
	for _, t := range d.made {
		list = append(list, d.describeTeam(t))
	}
	return list
}

// describeTeam returns a team for the management interface.
func (d *Driver) describeTeam(t *madeTeam) api.Team {
	kind := team.Type(t.Type)
	o := api.Team{Name: t.Name, GUID: t.GUID, Type: kind.String(), TypeNumber: int(kind), FailBack: !t.NoFallBack,
		Members: []api.TeamMember{}, VLANs: []string{}}
	for _, v := range d.vlansOf(t.GUID) {
		o.VLANs = append(o.VLANs, v.Name)
	}
	present := d.membersOf(&t.Team)
	for _, g := range t.Members {
		m := api.TeamMember{GUID: g, Primary: g == t.Primary, GivesMAC: g == t.GivesMAC}
		place := slices.IndexFunc(present, func(i int) bool { return d.running[i].GUID() == g })
		if place >= 0 {
			m.Adapter = d.running[present[place]].Name
		}
		if place >= 0 && t.link != nil {
			s := t.link.Status().Members[place]
			m.Status, m.Role = s.Status.String(), s.Role.String()
		}
		o.Members = append(o.Members, m)
	}
	if len(present) > 0 {
		o.Carrier = d.running[present[0]].Name
	}
	return o
}

// CreateTeam implements api.TeamSource.
func (d *Driver) CreateTeam(q api.TeamRequest) (api.Team, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	kind, err := parseTeamType(q.Type)
	switch {
	case err != nil:
		return api.Team{}, err
	case q.IPoIB && kind != team.AFT:
		return api.Team{}, api.Wrong("type", strconv.Quote(q.Type), "AFT, for IPoIB interfaces")
	case q.IPoIB:
		return api.Team{}, fmt.Errorf("%w: teams of IPoIB interfaces are not built", api.ErrUnsupported)
	case len(d.made) == mostTeams:
		return api.Team{}, api.Wrong("teams", fmt.Sprint(len(d.made)), fmt.Sprintf("%d at most", mostTeams))
	}
	if err := d.freeTeamName(q.Name, nil); err != nil {
		return api.Team{}, err
	}
	t := &madeTeam{Team: registry.Team{GUID: newGUID(), Name: q.Name, Type: uint32(kind), NoFallBack: q.NoFailBack, Number: 1}}
	for _, o := range d.made {
		t.Number = max(t.Number, o.Number+1)
	}
	if err := d.registry.Apply(t.Keep()...); err != nil {
		return api.Team{}, err
	}
	d.made = append(d.made, t)
	return d.describeTeam(t), nil
}

func parseTeamType(name string) (team.Type, error) {
	kind, ok := team.ParseType(name)
	if !ok {
		return 0, api.Wrong("type", strconv.Quote(name), team.Types)
	}
	return kind, nil
}

// freeTeamName returns why a team, nil: a new one, cannot have a name.
func (d *Driver) freeTeamName(name string, t *madeTeam) error {
	if name == "" || len(name) > mostTeamName || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return api.Wrong("team name", strconv.Quote(name), fmt.Sprintf("1 to %d printable characters, without space around them", mostTeamName))
	}
	for _, o := range d.made {
		if o != t && strings.EqualFold(o.Name, name) {
			return api.Wrong("team name", strconv.Quote(name), "one that no other team has, in capitals or not")
		}
	}
	for _, r := range d.running {
		if strings.EqualFold(r.Name, name) {
			return api.Wrong("team name", strconv.Quote(name), "one that no adapter has")
		}
	}
	return nil
}

// newGUID returns a random GUID (RFC 9562, version 4) in the form of Windows.
func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // which never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("{%X-%X-%X-%X-%X}", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ModifyTeam implements api.TeamSource. A name alone leaves the members as they are.
func (d *Driver) ModifyTeam(name string, q api.TeamRequest) (api.Team, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	t, err := d.teamNamed(name)
	if err != nil {
		return api.Team{}, err
	}
	kind, err := parseTeamType(q.Type)
	if err == nil {
		err = d.freeTeamName(q.Name, t)
	}
	if err != nil {
		return api.Team{}, err
	}
	next := t.Team
	next.Name, next.Type = q.Name, uint32(kind)
	if next.Type == t.Type {
		if err := d.registry.Apply(next.Keep()...); err != nil {
			return api.Team{}, err
		}
		t.Team = next
		return d.describeTeam(t), nil
	}
	err = d.changeTeam(t, next)
	return d.describeTeam(t), err
}

// RemoveTeam implements api.TeamSource.
func (d *Driver) RemoveTeam(name string) (api.Team, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	t, err := d.teamNamed(name)
	if err != nil {
		return api.Team{}, err
	}
	was := d.describeTeam(t)
	if len(was.VLANs) > 0 {
		return was, api.Wrong("team", fmt.Sprintf("%q with VLAN interfaces %s", t.Name, strings.Join(was.VLANs, ", ")),
			"one without; vlan_config removevlan removes them")
	}
	if len(t.Members) > 0 {
		next := t.Team
		next.Members, next.Primary, next.GivesMAC = nil, "", ""
		if err := d.changeTeam(t, next); err != nil {
			return was, err
		}
	}
	if err := d.registry.Apply(t.Forget()); err != nil {
		return was, err
	}
	d.made = slices.DeleteFunc(d.made, func(o *madeTeam) bool { return o == t })
	return was, nil
}

// AttachMember implements api.TeamSource.
func (d *Driver) AttachMember(name, adapter string, q api.TeamMemberRequest) (api.Team, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	t, err := d.teamNamed(name)
	if err != nil {
		return api.Team{}, err
	}
	i, err := d.adapterNamed(adapter)
	if err == nil {
		err = d.mayAttach(t, i, q)
	}
	if err != nil {
		return api.Team{}, err
	}
	next, g := t.Team, d.running[i].GUID()
	next.Members = append(slices.Clone(next.Members), g)
	if q.Primary {
		next.Primary = g
	}
	if q.GivesMAC {
		next.GivesMAC = g
	}
	err = d.changeTeam(t, next)
	return d.describeTeam(t), err
}

// mayAttach returns why an adapter cannot be a member of a team, or not of this one.
func (d *Driver) mayAttach(t *madeTeam, i int, q api.TeamMemberRequest) error {
	named := strconv.Quote(d.running[i].Name)
	if o, _ := d.teamOf(i); o != nil {
		return api.Wrong("adapter", named+", a member of team "+strconv.Quote(o.Name), "one that is in no team")
	}
	if why := d.noMember(i); why != "" {
		return api.Wrong("adapter", named, why)
	}
	if n := len(d.functions.of(uint32(i))); n > 0 {
		return api.Wrong("adapter", fmt.Sprintf("%s, whose %d virtual functions use its wire", named, n), "one without virtual functions")
	}
	switch {
	case len(d.vlansOf(d.running[i].GUID())) > 0:
		return api.Wrong("adapter", named+", whose VLAN interfaces use its wire", "one without; vlan_config removevlan removes them")
	case q.Primary && t.Primary != "":
		return api.Wrong("primary", "given", "nothing while "+t.Primary+" is the primary member; detach that first")
	case q.GivesMAC && t.GivesMAC != "":
		return api.Wrong("SetTeamMacAddress", "given", "nothing while "+t.GivesMAC+" gives the team its MAC; detach that first")
	}
	return nil
}

// DetachMember implements api.TeamSource.
func (d *Driver) DetachMember(name, adapter string) (api.Team, error) {
	d.changes.Lock()
	defer d.changes.Unlock()
	t, err := d.teamNamed(name)
	if err != nil {
		return api.Team{}, err
	}
	was, g := d.describeTeam(t), "{"+strings.ToUpper(strings.Trim(adapter, "{}"))+"}"
	if i, err := d.adapterNamed(adapter); err == nil {
		g = d.running[i].GUID()
	}
	if !slices.Contains(t.Members, g) {
		return was, api.Wrong("adapter", strconv.Quote(adapter), membersText(&was))
	}
	next := t.Team
	next.Members = slices.DeleteFunc(slices.Clone(next.Members), func(m string) bool { return m == g })
	if next.Primary == g {
		next.Primary = ""
	}
	if next.GivesMAC == g {
		next.GivesMAC = ""
	}
	return was, d.changeTeam(t, next)
}

// membersText lists the members of a team.
func membersText(t *api.Team) string {
	if len(t.Members) == 0 {
		return "a member; the team has none"
	}
	var names []string
	for _, m := range t.Members {
		names = append(names, m.GUID)
	}
	return "the GUID or name of a member: " + strings.Join(names, ", ")
}

// changeTeam makes a team another one, all or nothing: what its members were is put back if they cannot be what they are to be.
func (d *Driver) changeTeam(t *madeTeam, next registry.Team) error {
	if err := d.checkTeam(&next); err != nil {
		return err
	}
	before := t.Team
	touched := d.membersOf(&before)
	for _, i := range d.membersOf(&next) {
		if !slices.Contains(touched, i) {
			touched = append(touched, i)
		}
	}
	if err := d.registry.Apply(next.Keep()...); err != nil {
		return err
	}
	t.Team, t.link = next, nil
	err := d.rewire(touched)
	if err == nil {
		return nil
	}
	t.Team, t.link = before, nil
	back := errors.Join(d.registry.Apply(before.Keep()...), d.rewire(touched))
	if back != nil {
		for _, i := range touched {
			r := d.running[i]
			d.events.Raise(r.Generation, events.AdapterStartFailed{Adapter: r.Name, Cause: back})
		}
	}
	return errors.Join(err, back)
}

// checkTeam returns what is wrong with a team, by the rules of its engine.
func (d *Driver) checkTeam(t *registry.Team) error {
	c := d.engine(t, d.membersOf(t))
	err := c.Check()
	var e *team.Error
	if !errors.As(err, &e) {
		return err
	}
	field := strings.ToLower(e.Field)
	if strings.HasSuffix(e.Field, ".MAC") {
		field = "MAC of a member"
	}
	return api.Wrong(field, fmt.Sprint(e.Value), e.Want)
}
