package lldp

import (
	"bytes"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	wire "github.com/softvpi/softvpi/wire/lldp"
)

var (
	_   port.Taker = (*Function)(nil)
	mac            = eth.MAC{2, 0, 0, 0, 0, 1}
)

// TestFunction: the agent's data units leave whole at the priority of network control, it takes those of the other end while it
// receives, and tells of what was agreed.
func TestFunction(t *testing.T) {
	var told []Agreement
	c := dcb.Config{MAC: mac, Local: wire.PDU{ChassisID: wire.ChassisOf(mac), PortID: wire.PortOf(mac), SystemName: "host",
		SystemDescription: string(bytes.Repeat([]byte("x"), 200))}, Transmit: dcb.All, Receive: dcb.All, DCBX: true,
		Local8021Q: dcb.Local8021Q{Willing: true, Settings: qos.Defaults()}}
	f := New(dcb.New(c), func(o Agreement) { told = append(told, o) })
	peer := (&wire.PDU{ChassisID: wire.ID{Subtype: 7, Value: "p"}, PortID: wire.ID{Subtype: 7, Value: "1"}, TTL: 120,
		PFC: &wire.PFC{Enabled: 8}}).Frame(eth.MAC{2, 0, 0, 0, 0, 2})
	if f.Takes(peer) || f.Pending() != 0 {
		t.Error("one that is stopped takes frames, or sends")
	}
	f.Follow(func(a *dcb.Agent) { a.Start(0) })
	f.Advance(0)
	out := make([]frame.Out, 2)
	if f.Pending() != 0x80 || f.Transmit(0, 0, out) != 0 || f.Transmit(0, 7, out) != 1 || f.Pending() != 0 {
		t.Fatalf("pending %#x", f.Pending())
	}
	o := &out[0]
	got := append(bytes.Clone(o.Head[o.HeadStart:o.HeadEnd]), o.Payload...)
	p, _, err := wire.Parse(got[eth.EthernetLen:])
	if err != nil || eth.MAC(got) != wire.NearestBridge || p.SystemName != "host" || len(p.SystemDescription) != 200 || p.PFC == nil {
		t.Fatalf("% x: %+v, %v", got, p, err)
	}
	if !f.Takes(peer) || f.Takes(append(bytes.Clone(peer[:12]), 8, 0)) {
		t.Error("it takes the wrong frames")
	}
	f.Receive(0, []frame.In{{Data: peer, Raw: true}})
	f.Receive(0, []frame.In{{Data: peer, Raw: true}})
	f.Follow(func(a *dcb.Agent) { a.Stop(1) })
	var states []dcb.State
	for _, x := range told {
		states = append(states, x.State)
	}
	if !slices.Equal(states, []dcb.State{dcb.Silent, dcb.Alone, dcb.Agreed, dcb.Silent}) {
		t.Fatalf("told %v", states)
	}
	if o := told[2]; told[1].Operative.PFC != 0 || o.Operative.PFC != 8 || o.PFCFrom != qos.FromPeer || told[3].Operative.PFC != 0 {
		t.Errorf("told %+v", told)
	}
	if f.Takes(peer) || f.Transmit(1, 7, out) != 1 {
		t.Error("one that stops still takes frames, or does not say that it stops")
	}
}
