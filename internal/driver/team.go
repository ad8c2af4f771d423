package driver

import (
	"errors"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/link/team"
)

// adapterTeam is the team that an adapter stands on.
type adapterTeam struct {
	adapter int
	*team.Link
}

// putOnTeam opens the wires of an adapter's team, and makes them one. Without a MAC in its configuration the adapter has the team's.
func (d *Driver) putOnTeam(i int, cfg *device.AdapterConfig) (err error) {
	a := &d.cfg.Adapters[i]
	c := team.Config{Team: a.Team.Engine(), Notify: d.host.Wake}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(c.Links))
		}
	}()
	var names []string
	for k := range a.Team.Members {
		names = append(names, a.Team.Members[k].String())
	}
	c.Changed = d.teamNews.of(i, names)
	for k := range a.Team.Members {
		if c.Team.Members[k].MAC, err = a.MemberMAC(k); err != nil {
			return err
		}
		l, err := d.openWire(a.Team.Members[k].Wire(a), cfg.UDPPort)
		if err != nil {
			return err
		}
		c.Links = append(c.Links, l)
	}
	l, err := team.Open(c)
	if err != nil {
		return err
	}
	if cfg.Link = l; cfg.MAC == [6]byte{} {
		cfg.MAC = l.MAC()
	}
	d.teams = append(d.teams, adapterTeam{i, l})
	return nil
}

// teamName is what packets of an adapter on a team travel on.
func teamName(t *config.Team) string {
	var members []string
	for i := range t.Members {
		members = append(members, t.Members[i].String())
	}
	return "team " + t.Type + " of " + strings.Join(members, ", ")
}

// teamStatus returns the state of the teams: those of the configuration, and then those that were made by command and have members.
func (d *Driver) teamStatus() (all []api.TeamStatus) {
	for _, t := range d.teams {
		a := &d.cfg.Adapters[t.adapter]
		o := teamStatus(t.Status())
		o.Adapter, o.FailBackToPrimary = a.Name, !a.Team.NoFailBackToPrimary
		for k := range o.Members {
			o.Members[k].Wire, o.Members[k].Primary = a.Team.Members[k].String(), a.Team.Members[k].Primary
		}
		all = append(all, o)
	}
	d.changes.Lock()
	defer d.changes.Unlock()
	for _, t := range d.made {
		if t.link == nil {
			continue
		}
		o, members := teamStatus(t.link.Status()), d.membersOf(&t.Team)
		o.Name, o.Adapter, o.FailBackToPrimary = t.Name, d.running[members[0]].Name, !t.NoFallBack
		for k, i := range members {
			m, a := &o.Members[k], &d.cfg.Adapters[i]
			m.Adapter, m.Wire, m.Primary = a.Name, ownWire(a), d.running[i].GUID() == t.Primary
		}
		all = append(all, o)
	}
	return all
}

// teamStatus returns what a team itself knows.
func teamStatus(s team.Status) api.TeamStatus {
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
