package teams

import (
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

var _ api.TeamSource = (*Roster)(nil)

const (
	// mostTeams is how many teams there are at most, and mostName how long the name of one is.
	mostTeams = 64
	mostName  = 63
)

// CreateTeam implements api.TeamSource.
func (r *Roster) CreateTeam(q api.TeamRequest) (api.Team, error) {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	kind, err := parseType(q.Type)
	switch {
	case err != nil:
		return api.Team{}, err
	case len(r.made) == mostTeams:
		return api.Team{}, api.Wrong("teams", fmt.Sprint(len(r.made)), fmt.Sprintf("%d at most", mostTeams))
	}
	if err := r.freeName(q.Name, nil); err != nil {
		return api.Team{}, err
	}
	t := &Team{Team: registry.Team{GUID: registry.NewGUID(), Name: q.Name, Type: uint32(kind), NoFallBack: q.NoFailBack, Number: 1}}
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
	if r.cfg.Taken != nil && r.cfg.Taken(name) {
		return api.Wrong("team name", strconv.Quote(name), "one that no other team has, in capitals or not")
	}
	for i := range r.cfg.Adapters {
		if strings.EqualFold(r.name(i), name) {
			return api.Wrong("team name", strconv.Quote(name), "one that no adapter has")
		}
	}
	return nil
}

// FreeName returns why a new team of another kind cannot have a name. The caller holds Changes.
func (r *Roster) FreeName(name string) error { return r.freeName(name, nil) }

// ModifyTeam implements api.TeamSource. A name alone leaves the members as they are.
func (r *Roster) ModifyTeam(name string, q api.TeamRequest) (api.Team, error) {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	t, err := r.named(name)
	if err != nil {
		return api.Team{}, err
	}
	kind, err := parseType(q.Type)
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

// RemoveTeam implements api.TeamSource.
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

// AttachMember implements api.TeamSource.
func (r *Roster) AttachMember(name, adapter string, q api.TeamMemberRequest) (api.Team, error) {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	t, err := r.named(name)
	if err != nil {
		return api.Team{}, err
	}
	i, err := r.cfg.Driver.Named(adapter)
	if err == nil {
		err = r.mayAttach(t, i, q)
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
func (r *Roster) mayAttach(t *Team, i int, q api.TeamMemberRequest) error {
	named := strconv.Quote(r.name(i))
	if o, _ := r.Of(i); o != nil {
		return api.Wrong("adapter", named+", a member of team "+strconv.Quote(o.Name), "one that is in no team")
	}
	if why := r.noMember(i); why != "" {
		return api.Wrong("adapter", named, why)
	}
	if n := r.cfg.Driver.Functions(i); n > 0 && len(r.Present(t)) > 0 {
		return api.Wrong("adapter", fmt.Sprintf("%s, whose %d virtual functions use its wire", named, n),
			"one without virtual functions, which only the first member has: it carries the team")
	}
	switch {
	case len(r.cfg.Driver.VLANs(r.guid(i))) > 0:
		return api.Wrong("adapter", named+", whose VLAN interfaces use its wire", "one without; vlan_config removevlan removes them")
	case q.Primary && t.Primary != "":
		return api.Wrong("primary", "given", "nothing while "+t.Primary+" is the primary member; detach that first")
	case q.GivesMAC && t.GivesMAC != "":
		return api.Wrong("SetTeamMacAddress", "given", "nothing while "+t.GivesMAC+" gives the team its MAC; detach that first")
	}
	return nil
}

// DetachMember implements api.TeamSource.
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

// change makes a team another one, all or nothing: what its members were is put back if they cannot be what they are to be. One more member
// that carries nothing yet, or one less, leaves the adapters that stand on the team alone, as long as that keeps its carrier and its MAC.
func (r *Roster) change(t *Team, next registry.Team) error {
	before := t.Team
	if err := r.check(&before, &next); err != nil {
		return err
	}
	touched := r.present(&before)
	for _, i := range r.present(&next) {
		if !slices.Contains(touched, i) {
			touched = append(touched, i)
		}
	}
	if err := r.cfg.Registry.Apply(next.Keep()...); err != nil {
		return err
	}
	err := r.turn(t, next, touched)
	if err == nil {
		return nil
	}
	t.Team, t.link = before, nil
	r.show()
	back := errors.Join(r.cfg.Registry.Apply(before.Keep()...), r.rewire(touched))
	if back != nil {
		for _, i := range touched {
			a := r.cfg.Driver.Adapter(i)
			r.cfg.Events.Raise(a.Generation, events.AdapterStartFailed{Adapter: a.Name, Cause: back})
		}
	}
	return errors.Join(err, back)
}

// turn makes a team another one, with all members that it touches, or with the one alone that comes or goes.
func (r *Roster) turn(t *Team, next registry.Team, touched []int) error {
	before := t.Team
	i, place, more := r.only(t, &next)
	if place == 0 {
		t.Team, t.link = next, nil
		r.show()
		return r.rewire(touched)
	}
	err := r.cfg.Driver.Park([]int{i}) // and those beside it, who are on the team if it was a member
	if t.Team = next; err == nil && more {
		err = r.addMember(t)
	} else if err == nil {
		err = r.removeMember(t, place)
	}
	if err != nil {
		t.Team = before
		return err
	}
	r.show()
	return r.cfg.Driver.Unpark([]int{i})
}

// only returns the member that is all that a change is about, its place, and whether it comes; place 0: the adapters on the team have to be
// put on it anew, as it gets another type, carrier or MAC, or its link is not open.
func (r *Roster) only(t *Team, next *registry.Team) (i, place int, more bool) {
	were, are := r.Present(t), r.present(next)
	c := r.engine(next, are)
	if t.link == nil || next.Type != t.Type || next.NoFallBack != t.NoFallBack || c.MAC() != t.link.MAC() {
		return 0, 0, false
	}
	if more = len(are) > len(were); more {
		were, are = are, were
	}
	for k, i := range were { // the longer list
		if k == len(are) || are[k] != i {
			if len(were) != len(are)+1 || !slices.Equal(were[k+1:], are[k:]) || more && k < len(are) {
				return 0, 0, false
			}
			return i, k, more
		}
	}
	return 0, 0, false
}

// rewire puts adapters on the wires that they are to have, by taking them off all first.
func (r *Roster) rewire(adapters []int) error {
	return errors.Join(r.cfg.Driver.Park(adapters), r.cfg.Driver.Unpark(adapters))
}

// check returns what is wrong with a team, by the rules of its engine, and with its MAC and those of whoever is to stand on it.
func (r *Roster) check(before, next *registry.Team) error {
	members, were := r.present(next), r.present(before)
	c, o := r.engine(next, members), r.engine(before, were)
	err := c.Check()
	if err == nil && len(members) > 0 && (len(members) > len(were) || c.MAC() != o.MAC()) {
		err = r.cfg.Driver.Clash(members, c.MAC())
	}
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
