package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/lacp"
	"github.com/softvpi/softvpi/internal/team"
)

// Team is what an adapter with "link": "team" stands on: several wires of whole frames that are one; or what the network interface of one
// with an InfiniBand port stands before: IPoIB interfaces of several adapters (docs/teaming.md).
type Team struct {
	// Of is the name of an adapter before this one, on whose team it stands too; then nothing else is given.
	Of string `json:"of,omitempty"`
	// Type is AFT, SFT, SLB, RLB, ALB, 3AD or SLA (WinOF 5.50, 4.1.6.1); empty: AFT.
	Type string `json:"type,omitempty"`
	// Hash is what of a frame chooses its member: L2, L3 or L4; empty: L4.
	Hash string `json:"hash,omitempty"`
	// NoFailBackToPrimary leaves another member active when the primary one comes back.
	NoFailBackToPrimary bool `json:"no_fail_back_to_primary,omitempty"`
	// SlowLACP has the partner speak every 30 s instead of every second, and PassiveLACP lets it speak first: of type 3AD alone.
	SlowLACP    bool `json:"slow_lacp,omitempty"`
	PassiveLACP bool `json:"passive_lacp,omitempty"`
	// LACPChoice is by what 3AD chooses its partner, if members have several: stable, bandwidth or count; empty: stable.
	LACPChoice string `json:"lacp_choice,omitempty"`
	// Members are the wires, 1 to 8.
	Members []TeamMember `json:"members,omitempty"`
}

// TeamMember is a wire of a team, or an adapter with an IPoIB interface: one of its first five fields says which.
type TeamMember struct {
	Interface string `json:"interface,omitempty"` // an Ethernet interface of Linux
	TAP       string `json:"tap,omitempty"`       // the other side of a TAP
	Switch    string `json:"switch,omitempty"`    // a port of a virtual Ethernet switch in the driver
	Adapter   string `json:"adapter,omitempty"`   // an adapter with an InfiniBand port
	Datagram  string `json:"datagram,omitempty"`  // a pair of unix datagram sockets, as of Wire
	Peer      string `json:"peer,omitempty"`
	// Primary is the member that is active whenever it can be.
	Primary bool `json:"primary,omitempty"`
	// SetTeamMACAddress makes the team's address that of this member.
	SetTeamMACAddress bool `json:"set_team_mac_address,omitempty"`
}

// Wire returns an adapter with the member as its only wire.
func (m *TeamMember) Wire(of *Adapter) *Adapter {
	a := &Adapter{Name: of.Name, ReceiveBuffer: of.ReceiveBuffer, Wire: Wire{LinkMTU: of.LinkMTU}}
	switch {
	case m.Interface != "":
		a.Link, a.Interface, a.LinkMTU = LinkInterface, m.Interface, 0
	case m.TAP != "":
		a.Link, a.Interface = LinkTAP, m.TAP
	case m.Switch != "":
		a.Link, a.Switch = LinkSwitch, m.Switch
	default:
		a.Link, a.Datagram, a.Peer = LinkDatagram, m.Datagram, cmp.Or(m.Peer, m.Datagram+peerSuffix)
	}
	return a
}

// String names the member.
func (m *TeamMember) String() string {
	switch {
	case m.Interface != "":
		return "interface " + m.Interface
	case m.TAP != "":
		return "TAP " + m.TAP
	case m.Switch != "":
		return "switch " + m.Switch
	case m.Adapter != "":
		return "adapter " + m.Adapter
	}
	return "datagram socket " + m.Datagram
}

// String names the team by its type and members.
func (t *Team) String() string {
	if t.Of != "" {
		return "team of " + t.Of
	}
	var members []string
	for i := range t.Members {
		members = append(members, t.Members[i].String())
	}
	return "team " + t.Type + " of " + strings.Join(members, ", ")
}

// Engine returns the team without the addresses of its members, which have to be looked up.
func (t *Team) Engine() team.Config {
	var c team.Config
	c.Type, _ = team.ParseType(t.Type) // complete has refused what is wrong
	c.Hash, _ = team.ParseHash(t.Hash)
	c.NoFailBack = t.NoFailBackToPrimary
	c.Fast, c.Passive = c.Type == team.LACP && !t.SlowLACP, t.PassiveLACP
	c.Choice, _ = lacp.ParseChoice(cmp.Or(t.LACPChoice, lacp.Stable.String()))
	for i := range t.Members {
		m := &t.Members[i]
		c.Members = append(c.Members, team.Member{Primary: m.Primary, GivesMAC: m.SetTeamMACAddress})
	}
	return c
}

// MemberMAC is the address of member i of an adapter's team: its interface's own, or one made from the adapter's address.
func (a *Adapter) MemberMAC(i int) (mac [6]byte, err error) {
	name := a.Team.Members[i].Interface
	if name == "" {
		mac = gid.MAC(a.Address)
		mac[0] |= byte(i+1) << 2
		return mac, nil
	}
	n, err := net.InterfaceByName(name)
	if err != nil {
		return mac, fmt.Errorf("team: interface %q: %w", name, err)
	}
	if copy(mac[:], n.HardwareAddr) < len(mac) {
		return mac, api.Wrong("team.members.interface", fmt.Sprintf("%q, which has no MAC", name), "an Ethernet interface")
	}
	return mac, nil
}

// completeTeam fills in the defaults of a team, and checks it.
func (a *Adapter) completeTeam(field func(string) string) error {
	switch {
	case a.TeamOfInterfaces():
		return a.completeInterfaces(field)
	case a.Link != LinkTeam && a.Team != nil:
		return api.Wrong(field("team"), "given", `nothing without "link": "team" or "cable"`)
	case a.Link != LinkTeam:
		return nil
	}
	if a.Team != nil && a.Team.Of != "" {
		o := *a.Team
		if o.Of = ""; !reflect.ValueOf(o).IsZero() {
			return api.Wrong(field("team"), "given", fmt.Sprintf("nothing but \"of\", the team is that of %q", a.Team.Of))
		}
		return nil
	}
	if a.Team == nil || len(a.Team.Members) == 0 {
		return api.Wrong(field("team.members"), "missing", fmt.Sprintf("1 to %d members", team.MostMembers))
	}
	t := *a.Team // the caller's stays as it is
	t.Members = append([]TeamMember(nil), t.Members...)
	a.Team = &t
	t.Type, t.Hash = strings.ToUpper(cmp.Or(t.Type, team.AFT.String())), strings.ToUpper(cmp.Or(t.Hash, team.L4.String()))
	kind, ok := team.ParseType(t.Type)
	if !ok {
		return api.Wrong(field("team.type"), fmt.Sprintf("%q", t.Type), team.Types)
	}
	t.Type = kind.String()
	if _, ok := team.ParseHash(t.Hash); !ok {
		return api.Wrong(field("team.hash"), fmt.Sprintf("%q", t.Hash), "L2, L3, L4")
	}
	if kind != team.LACP && (t.SlowLACP || t.PassiveLACP || t.LACPChoice != "") {
		return api.Wrong(field("team.slow_lacp, passive_lacp, lacp_choice"), "given", "nothing without type 3AD")
	}
	if _, ok := lacp.ParseChoice(cmp.Or(t.LACPChoice, lacp.Stable.String())); !ok {
		return api.Wrong(field("team.lacp_choice"), fmt.Sprintf("%q", t.LACPChoice), "stable, bandwidth, count")
	}
	for i := range t.Members {
		of := func(name string) string { return field(fmt.Sprintf("team.members[%d].%s", i, name)) }
		if err := a.checkMember(&t.Members[i], of); err != nil {
			return err
		}
	}
	return a.checkTeam(field)
}

// checkMember checks one member.
func (a *Adapter) checkMember(m *TeamMember, field func(string) string) error {
	if m.Adapter != "" {
		return api.Wrong(field("adapter"), fmt.Sprintf("%q", m.Adapter), oneKind)
	}
	given := 0
	for _, name := range []string{m.Interface, m.TAP, m.Switch, m.Datagram} {
		if name != "" {
			given++
		}
	}
	if given != 1 || m.Peer != "" && m.Datagram == "" {
		return api.Wrong(field("interface, tap, switch, datagram"), fmt.Sprintf("given %d times", given),
			"one of them, and peer with datagram alone")
	}
	w := m.Wire(a)
	switch w.Link {
	case LinkDatagram:
		return w.completeSockets(field)
	case LinkSwitch:
		return w.checkSwitch(field)
	}
	return w.checkInterface(field)
}

// checkTeam checks the members together, by the team's own rules: addresses of their own stand for those that are not known yet.
func (a *Adapter) checkTeam(field func(string) string) error {
	c := a.Team.Engine()
	for i := range c.Members {
		c.Members[i].MAC = [6]byte{2, 0, 0, 0, 0, byte(i)}
		for k := range i {
			m, o := a.Team.Members[i].Wire(a), a.Team.Members[k].Wire(a)
			if m.SameWire(o) {
				return api.Wrong(field(fmt.Sprintf("team.members[%d]", i)), a.Team.Members[i].String()+" again", "a wire that no other member has")
			}
		}
	}
	var e *team.Error
	if errors.As(c.Check(), &e) {
		return api.Wrong(field("team."+fileNames.Replace(e.Field)), fmt.Sprint(e.Value), e.Want)
	}
	return nil
}

// fileNames are the fields of a team in the configuration, by those of its engine.
var fileNames = strings.NewReplacer("Type", "type", "Members", "members", "Primary", "primary", "GivesMAC", "set_team_mac_address")

// standsOn is the name of the adapter whose team it stands on: its own, or that of the other whose team it is.
func (a *Adapter) standsOn() string { return cmp.Or(a.Team.Of, a.Name) }

// completeTeams checks that no wire of a team is somebody else's, and that teams on which others stand are there.
func (c *Config) completeTeams() error {
	for i := range c.Adapters {
		a := &c.Adapters[i]
		if a.Team == nil || a.TeamOfInterfaces() {
			continue
		}
		owns := func(o Adapter) bool { return o.Name == a.Team.Of && o.Team != nil && o.Team.Of == "" }
		if a.Team.Of != "" && !slices.ContainsFunc(c.Adapters[:i], owns) {
			return api.Wrong(fmt.Sprintf("adapters[%d].team.of", i), fmt.Sprintf("%q", a.Team.Of), "the name of an adapter before this one that has a team")
		}
		for k := range a.Team.Members {
			m := &a.Team.Members[k]
			if o := c.userOf(i, m.Wire(a)); o != "" {
				return api.Wrong(fmt.Sprintf("adapters[%d].team.members[%d]", i, k), m.String(), fmt.Sprintf("a wire that %q does not use", o))
			}
		}
	}
	return c.checkInterfaces()
}

// userOf returns the name of another adapter than i that has a wire, alone or in a team; empty: none has.
func (c *Config) userOf(i int, wire *Adapter) string {
	for j := range c.Adapters {
		o := &c.Adapters[j]
		if j == i {
			continue
		}
		if wire.SameWire(o) {
			return o.Name
		}
		for k := 0; o.Link == LinkTeam && k < len(o.Team.Members); k++ {
			if wire.SameWire(o.Team.Members[k].Wire(o)) {
				return o.Name
			}
		}
	}
	return ""
}

// parseMembers reads members on a command line: interface:eth1:primary+tap:t0:teammac+switch:s, or adapter:a+adapter:b.
func parseMembers(text string) (all []TeamMember, err error) {
	for _, s := range strings.Split(text, "+") {
		parts := strings.Split(s, ":")
		if len(parts) < 2 || parts[1] == "" {
			return nil, errors.New("no name")
		}
		var m TeamMember
		switch parts[0] {
		case LinkInterface:
			m.Interface = parts[1]
		case LinkTAP:
			m.TAP = parts[1]
		case LinkSwitch:
			m.Switch = parts[1]
		case LinkDatagram:
			m.Datagram = parts[1]
		case "adapter":
			m.Adapter = parts[1]
		default:
			return nil, errors.New("unknown kind")
		}
		for _, o := range parts[2:] {
			switch o {
			case "primary":
				m.Primary = true
			case "teammac":
				m.SetTeamMACAddress = true
			default:
				return nil, errors.New("unknown option")
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// team returns the adapter's team, which an option of a command line is about.
func (a *Adapter) team() *Team {
	if a.Team == nil {
		a.Team = &Team{}
	}
	return a.Team
}
