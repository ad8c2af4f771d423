package teams

import (
	"slices"

	"github.com/softvpi/softvpi/internal/api"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/team"
)

// open is a team that runs, as it is shown: who looks holds nothing.
type open struct {
	name, adapter   string // name is empty for a team of the configuration
	ipoib, failBack bool
	members         []openMember
	look            func() state
}

// openMember is one of its members.
type openMember struct {
	adapter, wire string // adapter is empty in a team of the configuration
	primary       bool
}

// member returns what is shown of the member that the link has at a place. One that has come a moment ago is not shown yet.
func (o *open) member(k int, name string) openMember {
	if o.name == "" { // of the configuration
		return o.members[k]
	}
	for _, m := range o.members {
		if m.adapter == name {
			return m
		}
	}
	return openMember{adapter: name}
}

// showConfigured shows a team of the configuration, of wires, from now on.
func (r *Roster) showConfigured(i int, l *linkteam.Link) {
	a := &r.cfg.Adapters[i]
	o := open{adapter: a.Name, failBack: !a.Team.NoFailBackToPrimary, look: looksAt(l)}
	for k := range a.Team.Members {
		m := &a.Team.Members[k]
		o.members = append(o.members, openMember{wire: m.String(), primary: m.Primary})
	}
	r.configured = append(r.configured, o)
	r.show()
}

// show shows the teams as they are now: those of the configuration, and then those that were made by command and have members. The caller
// holds Changes.
func (r *Roster) show() {
	list := slices.Clone(r.configured)
	for _, t := range r.fixed {
		list = r.appendOpen(list, t, "")
	}
	for _, t := range r.made {
		list = r.appendOpen(list, t, t.Name)
	}
	r.shown.Store(&list)
}

// appendOpen appends a team of adapters, if it runs.
func (r *Roster) appendOpen(list []open, t *Team, name string) []open {
	look := t.kind.look()
	if look == nil {
		return list
	}
	o := open{name: name, adapter: r.name(r.Carrier(t)), ipoib: t.IPoIB, failBack: !t.NoFallBack, look: look}
	for _, i := range r.Present(t) {
		a := &r.cfg.Adapters[i]
		m := openMember{adapter: a.Name, wire: a.WireName(), primary: r.guid(i) == t.Primary}
		if t.IPoIB {
			m.wire = "IPoIB"
		}
		o.members = append(o.members, m)
	}
	return append(list, o)
}

// opened returns the teams that are shown.
func (r *Roster) opened() []open {
	if list := r.shown.Load(); list != nil {
		return *list
	}
	return nil
}

// Status returns the state of the teams.
func (r *Roster) Status() (all []api.TeamStatus) {
	for _, t := range r.opened() {
		s := t.look()
		o := s.status()
		o.Name, o.Adapter, o.IPoIB, o.FailBackToPrimary = t.name, t.adapter, t.ipoib, t.failBack
		for k := range s.members {
			m, x := t.member(k, s.members[k].Name), &o.Members[k]
			x.Adapter, x.Wire, x.Primary = m.adapter, m.wire, m.primary
		}
		all = append(all, o)
	}
	return all
}

// status returns what a team itself knows.
func (s *state) status() api.TeamStatus {
	c := &s.counters
	o := api.TeamStatus{Type: s.kind, Hash: s.hash, MAC: s.address, FailOvers: c.FailOvers, FailBacks: c.FailBacks, Announced: c.Announced,
		PeersTold: c.Told, Lost: c.Lost, StoodBy: c.StoodBy, Returned: c.Returned, Strange: c.Strange}
	for k := range s.members {
		m := &s.members[k]
		x := api.TeamMemberStatus{Status: m.Status.String(), Role: m.Role.String(), Speed: m.Speed, SentFrames: m.SentFrames,
			SentBytes: m.SentBytes, ReceivedFrames: m.ReceivedFrames, ReceivedBytes: m.ReceivedBytes}
		if m.LACP != nil {
			x.LACP = m.LACP.String()
		}
		o.Members = append(o.Members, x)
	}
	return o
}

// Teams implements server.TeamSource.
func (r *Roster) Teams() []api.Team {
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	list := []api.Team{}
	for _, t := range r.made {
		list = append(list, r.describe(t))
	}
	return list
}

// describe returns a team for the management interface.
func (r *Roster) describe(t *Team) api.Team {
	kind := team.Type(t.Type)
	o := api.Team{Name: t.Name, GUID: t.GUID, Type: kind.String(), TypeNumber: int(kind), IPoIB: t.IPoIB, FailBack: !t.NoFallBack,
		Members: []api.TeamMember{}, VLANs: append([]string{}, r.cfg.Driver.VLANs(t.GUID)...)}
	present := r.Present(t)
	var s state
	if look := t.kind.look(); look != nil {
		s = look()
	}
	for _, g := range t.Members {
		m := api.TeamMember{GUID: g, Primary: g == t.Primary, GivesMAC: g == t.GivesMAC}
		place := slices.IndexFunc(present, func(i int) bool { return r.guid(i) == g })
		if place >= 0 {
			m.Adapter = r.name(present[place])
		}
		if place >= 0 && place < len(s.members) {
			m.Status, m.Role = s.members[place].Status.String(), s.members[place].Role.String()
		}
		o.Members = append(o.Members, m)
	}
	if len(present) > 0 {
		o.Carrier, o.Beside = r.name(r.Carrier(t)), r.cfg.Driver.Beside(r.whole(&t.Team))
	}
	return o
}
