package simulate

import (
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

// Agreed is what an adapter has agreed with its switch by DCBX before the run began.
type Agreed struct {
	Host     string `json:"host"`
	Switch   string `json:"switch"`
	State    string `json:"state"`
	Protocol string `json:"protocol"`
	PFC      []int  `json:"pfc"`
	PFCFrom  string `json:"pfc_from"`
	ETSFrom  string `json:"ets_from"`

	node int
	pfc  uint8
}

// talk is for how long the agents of a link have talked when a run begins: longer than it takes to find a protocol.
const talk = 10 * time.Second

// agree lets an adapter that is willing agree with its switch, by the agents of LLDP that work live, and gives its port what they have
// agreed. Where the switch says nothing the adapter works as it is set itself.
func (n *network) agree(host int, wire *ethernet.PortConfig) {
	nic, link := n.s.NICs[host], &n.s.Graph.Links[n.s.Graph.Nodes[host].Links[0]]
	if !nic.DCBX {
		return
	}
	at, port := link.Other(host)
	its, settings := n.portOf(at, port), n.s.Switches[at]
	offer := dcb.Local8021Q{Protocol: settings.Protocol, Settings: qos.Defaults(), ChosenPFC: its.Lossless != 0}
	offer.Settings.PFC = its.Lossless
	if settings.Weighted {
		offer.Settings.ETS, offer.ChosenETS = ethernet.SharesOf(&its.Queues), true
	}
	offer.Settings.Applications, offer.ChosenApplications = settings.Applications, len(settings.Applications) > 0
	own := dcb.Local8021Q{Protocol: nic.Protocol, Willing: true, Settings: qos.Defaults(), ChosenPFC: wire.Lossless != 0}
	own.Settings.PFC = wire.Lossless
	a, b := agent(mac(host), true, own), agent(mac(at), settings.DCBX, offer)
	if !settings.LLDP {
		b = nil
	}
	converse(a, b)
	o, s := a.Operative(), a.DCBX()
	wire.Lossless = o.PFC
	if o.ETSFrom == qos.FromPeer {
		ethernet.Follow(&wire.Queues, &o.ETS)
	}
	x := Agreed{Host: n.s.Graph.Nodes[host].Name, Switch: n.s.Graph.Nodes[at].Name, State: s.State.String(), Protocol: s.Protocol.String(),
		node: host, pfc: o.PFC, PFC: []int{}, PFCFrom: o.PFCFrom.String(), ETSFrom: o.ETSFrom.String()}
	for set := o.PFC; set != 0; set &= set - 1 {
		x.PFC = append(x.PFC, bits.TrailingZeros8(set))
	}
	n.agreed = append(n.agreed, x)
}

// agent returns one of a port.
func agent(mac eth.MAC, dcbx bool, own dcb.Local8021Q) *dcb.Agent {
	return dcb.New(dcb.Config{MAC: mac, Transmit: dcb.All, Receive: dcb.All, DCBX: dcbx, Local8021Q: own, Local: lldp.PDU{
		ChassisID: lldp.ChassisOf(mac), PortID: lldp.ID{Subtype: lldp.PortInterface, Value: "1"}}})
}

// converse lets the agents of a link talk; nil: there is none at that end.
func converse(a, b *dcb.Agent) {
	ends := []*dcb.Agent{a}
	if b != nil {
		ends = append(ends, b)
	}
	for _, x := range ends {
		x.Start(0)
		x.SetWire(0, true)
	}
	for now := clock.Time(0); now <= clock.Time(talk); {
		for i, x := range ends {
			x.Advance(now)
			for x.Pending() {
				frame := x.Transmit(now)
				if frame == nil {
					break
				}
				if len(ends) > 1 {
					ends[1-i].Receive(now, frame)
				}
			}
		}
		next := clock.Never
		for _, x := range ends {
			next = clock.Min(next, x.Deadline())
		}
		now = max(next, now+1)
	}
}
