package driver

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/ipoib/service"
)

// runningTeam is a team of the interfaces of adapters.
type runningTeam struct {
	*service.Team
	// carrier is the adapter whose network interface of the system the team has, also while its own IPoIB interface is no member.
	carrier int
	members map[int]*service.Member
}

// teamOf returns the team that an adapter's own interface is in, and its member; nil: it is in none. The caller holds mu.
func (p *ipoibPorts) teamOf(i uint32) (*runningTeam, *service.Member) {
	for _, t := range p.teams {
		if m := t.members[int(i)]; m != nil {
			return t, m
		}
	}
	return nil, nil
}

// lent returns whether a team has the network interface of an adapter. The caller holds mu.
func (p *ipoibPorts) lent(i int) bool {
	for _, t := range p.teams {
		if t.carrier == i {
			return true
		}
	}
	return false
}

// own returns the additional addresses of an adapter's interface; those of who carries a team are the team's.
func (p *ipoibPorts) own(i int) []netip.Prefix {
	if a := p.d.cfg.Adapters[i].Address; a.IsValid() {
		return []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
	}
	return nil
}

// setTeam makes the interfaces of adapters a team with the network interface of its carrier, in place of what was one by that GUID, and
// those of former members are by themselves again; without members there is no team. The interfaces of all of them end and begin again.
func (p *ipoibPorts) setTeam(guid string, carrier int, members, former []int, cfg service.TeamConfig) (*service.Team, error) {
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
	for _, i := range append(slices.Clone(members), carrier) {
		p.yield(i)
	}
	cfg.Carries = func(now, before string, all []netip.Prefix) {
		if i := p.named(before); i >= 0 && before != now {
			p.addressed(uint32(i), nil)
		}
		if i := p.named(now); i >= 0 {
			p.addressed(uint32(i), all)
		}
	}
	front := p.systems[p.d.running[carrier].Name]
	var system service.System // avoids a team holding a nil *tun.Device
	if front != nil {
		system = front.Device
	}
	run, err := service.NewTeam(cfg, system)
	if err != nil {
		return nil, err
	}
	t := &runningTeam{run, carrier, map[int]*service.Member{}}
	if p.teams == nil {
		p.teams = map[string]*runningTeam{}
	}
	p.teams[guid] = t
	for k, i := range members {
		t.members[i] = run.Member(k)
		t.members[i].SetDisabled(!p.want[uint32(i)])
	}
	if own := p.own(carrier); front != nil {
		front.Stand(run, own, nil)
	} else {
		run.Set(own, nil)
	}
	return run, nil
}

// yield takes the addresses from an adapter's own interface, and the network interface of the system: a team has them, or needs none.
func (p *ipoibPorts) yield(i int) {
	if f := p.systems[p.d.running[i].Name]; f != nil {
		f.Leave()
	}
	p.addressed(uint32(i), nil)
}

// named returns the adapter of a name; -1: none has it.
func (p *ipoibPorts) named(name string) int {
	return slices.IndexFunc(p.d.running, func(r *running) bool { return r.Name == name })
}

// attach makes the interface of an adapter a member of a team. It alone ends and begins again (WinOF 5.50, 4.2.8.3: "gets refreshed").
func (p *ipoibPorts) attach(guid string, i int, primary bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.teams[guid]
	if t == nil || p.closed {
		return nil
	}
	p.stop(uint32(i))
	if i != t.carrier {
		p.yield(i)
	}
	defer p.begin()
	m, err := t.Add(p.d.running[i].Name, primary, !p.want[uint32(i)])
	if err == nil {
		t.members[i] = m
	}
	return err
}

// detach lets a member of a team be by itself again, which alone ends and begins again.
func (p *ipoibPorts) detach(guid string, i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.teams[guid]
	if t == nil || t.members[i] == nil {
		return
	}
	t.Remove(t.members[i])
	p.stop(uint32(i)) // as that of a member
	delete(t.members, i)
	if i != t.carrier {
		p.addressed(uint32(i), p.own(i))
	}
	p.begin()
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
	if s := p.systems[p.d.running[t.carrier].Name]; s != nil {
		if err := s.SetOffloads(p.offloads(uint32(t.carrier))); err != nil {
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

// face returns whose network interface of the system a connection of an adapter has: that of the team's carrier if it carries what the team
// has now; nil: it has none.
func (p *ipoibPorts) face(i uint32, connection string) *service.Front {
	t, _ := p.teamOf(i)
	if connection != p.d.running[i].Name {
		return p.systems[connection]
	}
	if t == nil {
		return p.alone(i)
	}
	if s := t.Status(); s.Active < 0 || s.Members[s.Active].Name != connection {
		return nil
	}
	return p.systems[p.d.running[t.carrier].Name]
}

// alone returns the network interface of the system that an adapter's own interface has while it is no member; nil: it has none, or a team
// has it. The caller holds mu.
func (p *ipoibPorts) alone(i uint32) *service.Front {
	if p.lent(int(i)) {
		return nil
	}
	return p.systems[p.d.running[i].Name]
}
