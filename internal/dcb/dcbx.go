package dcb

import (
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

// State is where DCBX stands.
type State uint8

// States.
const (
	// Silent: it is not spoken.
	Silent State = iota
	// Alone: no neighbour speaks it.
	Alone
	// Multiple: more than one does, so that it does nothing.
	Multiple
	// Agreed: the operative settings follow the peer and the configuration.
	Agreed
	// Conflict: a feature of CEE is configured differently at both ends, and does not work.
	Conflict
)

// String returns a state's name.
func (s State) String() string {
	return [...]string{"off", "no peer", "multiple peers", "agreed", "conflict"}[s]
}

// dcbx is what is agreed.
type dcbx struct {
	operative qos.Operative
	protocol  Protocol // that is spoken: IEEE or CEE
	state     State
	peer      eth.MAC // while Agreed or Conflict
	cee       ceeState
}

// begin forgets the peer.
func (d *dcbx) begin() { d.cee = ceeState{}; d.protocol = Auto }

// settle works out the operative settings; speaks says whether DCBX is spoken. It reports whether the port has something else to
// say than before.
func (d *dcbx) settle(c *Config, counters *Counters, speaks bool, peers []*Neighbour) (changed bool) {
	was, before := *d, lldp.PDU{}
	if d.protocol != Auto {
		was.speak(c, &before)
	}
	var peer *Neighbour
	d.state = Alone
	switch {
	case !speaks:
		d.state, d.protocol = Silent, Auto
	case len(peers) > 1:
		if d.state = Multiple; was.state != Multiple {
			counters.MultiplePeers++
		}
	case len(peers) == 1:
		peer = peers[0]
	}
	if d.state != Silent {
		d.choose(c, peer)
	}
	d.operative = c.Own()
	switch {
	case d.state == Silent:
	case d.protocol == CEE:
		d.settleCEE(c, counters, peer)
	case peer != nil && peer.speaksIEEE():
		d.state, d.peer = Agreed, peer.MAC
		d.settleIEEE(c, counters, peer)
	}
	if !was.operative.Equal(&d.operative) {
		counters.DCBXConfiguration++
	}
	if d.protocol == Auto {
		return was.protocol != Auto
	}
	var after lldp.PDU
	d.speak(c, &after)
	return was.protocol != d.protocol || string(before.Append(nil)) != string(after.Append(nil))
}

// choose chooses the protocol.
func (d *dcbx) choose(c *Config, peer *Neighbour) {
	was := d.protocol
	switch {
	case c.Protocol != Auto:
		d.protocol = c.Protocol
	case peer != nil && peer.CEE != nil && !peer.speaksIEEE() && peer.doubt == 0:
		d.protocol = CEE
	default:
		d.protocol = IEEE
	}
	if was != d.protocol {
		d.cee = ceeState{}
	}
}

// speak adds the TLVs of DCBX to a data unit.
func (d *dcbx) speak(c *Config, p *lldp.PDU) {
	p.TTL = ttl
	if d.protocol == CEE {
		p.CEE = d.cee.unit()
	} else {
		d.speakIEEE(c, p)
	}
}

// Feature is where a feature stands.
type Feature struct {
	// PeerWilling is whether the peer would do as the port says, if it says so of this feature.
	Peer, PeerWilling bool
	// Error says that both ends of CEE are configured differently; Synchronized that CEE's peer has heard what was said last.
	Error, Synchronized bool
}

// DCBXStatus is how DCBX stands.
type DCBXStatus struct {
	State                  State
	Protocol               Protocol // that is spoken; Auto: none
	Peer                   eth.MAC  // while there is one
	ETS, PFC, Applications Feature
	// Sequence and Acknowledged are those of CEE.
	Sequence, Acknowledged uint32
}

// DCBX returns how DCBX stands.
func (a *Agent) DCBX() DCBXStatus {
	d := &a.dcbx
	s := DCBXStatus{State: d.state, Protocol: d.protocol}
	peers := a.peer()
	if d.state != Agreed && d.state != Conflict || len(peers) != 1 {
		return s
	}
	n := peers[0]
	s.Peer = n.MAC
	if d.protocol == CEE {
		d.cee.status(&s, n.CEE)
		return s
	}
	if n.ETS != nil {
		s.ETS.PeerWilling = n.ETS.Willing
	}
	s.ETS.Peer = n.ETS != nil || n.Recommendation != nil
	if n.PFC != nil {
		s.PFC = Feature{Peer: true, PeerWilling: n.PFC.Willing}
	}
	s.Applications.Peer = n.Applications != nil
	s.Applications.PeerWilling = s.Applications.Peer && s.ETS.PeerWilling // the table says nothing of its own
	return s
}
