package dcb

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

// Neighbour is a port that was heard.
type Neighbour struct {
	MAC eth.MAC // from which its frames come
	lldp.PDU
	Since, Expires clock.Time
	said           string // the data unit
	// ieee is whether it has ever spoken IEEE's DCBX, and doubt until when it is not believed that it speaks only CEE's although it
	// has; 0: it is. So two that turn to each other's protocol at the same time do not miss each other for ever.
	ieee  bool
	doubt clock.Time
}

// speaks reports whether it speaks DCBX.
func (n *Neighbour) speaks() bool { return n.speaksIEEE() || n.CEE != nil }

func (n *Neighbour) speaksIEEE() bool {
	return n.ETS != nil || n.Recommendation != nil || n.PFC != nil || n.Applications != nil
}

// Receive takes a frame to lldp.NearestBridge (IEEE 802.1AB, 9.2.7).
func (a *Agent) Receive(now clock.Time, frame []byte) {
	if !a.Receives() {
		return
	}
	e, b, err := eth.ParseEthernet(frame)
	if err != nil || e.Tagged || e.Type != lldp.EtherType {
		return
	}
	a.counters.FramesIn++
	p, faults, err := lldp.Parse(b)
	a.counters.TLVsDiscarded += uint64(faults.Discarded)
	a.counters.TLVsUnrecognized += uint64(faults.Unrecognized)
	if err != nil || faults.Discarded > 0 {
		a.counters.FramesInErrors++
	}
	if err != nil {
		a.counters.FramesDiscarded++
		return
	}
	i := slices.IndexFunc(a.neighbours, func(n Neighbour) bool { return n.ChassisID == p.ChassisID && n.PortID == p.PortID })
	switch {
	case p.TTL == 0 && i >= 0:
		a.counters.Shutdowns++
		a.neighbours = slices.Delete(a.neighbours, i, i+1)
	case p.TTL == 0:
		return
	case i < 0 && len(a.neighbours) == mostNeighbours:
		a.counters.FramesDiscarded++
		a.crowded = max(a.crowded, now+seconds(int(p.TTL)))
		return
	case i < 0:
		a.neighbours = append(a.neighbours, Neighbour{Since: now})
		a.neighbours[len(a.neighbours)-1].update(now, e.Src, p, b, a.cfg.Receive)
		if a.fast == 0 { // newNeighbor (9.2.9)
			a.fast, a.due = fastCount, max(now, a.silent)
		}
	case !a.neighbours[i].update(now, e.Src, p, b, a.cfg.Receive):
		return
	}
	a.settle(now)
}

// update makes a neighbour say what is in a data unit, and reports whether it has said something else before.
func (n *Neighbour) update(now clock.Time, src eth.MAC, p lldp.PDU, b []byte, mode Mode) (changed bool) {
	n.Expires = now + seconds(int(p.TTL))
	if n.MAC == src && n.said == string(b) {
		return false
	}
	if mode == Mandatory {
		p = lldp.PDU{ChassisID: p.ChassisID, PortID: p.PortID, TTL: p.TTL}
	}
	n.MAC, n.PDU, n.said = src, p, string(b)
	switch {
	case n.speaksIEEE():
		n.ieee, n.doubt = true, 0
	case n.ieee && n.CEE != nil:
		n.ieee, n.doubt = false, now+seconds(doubtful)
	}
	return true
}

// age forgets the neighbours that were not heard of for as long as they said.
func (a *Agent) age(now clock.Time) {
	for i := range a.neighbours {
		if n := &a.neighbours[i]; n.doubt != 0 && n.doubt <= now {
			n.doubt = 0
			a.settle(now)
		}
	}
	n := len(a.neighbours)
	a.neighbours = slices.DeleteFunc(a.neighbours, func(n Neighbour) bool { return n.Expires <= now })
	if gone := n - len(a.neighbours); gone > 0 {
		a.counters.Ageouts += uint64(gone)
		a.settle(now)
	}
}

// peer returns the neighbours that speak DCBX, at most two: with more than one there is none to agree with.
func (a *Agent) peer() (peers []*Neighbour) {
	for i := range a.neighbours {
		if n := &a.neighbours[i]; n.speaks() && len(peers) < 2 {
			peers = append(peers, n)
		}
	}
	return peers
}
