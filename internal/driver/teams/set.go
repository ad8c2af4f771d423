package teams

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/api/server"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
)

var _ server.TeamSource = (*Roster)(nil)

const (
	// mostTeams is how many teams there are at most, and mostName how long the name of one is.
	mostTeams = 64
	mostName  = 63
)

// CreateTeam implements server.TeamSource.
func (r *Roster) CreateTeam(q api.TeamRequest) (api.Team, error) {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	t := r.team(registry.Team{GUID: registry.NewGUID(), Name: q.Name, NoFallBack: q.NoFailBack, Number: 1, IPoIB: q.IPoIB})
	kind, err := t.kind.parse(q.Type)
	switch {
	case err != nil:
		return api.Team{}, err
	case len(r.made) == mostTeams:
		return api.Team{}, api.Wrong("teams", fmt.Sprint(len(r.made)), fmt.Sprintf("%d at most", mostTeams))
	}
	t.Type = uint32(kind)
	if err := r.freeName(q.Name, nil); err != nil {
		return api.Team{}, err
	}
	for _, o := range r.made {
		t.Number = max(t.Number, o.Number+1)
	}
	if err := r.cfg.Registry.Apply(t.Keep()...); err != nil {
		return api.Team{}, err
	}
	r.made = append(r.made, t)
	return r.describe(t), nil
}

func parseType(name string) (team.Type, error) {
	kind, ok := team.ParseType(name)
	if !ok {
		return 0, api.Wrong("type", strconv.Quote(name), team.Types)
	}
	return kind, nil
}

// freeName returns why a team, nil: a new one, cannot have a name.
func (r *Roster) freeName(name string, t *Team) error {
	if name == "" || len(name) > mostName || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return api.Wrong("team name", strconv.Quote(name), fmt.Sprintf("1 to %d printable characters, without space around them", mostName))
	}
	for _, o := range r.made {
		if o != t && strings.EqualFold(o.Name, name) {
			return api.Wrong("team name", strconv.Quote(name), "one that no other team has, in capitals or not")
		}
	}
	for i := range r.cfg.Adapters {
		if strings.EqualFold(r.name(i), name) {
			return api.Wrong("team name", strconv.Quote(name), "one that no adapter has")
		}
	}
	return nil
}

// ModifyTeam implements server.TeamSource. A name alone leaves the members as they are.
func (r *Roster) ModifyTeam(name string, q api.TeamRequest) (api.Team, error) {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	t, err := r.named(name)
	if err != nil {
		return api.Team{}, err
	}
	kind, err := t.kind.parse(q.Type)
	if err == nil {
		err = r.freeName(q.Name, t)
	}
	if err != nil {
		return api.Team{}, err
	}
	next := t.Team
	next.Name, next.Type = q.Name, uint32(kind)
	if next.Type == t.Type {
		if err := r.cfg.Registry.Apply(next.Keep()...); err != nil {
			return api.Team{}, err
		}
		t.Team = next
		r.show()
		return r.describe(t), nil
	}
	err = r.change(t, next)
	return r.describe(t), err
}

// RemoveTeam implements server.TeamSource.
func (r *Roster) RemoveTeam(name string) (api.Team, error) {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	t, err := r.named(name)
	if err != nil {
		return api.Team{}, err
	}
	was := r.describe(t)
	if len(was.VLANs) > 0 {
		return was, api.Wrong("team", fmt.Sprintf("%q with VLAN interfaces %s", t.Name, strings.Join(was.VLANs, ", ")),
			"one without; vlan_config removevlan removes them")
	}
	if len(t.Members) > 0 {
		next := t.Team
		next.Members, next.Primary, next.GivesMAC = nil, "", ""
		if err := r.change(t, next); err != nil {
			return was, err
		}
	}
	if err := r.cfg.Registry.Apply(t.Forget()); err != nil {
		return was, err
	}
	r.made = slices.DeleteFunc(r.made, func(o *Team) bool { return o == t })
	return was, nil
}

// AttachMember implements server.TeamSource.
func (r *Roster) AttachMember(name, adapter string, q api.TeamMemberRequest) (api.Team, error) {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	t, err := r.named(name)
	if err != nil {
		return api.Team{}, err
	}
	i, err := r.cfg.Driver.Named(adapter)
	if err == nil {
		err = r.mayAttach(t, i, &q)
	}
	if err != nil {
		return api.Team{}, err
	}
	next, g := t.Team, r.guid(i)
	next.Members = append(slices.Clone(next.Members), g)
	if q.Primary {
		next.Primary = g
	}
	if q.GivesMAC {
		next.GivesMAC = g
	}
	err = r.change(t, next)
	return r.describe(t), err
}

// mayAttach returns why an adapter cannot be a member of a team, or not of this one.
func (r *Roster) mayAttach(t *Team, i int, q *api.TeamMemberRequest) error {
	named := strconv.Quote(r.name(i))
	if o := r.TeamOf(i); o != nil && (o != t || slices.Contains(t.Members, r.guid(i))) {
		if !slices.Contains(o.Members, r.guid(i)) {
			return api.Wrong("adapter", named+", which carries team "+strconv.Quote(o.Name), "one that is in no team")
		}
		return api.Wrong("adapter", named+", a member of team "+strconv.Quote(o.Name), "one that is in no team")
	}
	if why := t.kind.noMember(i); why != "" {
		return api.Wrong("adapter", named, why)
	}
	switch {
	case q.Primary && t.Primary != "":
		return api.Wrong("primary", "given", "nothing while "+t.Primary+" is the primary member; detach that first")
	case q.GivesMAC && t.GivesMAC != "":
		return api.Wrong("SetTeamMacAddress", "given", "nothing while "+t.GivesMAC+" gives the team its MAC; detach that first")
	}
	return t.kind.mayAttach(i, q)
}

// DetachMember implements server.TeamSource.
func (r *Roster) DetachMember(name, adapter string) (api.Team, error) {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	t, err := r.named(name)
	if err != nil {
		return api.Team{}, err
	}
	was, g := r.describe(t), "{"+strings.ToUpper(strings.Trim(adapter, "{}"))+"}"
	if i, err := r.cfg.Driver.Named(adapter); err == nil {
		g = r.guid(i)
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
	return was, r.change(t, next)
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

// change makes a team another one, all or nothing: what its members were is put back if they cannot be what they are to be.
func (r *Roster) change(t *Team, next registry.Team) error {
	before := t.Team
	switch {
	case len(next.Members) == 0:
		next.Carrier, next.MAC = "", ""
	case next.Carrier == "":
		next.Carrier = next.Members[0]
		if len(t.Members) > 0 {
			next.Carrier = t.Members[0] // kept before carriers were
		}
	}
	if err := t.kind.complete(&next); err != nil {
		return err
	}
	if err := r.cfg.Registry.Apply(next.Keep()...); err != nil {
		return err
	}
	err := t.kind.become(next)
	if err == nil {
		return nil
	}
	return errors.Join(err, r.cfg.Registry.Apply(before.Keep()...), t.kind.back(before, next))
}
