package teams

import (
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/driver/config"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
)

// putOnConfigured opens a team of the configuration. Without a MAC in its configuration the adapter has the team's.
func (r *Roster) putOnConfigured(i int, cfg *device.AdapterConfig) (err error) {
	a := &r.cfg.Adapters[i]
	c := linkteam.Config{Team: a.Team.Engine(), Changed: r.news.of(i)}
	var wires []*config.Adapter
	for k := range a.Team.Members {
		m := &a.Team.Members[k]
		if c.Team.Members[k].MAC, err = a.MemberMAC(k); err != nil {
			return err
		}
		c.Names, wires = append(c.Names, m.String()), append(wires, m.Wire(a))
	}
	l, err := r.join(c, wires, cfg.UDPPort)
	if err != nil {
		return err
	}
	if cfg.Link = l; cfg.MAC == [6]byte{} {
		cfg.MAC = l.MAC()
	}
	r.showConfigured(i, l)
	return nil
}

// fix makes the teams of IPoIB interfaces of the configuration, which run from Start on. Each has the name of the adapter that has it
// there, whose network interface is the team's, and stays what it is.
func (r *Roster) fix() {
	named := map[string]int{}
	for i := range r.cfg.Adapters {
		named[r.name(i)] = i
	}
	for i := range r.cfg.Adapters {
		a := &r.cfg.Adapters[i]
		if !a.TeamOfInterfaces() {
			continue
		}
		t := registry.Team{GUID: "the team of " + a.Name, Name: a.Name, Type: uint32(team.AFT), IPoIB: true,
			NoFallBack: a.Team.NoFailBackToPrimary, Carrier: r.guid(i)}
		for k := range a.Team.Members {
			g := r.guid(named[a.Team.Members[k].Adapter])
			t.Members = append(t.Members, g)
			if a.Team.Members[k].Primary {
				t.Primary = g
			}
		}
		r.fixed = append(r.fixed, r.team(t))
	}
}
