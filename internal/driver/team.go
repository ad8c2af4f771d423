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
			for _, l := range c.Links {
				err = errors.Join(err, l.Close())
			}
		}
	}()
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

// teamStatus returns the state of the teams.
func (d *Driver) teamStatus() (all []api.TeamStatus) {
	for _, t := range d.teams {
		a, s := &d.cfg.Adapters[t.adapter], t.Status()
		o := api.TeamStatus{Adapter: a.Name, Type: s.Type.String(), Hash: a.Team.Hash, MAC: s.MAC.String(),
			FailBackToPrimary: !a.Team.NoFailBackToPrimary, FailOvers: s.Counters.FailOvers, FailBacks: s.Counters.FailBacks,
			Announced: s.Counters.Announced, PeersTold: s.Counters.Told, Lost: s.Counters.Lost, StoodBy: s.Counters.StoodBy,
			Returned: s.Counters.Returned, Strange: s.Counters.Strange}
		for k, m := range s.Members {
			c := &a.Team.Members[k]
			x := api.TeamMemberStatus{Wire: c.String(), Primary: c.Primary, Status: m.Status.String(), Role: m.Role.String(),
				Speed: m.Speed}
			if m.LACP != nil {
				x.LACP = m.LACP.String()
			}
			o.Members = append(o.Members, x)
		}
		all = append(all, o)
	}
	return all
}
