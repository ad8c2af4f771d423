package dcb

import (
	"testing"

	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lldp"
)

// started returns an agent that works.
func started(change func(*Config)) *Agent {
	c := config(macB, true)
	if change != nil {
		change(&c)
	}
	a := New(c)
	a.Start(0)
	return a
}

// TestDCBX_IEEE: who is willing decides, and between two that are the MAC (IEEE 802.1Q, 38.4).
func TestDCBX_IEEE(t *testing.T) {
	recommended := lldp.ETS{Class: [8]uint8{3: 1}, Bandwidth: [8]uint8{40, 60}, Algorithm: [8]lldp.Algorithm{lldp.Enhanced, lldp.Enhanced}}
	for _, c := range []struct {
		name                 string
		willing, peerWilling bool
		peer                 eth.MAC
		wantETS, want        qos.Origin // of ETS, and of PFC and applications
	}{
		{"neither is willing", false, false, macA, qos.FromDefault, qos.FromDefault},
		{"only the port", true, false, macA, qos.FromPeer, qos.FromPeer},
		{"only the peer", false, true, macC, qos.FromDefault, qos.FromDefault},
		{"both, and the port is lower", true, true, macC, qos.FromPeer, qos.FromPeer},
		{"both, and the peer is lower", true, true, macA, qos.FromPeer, qos.FromDefault},
		{"both are one", true, true, macB, qos.FromPeer, qos.FromDefault},
	} {
		a := started(func(x *Config) { x.Willing = c.willing })
		a.Receive(0, unit(c.peer, func(p *lldp.PDU) {
			p.ETS = &lldp.ETSConfiguration{Willing: c.peerWilling}
			p.Recommendation = &recommended
			p.PFC = &lldp.PFC{Willing: c.peerWilling, Enabled: 0x28}
			p.Applications = &lldp.Applications{{Priority: 3, Selector: lldp.SelectPort, Protocol: 4791}, {Selector: 7}}
		}))
		o := a.Operative()
		if o.ETSFrom != c.wantETS || o.PFCFrom != c.want || o.ApplicationsFrom != c.want {
			t.Errorf("%s: %v %v %v", c.name, o.ETSFrom, o.PFCFrom, o.ApplicationsFrom)
		}
		if c.want == qos.FromPeer && (o.PFC != 0x28 || len(o.Applications) != 1 || o.ETS.Bandwidth[1] != 60 || o.ETS.Class[3] != 1) {
			t.Errorf("%s: %+v", c.name, o)
		}
		// The port says how it works.
		_, sent := run(a, 0, 0)
		p := sent[len(sent)-1]
		if p.PFC.Enabled != o.PFC || p.ETS.Class != o.ETS.Class || p.PFC.Willing != c.willing || p.Recommendation != nil {
			t.Errorf("%s: says %+v %+v", c.name, p.PFC, p.ETS)
		}
	}
}

// TestDCBX_Invalid: classes of a peer that make no sense are not taken.
func TestDCBX_Invalid(t *testing.T) {
	a := started(nil)
	a.Receive(0, unit(macA, func(p *lldp.PDU) {
		p.Recommendation = &lldp.ETS{Bandwidth: [8]uint8{40, 10}, Algorithm: [8]lldp.Algorithm{lldp.Enhanced, lldp.Enhanced}}
		p.PFC = &lldp.PFC{Enabled: 8}
	}))
	if o := a.Operative(); o.ETSFrom != qos.FromDefault || o.ETS != qos.DefaultETS() || o.PFC != 8 || a.Counters().DCBXInvalid != 1 {
		t.Errorf("%+v, %+v", o, a.Counters())
	}
}

// TestDCBX_Multiple: with two neighbours that speak DCBX the port works as if there were none; one that only speaks LLDP does not count.
func TestDCBX_Multiple(t *testing.T) {
	a := started(nil)
	says := func(p *lldp.PDU) { p.PFC = &lldp.PFC{Enabled: 8} }
	a.Receive(0, unit(macA, says))
	a.Receive(0, unit(eth.MAC{2, 9}, nil))
	if s := a.DCBX(); s.State != Agreed || s.Peer != macA || a.Operative().PFC != 8 {
		t.Errorf("%+v", s)
	}
	a.Receive(0, unit(macC, says))
	a.Receive(0, unit(macC, func(p *lldp.PDU) { says(p); p.SystemName = "new" }))
	if s, o := a.DCBX(), a.Operative(); s.State != Multiple || s.Peer != (eth.MAC{}) || o.PFC != 0 || a.Counters().MultiplePeers != 1 {
		t.Errorf("%+v, %+v", s, o)
	}
	a.Receive(0, unit(macC, func(p *lldp.PDU) { p.TTL = 0 }))
	if s := a.DCBX(); s.State != Agreed || a.Operative().PFC != 8 {
		t.Errorf("%+v", s)
	}
}

// says is a data unit of a peer with CEE.
func says(sequence, acknowledged uint32, f lldp.Feature, pfc uint8) func(*lldp.PDU) {
	return func(p *lldp.PDU) {
		p.CEE = &lldp.CEE{Sequence: sequence, Acknowledged: acknowledged, PFC: &lldp.CEEPFC{Feature: f, Enabled: pfc, Classes: 8}}
	}
}

// TestDCBX_CEE: a feature works as the one configures who is not willing; if both or neither are, they have to be alike; one that is
// off or in error at the peer does not work.
func TestDCBX_CEE(t *testing.T) {
	for _, c := range []struct {
		name    string
		willing bool
		peer    lldp.Feature
		pfc     uint8 // of the peer; the port has 8
		want    uint8
		from    qos.Origin
		state   State
	}{
		{"the peer leads", true, lldp.Feature{Enable: true}, 0x10, 0x10, qos.FromPeer, Agreed},
		{"the port leads", false, lldp.Feature{Enable: true, Willing: true}, 0x10, 8, qos.FromLocal, Agreed},
		{"both willing and alike", true, lldp.Feature{Enable: true, Willing: true}, 8, 8, qos.FromLocal, Agreed},
		{"both willing, not alike", true, lldp.Feature{Enable: true, Willing: true}, 0x10, 0, qos.FromDefault, Conflict},
		{"neither willing and alike", false, lldp.Feature{Enable: true}, 8, 8, qos.FromLocal, Agreed},
		{"neither willing, not alike", false, lldp.Feature{Enable: true, Error: true}, 0x10, 0, qos.FromDefault, Conflict},
		{"the peer has it off", true, lldp.Feature{}, 8, 0, qos.FromDefault, Agreed},
		{"the peer is in error", false, lldp.Feature{Enable: true, Error: true}, 8, 0, qos.FromDefault, Agreed},
	} {
		a := started(func(x *Config) { x.Willing, x.Settings.PFC, x.ChosenPFC = c.willing, 8, true })
		a.Receive(0, unit(macA, says(1, 0, c.peer, c.pfc)))
		s, o := a.DCBX(), a.Operative()
		if o.PFC != c.want || o.PFCFrom != c.from || s.State != c.state || s.Protocol != CEE || s.PFC.Error != (c.state == Conflict) {
			t.Errorf("%s: %+v, %+v", c.name, o, s)
		}
		_, sent := run(a, 0, 0)
		p := sent[len(sent)-1]
		if p.CEE == nil || p.ETS != nil || p.CEE.Acknowledged != 1 || p.CEE.PFC.Enabled != 8 || p.CEE.PFC.Error != s.PFC.Error {
			t.Fatalf("%s: says %+v", c.name, p.CEE)
		}
	}
}

// TestDCBX_CEESequence: what is said changes only when the peer has heard what was said before (DCBX 1.01, 3.2.1).
func TestDCBX_CEESequence(t *testing.T) {
	a := started(func(x *Config) { x.Protocol = CEE })
	on := lldp.Feature{Enable: true, Willing: true}
	heard := func(sequence, acknowledged uint32) (seq uint32, pfc uint8) {
		a.Receive(0, unit(macA, says(sequence, acknowledged, on, 0)))
		u := a.dcbx.cee.unit()
		return u.Sequence, u.PFC.Enabled
	}
	if seq, _ := heard(7, 0); seq != 1 {
		t.Errorf("first sequence %d", seq)
	}
	c := a.Configuration()
	c.Willing, c.Settings.PFC = false, 8
	a.Configure(0, c)
	if seq, pfc := heard(8, 0); seq != 1 || pfc != 0 || a.dcbx.cee.unit().Acknowledged != 8 {
		t.Errorf("before it is heard: %d says %#x", seq, pfc)
	}
	if seq, pfc := heard(8, 1); seq != 2 || pfc != 8 || a.DCBX().PFC.Synchronized {
		t.Errorf("when it is heard: %d says %#x", seq, pfc)
	}
	if seq, _ := heard(8, 2); seq != 2 || !a.DCBX().PFC.Synchronized {
		t.Errorf("in the end: %d, %+v", seq, a.DCBX())
	}
}

// TestDCBX_Auto: CEE is spoken with a peer that speaks nothing else, and IEEE again without one. A peer that has spoken IEEE is followed
// to CEE only if it stays there: it may just have followed this port.
func TestDCBX_Auto(t *testing.T) {
	a := started(nil)
	protocol := func(want Protocol, when string) {
		t.Helper()
		if s := a.DCBX(); s.Protocol != want {
			t.Errorf("%s: %v, want %v", when, s.Protocol, want)
		}
	}
	protocol(IEEE, "at first")
	a.Receive(0, unit(macA, says(1, 0, lldp.Feature{Enable: true}, 8)))
	protocol(CEE, "with a peer of CEE")
	a.Receive(0, unit(macA, func(p *lldp.PDU) { p.TTL = 0 }))
	protocol(IEEE, "without one")
	a.Receive(0, unit(macA, func(p *lldp.PDU) { p.PFC = &lldp.PFC{} }))
	a.Receive(0, unit(macA, says(1, 0, lldp.Feature{Enable: true}, 8)))
	protocol(IEEE, "with one that has spoken IEEE")
	run(a, 0, seconds(doubtful))
	protocol(CEE, "with one that speaks CEE for long")
	both := func(p *lldp.PDU) { says(1, 0, lldp.Feature{Enable: true}, 8)(p); p.PFC = &lldp.PFC{} }
	a.Receive(seconds(6), unit(macA, both))
	protocol(IEEE, "with one that speaks both")
}

// TestFromGroups: groups are classes, and the strict group is one that is free.
func TestFromGroups(t *testing.T) {
	strict := [8]uint8{15, 0, 1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name    string
		group   [8]uint8
		percent [8]uint8
		ok      bool
		class0  uint8
	}{
		{"eight groups", [8]uint8{0, 1, 2, 3, 4, 5, 6, 7}, [8]uint8{13, 13, 13, 13, 12, 12, 12, 12}, true, 0},
		{"one strict", strict, [8]uint8{20, 20, 20, 20, 10, 5, 5}, true, 7},
		{"all strict", [8]uint8{15, 15, 15, 15, 15, 15, 15, 15}, [8]uint8{}, true, 7},
		{"no room for the strict one", strict, [8]uint8{20, 20, 20, 20, 5, 5, 5, 5}, false, 0},
		{"a group that there is not", [8]uint8{9}, [8]uint8{100}, false, 0},
		{"too little", [8]uint8{}, [8]uint8{90}, false, 0},
	} {
		e, ok := fromGroups(&lldp.CEEGroups{Group: c.group, Percent: c.percent})
		if ok != c.ok || ok && e.Class[0] != c.class0 {
			t.Errorf("%s: %+v, %v", c.name, e, ok)
		}
		if ok {
			own := desired(&Config{Local8021Q: Local8021Q{Settings: qos.Settings{ETS: e}}})
			if own.Groups.Group != c.group || own.Groups.Percent != c.percent {
				t.Errorf("%s: back as %+v", c.name, own.Groups)
			}
		}
	}
}
