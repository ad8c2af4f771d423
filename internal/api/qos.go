package api

import (
	"context"
	"strings"
)

// QoSRequest changes what an adapter does about priorities without a peer, and how it speaks DCBX.
type QoSRequest struct {
	Adapter  string   `json:"-"` // by name
	Settings []string `json:"settings" doc:"Words such as willing=off pfc=3 prio-tc=3:1 tc-bw=0:40,1:60 app=port:4791=3 dcbx=ieee tc-rate=3:100 policy:SMB=netdirect=445,priority=3; NAME=default goes back to the default."`
}

// QoSStatus is what the port of an adapter does about priorities, and what it has heard of its peers.
type QoSStatus struct {
	// Refused is why the port has no LLDP: it has no wire of whole frames, or no keys.
	Refused string `json:"refused,omitempty"`
	// Off is why the port makes no difference between priorities: the key that says so.
	Off string `json:"off,omitempty"`
	// Enforced says by which of the operative settings the port works.
	Enforced  EnforcedQoS       `json:"enforced"`
	Operative OperativeQoS      `json:"operative"`
	Rates     string            `json:"tc_rate"`  // class:Mbit/s, the most that each may send; none
	Policies  []QoSPolicy       `json:"policies"` // the longest match first
	Own       OwnQoS            `json:"own"`
	DCBX      DCBXStatus        `json:"dcbx"`
	LLDP      LLDPStatus        `json:"lldp"`
	Peers     []LLDPPeer        `json:"neighbours"`
	Counters  map[string]uint64 `json:"counters"`
}

// OperativeQoS are the settings by which a port is to work, in the words in which they are set. Each part has its origin: default,
// local or peer.
type OperativeQoS struct {
	PFC              string `json:"pfc"` // priorities
	PFCFrom          string `json:"pfc_from"`
	PrioTC           string `json:"prio_tc"` // priority:class
	TCBandwidth      string `json:"tc_bw"`   // class:percent; the others are strict
	ETSFrom          string `json:"ets_from"`
	Applications     string `json:"app"`
	ApplicationsFrom string `json:"app_from"`
}

// QoSPolicy gives traffic a priority.
type QoSPolicy struct {
	Name   string `json:"name"`
	Policy string `json:"policy"` // netdirect=445,priority=3
}

// EnforcedQoS says by which settings a port works.
type EnforcedQoS struct {
	ETS          bool `json:"ets"` // classes with their bandwidths
	PFC          bool `json:"pfc"`
	Applications bool `json:"app"`
}

// Missing returns the names of those by which it does not, "PFC, applications", or "".
func (e EnforcedQoS) Missing() string {
	var names []string
	for _, x := range []struct {
		name string
		done bool
	}{{"ETS", e.ETS}, {"PFC", e.PFC}, {"applications", e.Applications}} {
		if !x.done {
			names = append(names, x.name)
		}
	}
	return strings.Join(names, ", ")
}

// OwnQoS is what the port does without a peer, in the same words.
type OwnQoS struct {
	Willing      bool   `json:"willing"`
	Protocol     string `json:"dcbx"` // auto, ieee, cee
	PFC          string `json:"pfc"`
	PrioTC       string `json:"prio_tc"`
	TCBandwidth  string `json:"tc_bw"`
	Applications string `json:"app"`
}

// DCBXStatus is how the exchange with the peer stands.
type DCBXStatus struct {
	State    string `json:"state"`              // off, no peer, multiple peers, agreed, conflict
	Protocol string `json:"protocol,omitempty"` // ieee, cee
	Peer     string `json:"peer,omitempty"`     // MAC
	// Off is why DCBX is off: the key or the parameter that keeps it so.
	Off string      `json:"off,omitempty"`
	ETS DCBXFeature `json:"ets"`
	PFC DCBXFeature `json:"pfc"`
	App DCBXFeature `json:"app"`
}

// DCBXFeature is how a feature stands.
type DCBXFeature struct {
	Peer         bool `json:"peer"` // the peer speaks of it
	PeerWilling  bool `json:"peer_willing"`
	Error        bool `json:"error,omitempty"`        // CEE: both ends are configured differently
	Synchronized bool `json:"synchronized,omitempty"` // CEE: the peer has heard what was said last
}

// LLDPStatus is how the port's agent works.
type LLDPStatus struct {
	Running  bool   `json:"running"`
	Transmit string `json:"transmit"` // off, mandatory, all
	Receive  string `json:"receive"`
	// Deaf is why the wire does not hear the others.
	Deaf    string `json:"deaf,omitempty"`
	Crowded bool   `json:"crowded,omitempty"` // there are more neighbours than are known
}

// LLDPPeer is a neighbour.
type LLDPPeer struct {
	MAC          string   `json:"mac"`
	Chassis      string   `json:"chassis"`
	Port         string   `json:"port"`
	Name         string   `json:"name,omitempty"`
	Description  string   `json:"description,omitempty"`
	PortName     string   `json:"port_description,omitempty"`
	Management   []string `json:"management,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"` // that it uses
	DCBX         string   `json:"dcbx,omitempty"`         // ieee, cee, or both
	TTL          uint16   `json:"ttl"`                    // seconds
	Left         float64  `json:"left"`                   // seconds until it is forgotten
	Known        float64  `json:"known"`                  // seconds
	Others       []string `json:"others,omitempty"`       // TLVs that are not known
}

// SetQoS changes what an adapter does about priorities.
func (c *Client) SetQoS(ctx context.Context, q QoSRequest) error {
	return c.call(ctx, "PATCH", adapterURL(q.Adapter, "/qos"), nil, q, nil)
}
