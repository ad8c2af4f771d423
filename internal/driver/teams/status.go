package teams

import (
	"slices"

	"github.com/softvpi/softvpi/internal/api"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/team"
)

// configured is a team of the configuration, on which an adapter stands.
type configured struct {
	adapter int
	*linkteam.Link
}

// Status returns the state of the teams: those of the configuration, and then those that were made by command and have members.
func (r *Roster) Status() (all []api.TeamStatus) {
	for _, t := range r.configured {
		a := &r.cfg.Adapters[t.adapter]
		o := status(t.Status())
		o.Adapter, o.FailBackToPrimary = a.Name, !a.Team.NoFailBackToPrimary
		for k := range o.Members {
			o.Members[k].Wire, o.Members[k].Primary = a.Team.Members[k].String(), a.Team.Members[k].Primary
		}
		all = append(all, o)
	}
	r.cfg.Changes.Lock()
	defer r.cfg.Changes.Unlock()
	for _, t := range r.made {
		if t.link == nil {
			continue
		}
		o, members := status(t.link.Status()), r.Present(t)
		o.Name, o.Adapter, o.FailBackToPrimary = t.Name, r.name(members[0]), !t.NoFallBack
		for k, i := range members {
			m, a := &o.Members[k], &r.cfg.Adapters[i]
			m.Adapter, m.Wire, m.Primary = a.Name, a.WireName(), r.guid(i) == t.Primary
		}
		all = append(all, o)
	}
	return all
}

// status returns what a team itself knows.
func status(s linkteam.Status) api.TeamStatus {
	o := api.TeamStatus{Type: s.Type.String(), Hash: s.Hash.String(), MAC: s.MAC.String(), FailOvers: s.Counters.FailOvers,
		FailBacks: s.Counters.FailBacks, Announced: s.Counters.Announced, PeersTold: s.Counters.Told, Lost: s.Counters.Lost,
		StoodBy: s.Counters.StoodBy, Returned: s.Counters.Returned, Strange: s.Counters.Strange}
	for _, m := range s.Members {
		x := api.TeamMemberStatus{Status: m.Status.String(), Role: m.Role.String(), Speed: m.Speed}
		if m.LACP != nil {
			x.LACP = m.LACP.String()
		}
		o.Members = append(o.Members, x)
	}
	return o
}

// Teams implements api.TeamSource.
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
	o := api.Team{Name: t.Name, GUID: t.GUID, Type: kind.String(), TypeNumber: int(kind), FailBack: !t.NoFallBack,
		Members: []api.TeamMember{}, VLANs: append([]string{}, r.cfg.Driver.VLANs(t.GUID)...)}
	present := r.Present(t)
	for _, g := range t.Members {
		m := api.TeamMember{GUID: g, Primary: g == t.Primary, GivesMAC: g == t.GivesMAC}
		place := slices.IndexFunc(present, func(i int) bool { return r.guid(i) == g })
		if place >= 0 {
			m.Adapter = r.name(present[place])
		}
		if place >= 0 && t.link != nil {
			s := t.link.Status().Members[place]
			m.Status, m.Role = s.Status.String(), s.Role.String()
		}
		o.Members = append(o.Members, m)
	}
	if len(present) > 0 {
		o.Carrier = r.name(present[0])
	}
	return o
}
