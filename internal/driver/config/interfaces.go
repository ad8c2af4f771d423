package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/ipoib"
	"github.com/softvpi/softvpi/internal/team"
)

// oneKind is what a team's members are, which are of one kind.
const oneKind = `members of one kind: interface, tap, switch or datagram with "link": "team", adapter with "link": "cable"`

// TeamOfInterfaces reports whether an adapter with an InfiniBand port has the network interface of a team of IPoIB interfaces, those of
// adapters with such ports (WinOF 5.50, 4.2.8).
func (a *Adapter) TeamOfInterfaces() bool { return a.Team != nil && a.Cable() }

// completeInterfaces fills in the defaults of such a team, and checks it.
func (a *Adapter) completeInterfaces(field func(string) string) error {
	t := *a.Team // the caller's stays as it is
	t.Members = append([]TeamMember(nil), t.Members...)
	a.Team = &t
	kind, ok := team.ParseType(cmp.Or(t.Type, team.AFT.String()))
	switch {
	case !ok || kind != team.AFT: // WinOF 5.50, 4.1.6.1: "for IPoIB team, only 'AFT' type is supported"
		return api.Wrong(field("team.type"), strconv.Quote(t.Type), "AFT, the only one for IPoIB interfaces")
	case t.Of != "" || t.Hash != "" || t.SlowLACP || t.PassiveLACP || t.LACPChoice != "":
		return api.Wrong(field("team.of, hash, slow_lacp, passive_lacp, lacp_choice"), "given", "nothing for IPoIB interfaces")
	case len(t.Members) == 0:
		return api.Wrong(field("team.members"), "missing", fmt.Sprintf("1 to %d members", ipoib.MostMembers))
	case len(t.Members) > ipoib.MostMembers:
		return api.Wrong(field("team.members"), fmt.Sprint(len(t.Members)), fmt.Sprintf("%d at most", ipoib.MostMembers))
	}
	t.Type = kind.String()
	primary := false
	for i := range t.Members {
		m := &t.Members[i]
		of := func(name string) string { return field(fmt.Sprintf("team.members[%d].%s", i, name)) }
		again := func(o TeamMember) bool { return o.Adapter == m.Adapter }
		switch {
		case m.Interface != "" || m.TAP != "" || m.Switch != "" || m.Datagram != "" || m.Peer != "":
			return api.Wrong(field(fmt.Sprintf("team.members[%d]", i)), m.String(), oneKind)
		case m.Adapter == "":
			return api.Wrong(of("adapter"), "missing", `the name of an adapter with "link": "cable"`)
		case slices.ContainsFunc(t.Members[:i], again):
			return api.Wrong(of("adapter"), strconv.Quote(m.Adapter)+" again", "an adapter that no other member is")
		case m.Primary && primary:
			return api.Wrong(of("primary"), "true", "false: another member is it")
		case m.SetTeamMACAddress:
			return api.Wrong(of("set_team_mac_address"), "true", "false for IPoIB interfaces: the team has the address of the member that carries")
		}
		primary = primary || m.Primary
	}
	if !slices.ContainsFunc(t.Members, func(m TeamMember) bool { return m.Adapter == a.Name }) {
		return api.Wrong(field("team.members"), "without "+strconv.Quote(a.Name), "this adapter among them, whose network interface the team has")
	}
	return nil
}

// checkInterfaces checks that the members of the teams of IPoIB interfaces are adapters with ports that can be InfiniBand, each in one.
func (c *Config) checkInterfaces() error {
	in := map[string]string{} // the adapters that have the teams, by their members
	for i := range c.Adapters {
		a := &c.Adapters[i]
		if !a.TeamOfInterfaces() {
			continue
		}
		for k := range a.Team.Members {
			name := a.Team.Members[k].Adapter
			field := fmt.Sprintf("adapters[%d].team.members[%d].adapter", i, k)
			o := slices.IndexFunc(c.Adapters, func(o Adapter) bool { return o.Name == name })
			switch {
			case o < 0:
				return api.Wrong(field, strconv.Quote(name), "an adapter of the configuration (virtual functions are in no team): "+c.cables())
			case !c.Adapters[o].Cable():
				return api.Wrong(field, strconv.Quote(name)+", which has no InfiniBand port", oneKind+": "+c.cables())
			case in[name] != "":
				return api.Wrong(field, strconv.Quote(name)+", a member of the team of "+strconv.Quote(in[name]), "an adapter in no other team")
			}
			in[name] = a.Name
		}
	}
	return nil
}

// cables lists the adapters whose ports can be InfiniBand.
func (c *Config) cables() string {
	var names []string
	for i := range c.Adapters {
		if c.Adapters[i].Cable() {
			names = append(names, strconv.Quote(c.Adapters[i].Name))
		}
	}
	return strings.Join(names, ", ")
}
