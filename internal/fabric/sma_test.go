package fabric

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestNodeInfo: nodes describe themselves as ibsim does with the same netlist.
func TestNodeInfo(t *testing.T) {
	r := small(t)
	got, err := mad.ParseNodeInfo(r.get(mad.AttrNodeInfo, 0, 1))
	want := mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeSwitch, NumPorts: 8, SystemImageGUID: 0x2c90200002000,
		NodeGUID: 0x2c90200002000, PortGUID: 0x2c90200002000, PartitionCap: 8, DeviceID: 0xb924, Revision: 0xa1, LocalPortNum: 2,
		VendorID: 0x2c9}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("NodeInfo of the switch: %s %v", d, err)
	}
	// hca4 by its second port, which has a GUID of its own.
	got, _ = mad.ParseNodeInfo(r.get(mad.AttrNodeInfo, 0, 1, 3))
	if got.LocalPortNum != 2 || got.PortGUID != 0x2c90300001008 || got.NodeGUID != 0x2c90300001006 || got.NumPorts != 2 {
		t.Errorf("NodeInfo by the second port of hca4: %+v", got)
	}
	if d := string(bytes.TrimRight(r.get(mad.AttrNodeDescription, 0, 1, 7), "\x00")); d != "sw2 switch" {
		t.Errorf("the description is %q, want that of sw2", d)
	}
}

// TestDirectedRouteDrops: a directed route that cannot be followed gets no answer (IBA 14.2.2).
func TestDirectedRouteDrops(t *testing.T) {
	r := small(t)
	ask := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0)
	for name, path := range map[string][]uint8{
		"no link at the port": {1, 5}, "port 0": {0}, "no such port": {1, 9}, "no such port of the sender": {2},
		"through a channel adapter": {1, 3, 1}, "back into the adapter's other port": {1, 3, 2},
	} {
		if _, ok := r.try(ask, path...); ok {
			t.Errorf("%s: answered", name)
		}
	}
	s := ask
	_ = s.Direct([]uint8{1})
	s.SetHops(1, 1)
	if _, ok := r.send(s, &Packet{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive}); ok {
		t.Error("a packet that starts with a hop pointer other than 0 was answered")
	}
	s.SetHops(0, 64)
	if _, ok := r.send(s, &Packet{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive}); ok {
		t.Error("a route of 64 hops was followed")
	}
}

// TestReturnPath: the return path has the ports by which the nodes were entered, with the sender's own at 0 (IBA
// 14.2.2.2).
func TestReturnPath(t *testing.T) {
	r := small(t)
	a, ok := r.try(mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0), 1, 8, 2)
	if !ok || a.ReturnPath != [64]uint8{1, 2, 8, 1} || a.InitialPath != [64]uint8{0, 1, 8, 2} {
		t.Errorf("answered %v, return path %v, initial path %v", ok, a.ReturnPath[:5], a.InitialPath[:5])
	}
}

// TestDirectedRouteBehindLID: a directed route may follow a part by LID, as in smpquery -c.
func TestDirectedRouteBehindLID(t *testing.T) {
	r := small(t)
	r.configure()
	s := mad.NewSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 0)
	_ = s.Direct([]uint8{3})
	s.DrSLID = 4
	a, ok := r.send(s, &Packet{SLID: 4, DLID: 2})
	if n, _ := mad.ParseNodeInfo(a.Data[:]); !ok || n.NodeGUID != 0x2c90300001006 {
		t.Errorf("answered %v by %+v, want hca4", ok, n)
	}
}

// TestStatuses: the status for attributes that do not exist and modifiers out of range (IBA 13.4.7).
func TestStatuses(t *testing.T) {
	r := small(t)
	for _, c := range []struct {
		name      string
		method    uint8
		attribute uint16
		modifier  uint32
		path      []uint8
		want      uint16
	}{
		{"unknown", mad.MethodGet, 0x99, 0, nil, mad.StatusAttributeUnsupported},
		{"SwitchInfo of an adapter", mad.MethodGet, mad.AttrSwitchInfo, 0, nil, mad.StatusAttributeUnsupported},
		{"linear table of an adapter", mad.MethodGet, mad.AttrLinearForwardingTable, 0, nil, mad.StatusAttributeUnsupported},
		{"multicast table of an adapter", mad.MethodGet, mad.AttrMulticastForwardingTable, 0, nil, mad.StatusAttributeUnsupported},
		{"random table", mad.MethodGet, mad.AttrRandomForwardingTable, 0, []uint8{1}, mad.StatusAttributeUnsupported},
		{"set of NodeInfo", mad.MethodSet, mad.AttrNodeInfo, 0, nil, mad.StatusMethodUnsupported},
		{"set of NodeDescription", mad.MethodSet, mad.AttrNodeDescription, 0, nil, mad.StatusMethodUnsupported},
		{"port beyond the last", mad.MethodGet, mad.AttrPortInfo, 9, []uint8{1}, mad.StatusInvalidField},
		{"linear block beyond the last", mad.MethodGet, mad.AttrLinearForwardingTable, 768, []uint8{1}, mad.StatusInvalidField},
		{"the last linear block", mad.MethodGet, mad.AttrLinearForwardingTable, 767, []uint8{1}, mad.StatusOK},
		{"multicast block beyond the last", mad.MethodGet, mad.AttrMulticastForwardingTable, 32, []uint8{1}, mad.StatusInvalidField},
		{"multicast ports beyond the last", mad.MethodGet, mad.AttrMulticastForwardingTable, 1 << 28, []uint8{1}, mad.StatusInvalidField},
		{"P_Key block of an adapter", mad.MethodGet, mad.AttrPKeyTable, 2, nil, mad.StatusInvalidField},
		{"P_Keys of an adapter, with the port as ibutils has it", mad.MethodGet, mad.AttrPKeyTable, 1<<16 | 1, nil, mad.StatusOK},
		{"P_Keys of a switch's port 0", mad.MethodGet, mad.AttrPKeyTable, 0, []uint8{1}, mad.StatusOK},
		{"P_Keys of a switch's port", mad.MethodGet, mad.AttrPKeyTable, 8<<16 | 1, []uint8{1}, mad.StatusOK},
		{"P_Keys of no port", mad.MethodGet, mad.AttrPKeyTable, 9 << 16, []uint8{1}, mad.StatusInvalidField},
		{"GUIDs beyond GUIDCap", mad.MethodGet, mad.AttrGUIDInfo, 10, nil, mad.StatusInvalidField},
		{"lanes of no port", mad.MethodGet, mad.AttrSLtoVLMappingTable, 9 << 8, []uint8{1}, mad.StatusInvalidField},
		{"second half of a short arbitration table", mad.MethodGet, mad.AttrVLArbitrationTable, 2<<16 | 1, []uint8{1},
			mad.StatusInvalidField},
	} {
		a, ok := r.try(mad.NewSMP(c.method, c.attribute, c.modifier, 0), c.path...)
		if !ok || a.StatusCode() != c.want {
			t.Errorf("%s: answered %v, status %#x, want %#x", c.name, ok, a.StatusCode(), c.want)
		}
	}
}

// TestTables: a table that was set reads back, and the first GUID is the port's own.
func TestTables(t *testing.T) {
	r := small(t)
	path := []uint8{1}
	for _, c := range []struct {
		name      string
		attribute uint16
		modifier  uint32
		path      []uint8
		length    int
	}{
		{"linear", mad.AttrLinearForwardingTable, 5, path, 64},
		{"multicast", mad.AttrMulticastForwardingTable, 3, path, 64},
		{"P_Keys of an adapter", mad.AttrPKeyTable, 1, nil, 64},
		{"P_Keys of a switch's port", mad.AttrPKeyTable, 7<<16 | 1, path, 64},
		{"lanes of an adapter", mad.AttrSLtoVLMappingTable, 0, nil, 8},
		{"lanes of a switch", mad.AttrSLtoVLMappingTable, 2<<8 | 7, path, 8},
		{"low arbitration", mad.AttrVLArbitrationTable, 1<<16 | 7, path, 16},
		{"high arbitration", mad.AttrVLArbitrationTable, 3<<16 | 7, path, 16},
		{"GUIDs", mad.AttrGUIDInfo, 1, nil, 64},
	} {
		before := r.get(c.attribute, c.modifier, c.path...)
		want := bytes.Repeat([]byte{3}, c.length)
		r.set(c.attribute, c.modifier, want, c.path...)
		if got := r.get(c.attribute, c.modifier, c.path...); !bytes.Equal(got[:c.length], want) || bytes.Equal(got, before) {
			t.Errorf("%s: read back % x", c.name, got)
		}
		if c.path == nil && bytes.Equal(r.get(c.attribute, c.modifier, 1, 7, 1)[:c.length], want) {
			t.Errorf("%s of another node was set", c.name)
		}
	}
	g, _ := mad.ParseGUIDInfo(r.set(mad.AttrGUIDInfo, 0, bytes.Repeat([]byte{3}, 64)))
	if g[0] != 0x2c90300001003 || g[1] != 0x0303030303030303 {
		t.Errorf("the GUIDs are %x, want the port's own first", g)
	}
	k, _ := mad.ParsePKeyTable(r.get(mad.AttrPKeyTable, 0, 1, 7, 1))
	if k != (mad.PKeyTable{ib.PKeyDefault}) {
		t.Errorf("the partition table is %v, want the default P_Key only", k)
	}
}

// TestPortStates: the transitions of PortState that a set may make (IBA 14.2.5.6).
func TestPortStates(t *testing.T) {
	for _, c := range []struct {
		from, to, want mad.PortState
		ok             bool
	}{
		{mad.PortInit, mad.PortArmed, mad.PortArmed, true},
		{mad.PortInit, mad.PortActive, mad.PortInit, false},
		{mad.PortInit, mad.PortInit, mad.PortInit, false},
		{mad.PortInit, mad.PortStateNoChange, mad.PortInit, true},
		{mad.PortArmed, mad.PortActive, mad.PortActive, true},
		{mad.PortArmed, mad.PortArmed, mad.PortArmed, true},
		{mad.PortActive, mad.PortArmed, mad.PortActive, false},
		{mad.PortActive, mad.PortActive, mad.PortActive, true},
		{mad.PortActive, mad.PortDown, mad.PortInit, true}, // down, and up again at once
		{mad.PortActive, 5, mad.PortActive, false},
	} {
		r := small(t)
		for s := mad.PortArmed; s <= c.from; s++ {
			r.mustChange(1, func(i *mad.PortInfo) { i.PortState = s })
		}
		status, i := r.change(1, func(i *mad.PortInfo) { i.PortState = c.to })
		if i.PortState != c.want || (status == mad.StatusOK) != c.ok {
			t.Errorf("%v to %v: %v, status %#x; want %v", c.from, c.to, i.PortState, status, c.want)
		}
	}
}

// TestPhysicalStates: a port that is taken down takes the other end down. Disabled, it stays down until it polls
// again.
func TestPhysicalStates(t *testing.T) {
	r := small(t)
	r.activate(7, 1)
	if r.state(7, 1) != mad.PortActive || r.state(7, 1, 7) != mad.PortActive {
		t.Fatal("the link is not active")
	}
	i := r.mustChange(7, func(i *mad.PortInfo) { i.PortState, i.PortPhysicalState = mad.PortDown, mad.PhysicalDisabled }, 1)
	if i.PortState != mad.PortDown || i.PortPhysicalState != mad.PhysicalDisabled {
		t.Errorf("the disabled port is %v and %v, want down and disabled", i.PortState, i.PortPhysicalState)
	}
	if i = r.portInfo(7, 1, 8); i.PortState != mad.PortDown || i.PortPhysicalState != mad.PhysicalPolling {
		t.Errorf("the other end is %v and %v, want down and polling", i.PortState, i.PortPhysicalState)
	}
	if i = r.mustChange(7, func(i *mad.PortInfo) { i.PortState = mad.PortDown }, 1); i.PortPhysicalState != mad.PhysicalDisabled {
		t.Errorf("setting Down led out of Disabled to %v", i.PortPhysicalState)
	}
	i = r.mustChange(7, func(i *mad.PortInfo) { i.PortPhysicalState = mad.PhysicalPolling }, 1)
	if i.PortState != mad.PortInit || r.state(7, 1, 7) != mad.PortInit {
		t.Errorf("enabled again the port is %v, want Init", i.PortState)
	}
}

// TestEnabledRates: the enabled widths and speeds take effect at the next training, which chooses the best that both
// ends have.
func TestEnabledRates(t *testing.T) {
	r := small(t)
	i := r.mustChange(7, func(i *mad.PortInfo) { i.LinkWidthEnabled, i.LinkSpeedEnabled = mad.Width1x, 3 }, 1)
	if i.LinkWidthActive != mad.Width4x || i.LinkSpeedActive != 4 {
		t.Errorf("the rate changed before a training: %+v", i)
	}
	r.mustChange(7, func(i *mad.PortInfo) { i.PortState = mad.PortDown }, 1)
	if i = r.portInfo(7, 1, 7); i.LinkWidthActive != mad.Width1x || i.LinkSpeedActive != 2 || i.PortState != mad.PortInit {
		t.Errorf("after a training the rate is %+v, want 1x and speed 2", i)
	}
	i = r.mustChange(7, func(i *mad.PortInfo) { i.LinkWidthEnabled, i.LinkSpeedEnabled = 255, 15 }, 1)
	if i.LinkWidthEnabled != 3 || i.LinkSpeedEnabled != 7 {
		t.Errorf("enabled %+v, want all widths and speeds", i)
	}
	for name, change := range map[string]func(*mad.PortInfo){
		"width":           func(i *mad.PortInfo) { i.LinkWidthEnabled = mad.Width12x },
		"speed":           func(i *mad.PortInfo) { i.LinkSpeedEnabled = 8 },
		"physical state":  func(i *mad.PortInfo) { i.PortPhysicalState = mad.PhysicalLinkUp },
		"default state":   func(i *mad.PortInfo) { i.LinkDownDefaultState = mad.PhysicalDisabled },
		"lanes":           func(i *mad.PortInfo) { i.OperationalVLs = 5 },
		"MTU":             func(i *mad.PortInfo) { i.NeighborMTU = 6 },
		"LID":             func(i *mad.PortInfo) { i.LID = ib.LIDFirstMulticast },
		"subnet manager":  func(i *mad.PortInfo) { i.MasterSMLID = ib.LIDPermissive },
		"nothing at once": func(i *mad.PortInfo) { i.MTUCap, i.PortState = 1, mad.PortInit },
	} {
		before := r.portInfo(1)
		if status, after := r.change(1, change); status != mad.StatusInvalidField || after != before {
			t.Errorf("%s: status %#x, %s", name, status, cmp.Diff(before, after))
		}
	}
	// Without a common speed the link stays down.
	r.mustChange(8, func(i *mad.PortInfo) { i.LinkSpeedEnabled = 1 }, 1)
	r.mustChange(8, func(i *mad.PortInfo) { i.LinkSpeedEnabled = 4 }, 1, 7)
	if i = r.mustChange(8, func(i *mad.PortInfo) { i.PortState = mad.PortDown }, 1); i.PortState != mad.PortDown ||
		i.PortPhysicalState != mad.PhysicalPolling {
		t.Errorf("without a common speed the port is %v and %v, want down and polling", i.PortState, i.PortPhysicalState)
	}
}

// TestSpeeds: the extended speeds, and FDR10 in the vendor's attribute.
func TestSpeeds(t *testing.T) {
	for speed := mad.SpeedSDR; speed <= mad.SpeedXDR; speed++ {
		top, err := topology.Star(2, topology.Rate{Width: mad.Width4x, Speed: speed})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{TB: t, Fabric: New(top, nil), now: 1, at: Place{0, 1}}
		i := r.portInfo(1)
		e, _ := mad.ParseExtendedPortInfo(r.get(mad.AttrMellanoxExtendedPortInfo, 1))
		got := i.ActiveSpeed()
		if e.LinkSpeedActive == mad.FDR10 {
			got = mad.SpeedFDR10
		}
		if got != speed || i.LinkWidthActive != mad.Width4x ||
			(i.CapabilityMask&mad.CapIsExtendedSpeedsSupported != 0) != (speed >= mad.SpeedFDR) {
			t.Errorf("%v: %v, mask %#x", speed, got, i.CapabilityMask)
		}
		if speed < mad.SpeedFDR || speed == mad.SpeedXDR {
			continue
		}
		// Without the bit in the modifier the manager does not know the field, and it must not be set.
		r.mustChange(1, func(i *mad.PortInfo) { i.LinkSpeedExtEnabled = 30 })
		if got := r.portInfo(1).LinkSpeedExtEnabled; got != i.LinkSpeedExtSupported {
			t.Errorf("%v: speeds enabled %d, though the manager does not know the field", speed, got)
		}
		r.mustChange(1|extendedSpeedsKnown, func(i *mad.PortInfo) { i.LinkSpeedExtEnabled, i.PortState = 30, mad.PortDown })
		if i := r.portInfo(1); i.ActiveSpeed() != mad.SpeedQDR {
			t.Errorf("%v without extended speeds: %v", speed, i.ActiveSpeed())
		}
	}
}

// TestSwitchPortHasNoLID: the fields of ports that packets are addressed to are zero at a switch's external ports
// (IBA 14.2.5.6).
func TestSwitchPortHasNoLID(t *testing.T) {
	r := small(t)
	i := r.mustChange(7, func(i *mad.PortInfo) { i.LID, i.MasterSMLID, i.MKey, i.LMC = 9, 9, 9, 3 }, 1)
	if i.LID != 0 || i.MasterSMLID != 0 || i.MKey != 0 || i.LMC != 0 || i.CapabilityMask != 0 || i.GIDPrefix != 0 {
		t.Errorf("an external port of a switch has %+v", i)
	}
	if i.LocalPortNum != 2 {
		t.Errorf("local port %d, want the one of the request", i.LocalPortNum)
	}
}

func TestClientReregister(t *testing.T) {
	r := small(t)
	if i := r.mustChange(1, func(i *mad.PortInfo) { i.ClientReregister = true }); !i.ClientReregister {
		t.Error("the answer to the set does not have ClientReregister")
	}
	if r.portInfo(1).ClientReregister {
		t.Error("ClientReregister stays set")
	}
}

// TestPortStateChange: PortStateChange is set by changes of links and cleared by writing a one (IBA 14.2.5.4).
func TestPortStateChange(t *testing.T) {
	r := small(t)
	changed := func() bool {
		s, err := mad.ParseSwitchInfo(r.get(mad.AttrSwitchInfo, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		return s.PortStateChange
	}
	write := func(clear bool) {
		s := mad.SwitchInfo{LinearFDBTop: 7, PortStateChange: clear}
		r.set(mad.AttrSwitchInfo, 0, s.Append(nil), 1)
	}
	if !changed() {
		t.Error("PortStateChange was not set by the links that came up")
	}
	write(false)
	if !changed() {
		t.Error("PortStateChange was cleared by writing a zero")
	}
	write(true)
	if changed() {
		t.Error("PortStateChange was not cleared by writing a one")
	}
	r.activate(7, 1)
	if changed() {
		t.Error("PortStateChange was set by a transition that a set made")
	}
	r.Unlink(r.now, Place{r.at.Node + 4, 1}) // another switch's
	if changed() {
		t.Error("PortStateChange was set by another switch's link")
	}
	sw, err := r.Find("sw1")
	if err != nil {
		t.Fatal(err)
	}
	r.Unlink(r.now, Place{sw, 8})
	if !changed() {
		t.Error("PortStateChange was not set by a link that went down")
	}
}

// TestLanesOfAllPortsAreSetAtOnce: a switch accepts one mapping of service levels for all its ports at once (IBA
// 14.2.5.8).
func TestLanesOfAllPortsAreSetAtOnce(t *testing.T) {
	r := small(t)
	table := func(vl uint8) []byte {
		var m mad.SLtoVLMappingTable
		for i := range m {
			m[i] = vl
		}
		return m.Append(nil)
	}
	lane := func(in, out uint32) uint8 { return r.get(mad.AttrSLtoVLMappingTable, in<<8|out, 1)[0] >> 4 }
	r.set(mad.AttrSLtoVLMappingTable, allInputs|allOutputs, table(3), 1)
	for _, p := range [][2]uint32{{0, 1}, {1, 0}, {8, 8}, {3, 7}} {
		if got := lane(p[0], p[1]); got != 3 {
			t.Errorf("from port %d to port %d: lane %d, want 3", p[0], p[1], got)
		}
	}
	r.set(mad.AttrSLtoVLMappingTable, allInputs|5, table(2), 1)
	r.set(mad.AttrSLtoVLMappingTable, allOutputs|4<<8, table(1), 1)
	for p, want := range map[[2]uint32]uint8{{1, 5}: 2, {4, 5}: 1, {4, 1}: 1, {1, 1}: 3} {
		if got := lane(p[0], p[1]); got != want {
			t.Errorf("from port %d to port %d: lane %d, want %d", p[0], p[1], got, want)
		}
	}
	for _, bad := range []uint32{allInputs | 9, allOutputs | 9<<8, allInputs | 1<<18} {
		s := mad.NewSMP(mad.MethodSet, mad.AttrSLtoVLMappingTable, bad, 0)
		if a, ok := r.try(s, 1); !ok || a.StatusCode() != mad.StatusInvalidField {
			t.Errorf("modifier %#x: status %#x", bad, a.StatusCode())
		}
	}
	if a, ok := r.try(mad.NewSMP(mad.MethodGet, mad.AttrSLtoVLMappingTable, allInputs|1, 0), 1); !ok ||
		a.StatusCode() != mad.StatusInvalidField {
		t.Errorf("get of all: status %#x", a.StatusCode())
	}
}
