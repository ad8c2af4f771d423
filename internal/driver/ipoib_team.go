package driver

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/ipoib/service"
)

// runningTeam is a team of the interfaces of adapters, by their places in it.
type runningTeam struct {
	*service.Team
	members []int
}

// teamOf returns the team that an adapter's own interface is in, and its member; nil: it is in none. The caller holds mu.
func (p *ipoibPorts) teamOf(i uint32) (*runningTeam, *service.Member) {
	for _, t := range p.teams {
		if k := slices.Index(t.members, int(i)); k >= 0 {
			return t, t.Member(k)
		}
	}
	return nil, nil
}

// own returns the additional addresses of an adapter's interface.
func (p *ipoibPorts) own(i int) []netip.Prefix {
	if a := p.d.cfg.Adapters[i].Address; a.IsValid() {
		return []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
	}
	return nil
}

// setTeam makes the interfaces of adapters a team, in place of what was one by that GUID, and those of former members are by themselves
// again; without members there is no team. The interfaces of all of them end and begin again, as the manual has it (WinOF 5.50, 4.2.8.3:
// "gets refreshed").
func (p *ipoibPorts) setTeam(guid string, members, former []int, cfg service.TeamConfig) (*service.Team, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range slices.Concat(members, former) {
		p.stop(uint32(i))
	}
	if old := p.teams[guid]; old != nil {
		old.Close()
		delete(p.teams, guid)
	}
	for _, i := range former {
		p.addressed(uint32(i), p.own(i))
	}
	defer p.begin()
	if len(members) == 0 || p.closed {
		return nil, nil
	}
	for _, i := range members {
		if f := p.systems[p.d.running[i].Name]; f != nil {
			f.Leave()
		}
		p.addressed(uint32(i), nil)
	}
	cfg.Carries = func(now, before int, all []netip.Prefix) {
		if before >= 0 && before != now {
			p.addressed(uint32(members[before]), nil)
		}
		if now >= 0 {
			p.addressed(uint32(members[now]), all)
		}
	}
	front := p.systems[p.d.running[members[0]].Name]
	var system service.System // avoids a team holding a nil *tun.Device
	if front != nil {
		system = front.Device
	}
	run, err := service.NewTeam(cfg, system)
	if err != nil {
		return nil, err
	}
	if p.teams == nil {
		p.teams = map[string]*runningTeam{}
	}
	p.teams[guid] = &runningTeam{run, members}
	for k, i := range members {
		run.Member(k).SetDisabled(!p.want[uint32(i)])
	}
	if own := p.own(members[0]); front != nil {
		front.Stand(run, own, nil)
	} else {
		run.Set(own, nil)
	}
	return run, nil
}

// begin has ports begin that are to run. The caller holds mu.
func (p *ipoibPorts) begin() {
	if !p.busy && !p.closed {
		p.busy = true
		p.tasks.Go(p.settle)
	}
}

// join starts the interface of a member of a team.
func (p *ipoibPorts) join(i uint32, x *ipoibPort, t *runningTeam, m *service.Member) error {
	cfg, name := p.config(i), p.d.running[i].Name
	if s := p.systems[p.d.running[t.members[0]].Name]; s != nil {
		if err := s.SetOffloads(p.offloads(uint32(t.members[0]))); err != nil {
			p.d.log.Warn("the system does without offloads", "connection", name, "cause", err)
		}
	}
	f, err := x.port.Add(cfg, m, p.teller(i, name))
	if err != nil {
		return err
	}
	x.list[name] = f
	m.Join(f)
	m.SetDisabled(false)
	return nil
}

// face returns whose network interface of the system a connection of an adapter has: that of the team's first member if it carries the
// team; nil: it has none.
func (p *ipoibPorts) face(i uint32, connection string) *service.Front {
	t, _ := p.teamOf(i)
	if t == nil || connection != p.d.running[i].Name {
		return p.systems[connection]
	}
	if active := t.Status().Active; active < 0 || t.members[active] != int(i) {
		return nil
	}
	return p.systems[p.d.running[t.members[0]].Name]
}
