package driver

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	linkteam "github.com/softvpi/softvpi/internal/link/team"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/team"
)

// Teams that are made by command (vlan_config; WinOF 5.50, 4.1.6) are of adapters, not of wires as those of the configuration. The wires
// of all members are the team's. Its carrier, the first member, keeps its address, its functions and its host, and they stand on the team;
// the other members are disabled until they leave. What is changed is kept in the registry.

// madeTeam is such a team. The holder of changes has it.
type madeTeam struct {
	registry.Team
	link *linkteam.Link // nil: no adapter stands on it
}

// recallTeams makes the teams again that are kept. It is called before there are adapters.
func (d *Driver) recallTeams() {
	for _, kept := range d.registry.Teams() {
		if kind := team.Type(kept.Type); kind < team.AFT || kind > team.SLA {
			d.log.Warn("a team that was made before is not there: its type is unknown", "team", kept.Name, "type", kept.Type)
			continue
		}
		t := &madeTeam{Team: kept}
		for _, i := range d.membersOf(&kept) {
			if why := d.noMember(i); why != "" {
				d.log.Warn("an adapter is not in its team any more", "team", kept.Name, "adapter", d.running[i].Name, "cause", why)
				t.Members = slices.DeleteFunc(slices.Clone(t.Members), func(g string) bool { return g == d.running[i].GUID() })
			}
		}
		d.made = append(d.made, t)
	}
}

// noMember says why an adapter can be in no team, whatever others are; empty: it can.
func (d *Driver) noMember(i int) string {
	a := &d.cfg.Adapters[i]
	switch {
	case d.infiniBand(i) || a.Cable():
		return "members of one kind, which Ethernet adapters are: teams of IPoIB interfaces are not built"
	case !a.WholeFrames():
		return `an adapter with a wire of whole frames ("link": "interface", "tap", "switch" or "datagram")`
	case a.Link == config.LinkTeam:
		return "an adapter that does not stand on a team of the configuration"
	case a.Link == config.LinkFabric:
		return "an adapter that is no host of a fabric"
	}
	for j := range d.running {
		if j != i && d.cfg.Adapters[j].SameWire(a) {
			return "an adapter that has its wire alone, and does not share it with " + strconv.Quote(d.running[j].Name)
		}
	}
	return ""
}

// membersOf returns the adapters of a team that the configuration has, in the team's order.
func (d *Driver) membersOf(t *registry.Team) (list []int) {
	for _, g := range t.Members {
		if i := slices.IndexFunc(d.running, func(r *running) bool { return r.GUID() == g }); i >= 0 {
			list = append(list, i)
		}
	}
	return list
}

// teamOf returns the team that has an adapter as a member, nil if none has, and its place among the members: 0 is the carrier.
func (d *Driver) teamOf(i int) (t *madeTeam, place int) {
	for _, t := range d.made {
		if place := slices.Index(d.membersOf(&t.Team), i); place >= 0 {
			return t, place
		}
	}
	return nil, -1
}

// idle reports whether an adapter has no wire, because a team has it and another adapter carries the team.
func (d *Driver) idle(i int) bool {
	_, place := d.teamOf(i)
	return place > 0
}

// wireMAC is the address that an adapter has, and that its wire has in a team.
func (d *Driver) wireMAC(i int) [6]byte {
	a := &d.cfg.Adapters[i]
	if mac := a.StationMAC(); mac != [6]byte{} {
		return mac
	}
	if n, err := net.InterfaceByName(a.Interface); a.Link == config.LinkInterface && err == nil && len(n.HardwareAddr) == 6 {
		return [6]byte(n.HardwareAddr)
	}
	return gid.MAC(a.Address)
}

// engine returns what the team is for package team, with a member for each of these adapters.
func (d *Driver) engine(t *registry.Team, members []int) team.Config {
	c := team.Config{Type: team.Type(t.Type), NoFailBack: t.NoFallBack, Fast: team.Type(t.Type) == team.LACP}
	for _, i := range members {
		g := d.running[i].GUID()
		c.Members = append(c.Members, team.Member{MAC: d.wireMAC(i), Primary: g == t.Primary, GivesMAC: g == t.GivesMAC})
	}
	return c
}

// teamNamed finds a team by its name, in capitals or not.
func (d *Driver) teamNamed(name string) (*madeTeam, error) {
	names := []string{}
	for _, t := range d.made {
		if strings.EqualFold(t.Name, name) {
			return t, nil
		}
		names = append(names, strconv.Quote(t.Name))
	}
	allowed := "there are no teams; vlan_config create team makes one"
	if len(names) > 0 {
		allowed = strings.Join(names, ", ")
	}
	return nil, api.Wrong("team", strconv.Quote(name), allowed)
}

// adapterNamed finds an adapter by its GUID, with braces or not, or by its name.
func (d *Driver) adapterNamed(name string) (int, error) {
	id := "{" + strings.Trim(name, "{}") + "}"
	var known []string
	for i, r := range d.running {
		if strings.EqualFold(r.GUID(), id) || r.Name == name {
			return i, nil
		}
		known = append(known, r.GUID()+" ("+r.Name+")")
	}
	return 0, api.Wrong("adapter", strconv.Quote(name), "the GUID or name of one: "+strings.Join(known, ", "))
}
