package driver

import (
	"net"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/counters/collector"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/lldp"
)

// qosStatus returns what the port of adapter i does about priorities; nil if it is InfiniBand's.
func (d *Driver) qosStatus(i int, a *device.AdapterStatus) *api.QoSStatus {
	d.changes.Lock()
	defer d.changes.Unlock()
	r := d.running[i]
	if a.Priorities == nil {
		return nil
	}
	own, s := d.ownQoS(i), a.LLDP
	q := &api.QoSStatus{Refused: d.noLLDP(i), Own: ownStatus(&own), Peers: []api.LLDPPeer{},
		DCBX: api.DCBXStatus{State: dcb.Silent.String()}, LLDP: api.LLDPStatus{Transmit: dcb.Off.String(), Receive: dcb.Off.String()}}
	q.Operative = operativeStatus(&a.Priorities.Operative)
	q.Policies = policyStatus(policiesOf(d.registry.DCB(r.known())))
	q.Rates = a.Priorities.Rates.String()
	q.Enforced = api.EnforcedQoS{ETS: true, PFC: a.Flow.Refused == nil, Applications: true}
	if r.value(keyQoS) == 0 {
		q.Off = keyQoS + " is 0"
	}
	if s == nil {
		return q
	}
	q.DCBX = dcbxStatus(&s.DCBX)
	if s.DCBX.State == dcb.Silent {
		q.DCBX.Off = d.dcbxOff(i)
	}
	q.LLDP = api.LLDPStatus{Running: s.Running, Transmit: s.Config.Transmit.String(), Receive: s.Config.Receive.String(),
		Crowded: s.Crowded}
	if s.Deaf != nil {
		q.LLDP.Deaf = s.Deaf.Error()
	}
	for n := range s.Neighbours {
		q.Peers = append(q.Peers, peerStatus(&s.Neighbours[n]))
	}
	q.Counters = collector.LLDP(&s.Counters)
	return q
}

func operativeStatus(o *qos.Operative) (s api.OperativeQoS) {
	s.PFC, s.PFCFrom = qos.FormatPriorities(o.PFC), o.PFCFrom.String()
	s.PrioTC, s.TCBandwidth = qos.FormatClasses(&o.ETS)
	s.ETSFrom = o.ETSFrom.String()
	s.Applications, s.ApplicationsFrom = qos.FormatApplications(o.Applications), o.ApplicationsFrom.String()
	return s
}

func ownStatus(l *dcb.Local8021Q) api.OwnQoS {
	o := operativeStatus(&qos.Operative{Settings: l.Settings})
	return api.OwnQoS{Willing: l.Willing, Protocol: l.Protocol.String(), PFC: o.PFC, PrioTC: o.PrioTC, TCBandwidth: o.TCBandwidth,
		Applications: o.Applications}
}

func dcbxStatus(x *dcb.DCBXStatus) api.DCBXStatus {
	feature := func(f dcb.Feature) api.DCBXFeature {
		return api.DCBXFeature{Peer: f.Peer, PeerWilling: f.PeerWilling, Error: f.Error, Synchronized: f.Synchronized}
	}
	s := api.DCBXStatus{State: x.State.String(), ETS: feature(x.ETS), PFC: feature(x.PFC), App: feature(x.Applications)}
	if x.Protocol != dcb.Auto {
		s.Protocol = x.Protocol.String()
	}
	if x.State == dcb.Agreed || x.State == dcb.Conflict {
		s.Peer = net.HardwareAddr(x.Peer[:]).String()
	}
	return s
}

var capabilityNames = []string{"other", "repeater", "bridge", "WLAN access point", "router", "telephone", "DOCSIS", "station"}

func peerStatus(n *device.NeighbourStatus) api.LLDPPeer {
	p := api.LLDPPeer{
		MAC: n.MAC.String(), Chassis: n.ChassisID.Chassis(), Port: n.PortID.Port(), Name: n.SystemName, Description: n.SystemDescription,
		PortName: n.PortDescription, TTL: n.TTL, Left: n.Left.Seconds(), Known: n.Known.Seconds(),
	}
	for _, m := range n.Management {
		p.Management = append(p.Management, m.Addr.String())
	}
	if c := n.Capabilities; c != nil {
		for i, name := range capabilityNames {
			if c.Enabled&(lldp.Capability(1)<<i) != 0 {
				p.Capabilities = append(p.Capabilities, name)
			}
		}
	}
	for _, t := range n.Others {
		p.Others = append(p.Others, t.String())
	}
	ieee, cee := n.ETS != nil || n.Recommendation != nil || n.PFC != nil || n.Applications != nil, n.CEE != nil
	switch {
	case ieee && cee:
		p.DCBX = "both"
	case ieee:
		p.DCBX = dcb.IEEE.String()
	case cee:
		p.DCBX = dcb.CEE.String()
	}
	return p
}
