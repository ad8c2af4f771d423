package lan

import (
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/clock/due"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

// LLDP is what a switch says of itself at its ports (IEEE 802.1AB). The zero value is nothing.
type LLDP struct {
	// On says that it speaks, and listens.
	On bool
	// DCBX says that it offers the settings of its ports to hosts, which may be willing to do so too, by Protocol: PFC of their lossless
	// priorities and, if ETS is set, the shares of their queues. It does not do as others say.
	DCBX     bool
	Protocol dcb.Protocol
	ETS      bool
	// Applications are the priorities that it offers for them.
	Applications []qos.Application
}

// agents are the LLDP agents of switches' ports.
type agents struct {
	ports []agent
	first []int // by node: the number of its first port; -1: it has none that speaks
	due   due.Times
}

// agent is one of a port.
type agent struct {
	*dcb.Agent
	at ethernet.End
}

// newAgents gives each port of switches that speak an agent, all of which begin now.
func (n *Network) newAgents(now clock.Time) {
	a := &n.agents
	for i := range n.cfg.Nodes {
		a.first = append(a.first, -1)
		if n.Host(i) || !n.cfg.Nodes[i].LLDP.On {
			continue
		}
		a.first[i] = len(a.ports)
		for p := range n.ports(i) {
			at := ethernet.End{Node: i, Port: p}
			a.ports = append(a.ports, agent{dcb.New(n.agentConfig(at)), at})
		}
		n.fabric.Switch(i).LLDP = func(now clock.Time, port int, frame []byte) { n.hear(now, a.first[i]+port, frame) }
	}
	a.due = due.New(len(a.ports))
	for i := range a.ports {
		a.ports[i].Start(now)
		a.ports[i].SetWire(now, n.fabric.Port(a.ports[i].at).Up())
		n.settle(now, i)
	}
}

// agentConfig returns what the agent of a port says and does.
func (n *Network) agentConfig(at ethernet.End) dcb.Config {
	l := &n.cfg.Nodes[at.Node].LLDP
	p := n.fabric.Port(at).Config()
	mac := n.fabric.Switch(at.Node).MAC()
	c := dcb.Config{MAC: mac, Transmit: dcb.All, Receive: dcb.All, DCBX: l.DCBX, Local: lldp.PDU{
		ChassisID: lldp.ChassisOf(mac), PortID: lldp.ID{Subtype: lldp.PortInterface, Value: n.endName(at)},
		PortDescription: "to " + n.endName(n.fabric.Peer(at)), SystemName: n.Name(at.Node), SystemDescription: "SoftVPI Ethernet switch",
		Capabilities: &lldp.Capabilities{Supported: lldp.CapabilityBridge, Enabled: lldp.CapabilityBridge},
	}}
	c.Protocol, c.Settings = l.Protocol, qos.Defaults()
	c.Settings.PFC, c.ChosenPFC = p.Lossless, p.Lossless != 0
	c.Settings.Applications, c.ChosenApplications = l.Applications, len(l.Applications) > 0
	if l.ETS {
		c.Settings.ETS, c.ChosenETS = ethernet.SharesOf(&p.Queues), true
	}
	return c
}

// hear hands a data unit to the agent of a port.
func (n *Network) hear(now clock.Time, i int, frame []byte) {
	n.agents.ports[i].Receive(now, frame)
	n.settle(now, i)
}

// settle sends what an agent has to say, and notes when it wants its turn.
func (n *Network) settle(now clock.Time, i int) {
	a := &n.agents.ports[i]
	for a.Pending() {
		b := a.Transmit(now)
		if b == nil {
			break
		}
		if f := n.fabric.Store.Put(b, 0); f != 0 {
			n.fabric.Port(a.at).Express(now, f)
			n.fabric.Wake(a.at.Node)
		}
	}
	n.agents.due.Set(i, a.Deadline())
}

// speak lets agents have their turn that is due.
func (n *Network) speak(now clock.Time) {
	for a := &n.agents; len(a.ports) > 0 && a.due.First() <= now; {
		i := a.due.Next()
		a.ports[i].Advance(now)
		n.settle(now, i)
	}
}

// nextWord returns when an agent wants its turn.
func (n *Network) nextWord() clock.Time {
	if len(n.agents.ports) == 0 {
		return clock.Never
	}
	return n.agents.due.First()
}

// agentAt returns the number of the agent of a port; -1: it has none.
func (n *Network) agentAt(at ethernet.End) int {
	if at.Node < 0 || len(n.agents.first) == 0 || n.agents.first[at.Node] < 0 {
		return -1
	}
	return n.agents.first[at.Node] + at.Port
}

// changed tells the agent of a port that this is configured otherwise, or that its link has come or gone.
func (n *Network) changed(now clock.Time, at ethernet.End) {
	if i := n.agentAt(at); i >= 0 {
		a := &n.agents.ports[i]
		a.SetWire(now, n.fabric.Port(at).Up())
		a.Configure(now, n.agentConfig(at))
		n.settle(now, i)
	}
}

// neighbourText says who is at the other end of a port by LLDP, and how DCBX with it stands; empty: nobody, and not spoken.
func (n *Network) neighbourText(at ethernet.End) (neighbour, agreed string) {
	i := n.agentAt(at)
	if i < 0 || !n.fabric.Port(at).Up() {
		return "", ""
	}
	a := n.agents.ports[i]
	var all []string
	for _, x := range a.Neighbours() {
		all = append(all, fmt.Sprintf("%s port %s (%v)", x.SystemName, x.PortID.Port(), x.MAC))
	}
	switch s := a.DCBX(); {
	case s.State == dcb.Silent:
	case s.Peer != (eth.MAC{}):
		agreed = fmt.Sprintf("%v with %v by %v, %s", s.State, s.Peer, s.Protocol, willing(&s))
	default:
		agreed = s.State.String()
	}
	return strings.Join(all, "; "), agreed
}

// willing says for what the peer does as the switch says.
func willing(s *dcb.DCBXStatus) string {
	var all, wrong []string
	for _, x := range []struct {
		name string
		dcb.Feature
	}{{"ETS", s.ETS}, {"PFC", s.PFC}, {"applications", s.Applications}} {
		if x.PeerWilling {
			all = append(all, x.name)
		}
		if x.Error {
			wrong = append(wrong, x.name)
		}
	}
	text := "which is not willing"
	if len(all) > 0 {
		text = "which takes " + strings.Join(all, ", ")
	}
	if len(wrong) > 0 {
		text += "; configured differently: " + strings.Join(wrong, ", ")
	}
	return text
}

// listLLDP lists what a switch has heard, or all.
func listLLDP(n *Network, _ clock.Time, args []string) (string, error) {
	node := n.Find(args[0])
	switch {
	case args[0] != "all" && (node < 0 || n.Host(node)):
		return "", refuse("node %q; allowed: a switch of the Ethernet, or all", args[0])
	case node >= 0 && n.agents.first[node] < 0:
		return "", refuse("switch %q does not speak LLDP; allowed: one with \"lldp\": true in the file", args[0])
	}
	var b strings.Builder
	for i := range n.agents.ports {
		at := n.agents.ports[i].at
		if node >= 0 && at.Node != node {
			continue
		}
		neighbour, agreed := n.neighbourText(at)
		if neighbour == "" {
			neighbour = "nobody"
		}
		fmt.Fprintf(&b, "%s hears %s", n.endName(at), neighbour)
		if agreed != "" {
			fmt.Fprintf(&b, "; DCBX %s", agreed)
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
