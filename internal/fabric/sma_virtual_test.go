package fabric

import (
	"testing"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// TestVirtualAttributes: the attributes of virtual ports answer what is there, and refuse what is not valid without changing anything.
func TestVirtualAttributes(t *testing.T) {
	f := small(t)
	at := f.at
	ask := func(set bool, attr uint16, modifier uint32, data func([]byte)) (status uint16, answer []byte) {
		p := f.port(at)
		r := smaRequest{node: &f.nodes[p.node], own: p, in: p, set: set, modifier: modifier, data: make([]byte, mad.SMPDataLen)}
		if data != nil {
			data(r.data)
		}
		status = f.attribute(&r, attr)
		return status, r.data
	}
	_, b := ask(false, mad.AttrGeneralInfo, mad.GeneralInfoCapabilities, nil)
	if g, err := mad.ParseGeneralInfo(b); err != nil || !g.Has(mad.CapVirtualization) || g.Has(0) {
		t.Errorf("capabilities %x, %v", g, err)
	}
	f.SetVirtual(0, at, []VirtualPort{{1, 7}, {2, 8}})
	info := func(i mad.VPortInfo) func([]byte) { return func(b []byte) { i.Append(b[:0]) } }
	enable := func(i mad.VirtualizationInfo) func([]byte) { return func(b []byte) { i.Append(b[:0]) } }
	for _, c := range []struct {
		name     string
		set      bool
		attr     uint16
		modifier uint32
		data     func([]byte)
		status   uint16
		state    mad.PortState // of virtual port 1 afterwards
		lid      ib.LID
	}{
		{"Get of VirtualizationInfo", false, mad.AttrVirtualizationInfo, 0, nil, 0, mad.PortDown, 0},
		{"enable", true, mad.AttrVirtualizationInfo, 0, enable(mad.VirtualizationInfo{Enable: true, StateChange: true}), 0, mad.PortInit, 0},
		{"active at once", true, mad.AttrVPortInfo, 1, info(mad.VPortInfo{State: mad.PortActive, LID: 5}), mad.StatusInvalidField, mad.PortInit, 0},
		{"armed without a LID", true, mad.AttrVPortInfo, 1, info(mad.VPortInfo{State: mad.PortArmed}), mad.StatusInvalidField, mad.PortInit, 0},
		{"a multicast LID", true, mad.AttrVPortInfo, 1, info(mad.VPortInfo{LID: 0xc000}), mad.StatusInvalidField, mad.PortInit, 0},
		{"armed", true, mad.AttrVPortInfo, 1, info(mad.VPortInfo{State: mad.PortArmed, LID: 5}), 0, mad.PortArmed, 5},
		{"active", true, mad.AttrVPortInfo, 1, info(mad.VPortInfo{State: mad.PortActive, LID: 5}), 0, mad.PortActive, 5},
		{"another LID", true, mad.AttrVPortInfo, 1, info(mad.VPortInfo{LID: 6, Reregister: true}), 0, mad.PortActive, 6},
		{"no such virtual port", false, mad.AttrVPortInfo, 3, nil, mad.StatusInvalidField, mad.PortActive, 6},
		{"beyond all", false, mad.AttrVPortInfo, 1 << 20, nil, mad.StatusInvalidField, mad.PortActive, 6},
		{"the port itself", true, mad.AttrVPortInfo, 0, info(mad.VPortInfo{State: mad.PortDown}), 0, mad.PortActive, 6},
		{"states are read only", true, mad.AttrVPortState, 0, nil, mad.StatusMethodUnsupported, mad.PortActive, 6},
		{"no second block of states", false, mad.AttrVPortState, 1, nil, mad.StatusInvalidField, mad.PortActive, 6},
		{"P_Keys", true, mad.AttrVPortPKeyTable, mad.OfVPort(1, 0), func(b []byte) { b[0], b[1] = 0x80, 3 }, 0, mad.PortActive, 6},
		{"no second block of P_Keys", false, mad.AttrVPortPKeyTable, mad.OfVPort(1, 1), nil, mad.StatusInvalidField, mad.PortActive, 6},
		{"VNodeInfo", false, mad.AttrVNodeInfo, 2, nil, 0, mad.PortActive, 6},
		{"VNodeDescription", false, mad.AttrVNodeDescription, 2, nil, 0, mad.PortActive, 6},
		{"VPortGUIDInfo", false, mad.AttrVPortGUIDInfo, mad.OfVPort(2, 0), nil, 0, mad.PortActive, 6},
		{"constants are read only", true, mad.AttrVNodeInfo, 2, nil, mad.StatusMethodUnsupported, mad.PortActive, 6},
		{"other capabilities", false, mad.AttrGeneralInfo, 0, nil, mad.StatusInvalidField, mad.PortActive, 6},
		{"an attribute that nobody has", false, 0xffbf, 0, nil, mad.StatusAttributeUnsupported, mad.PortActive, 6},
		{"down", true, mad.AttrVPortInfo, 1, info(mad.VPortInfo{State: mad.PortDown, LID: 6}), 0, mad.PortInit, 6},
		{"disable", true, mad.AttrVirtualizationInfo, 0, enable(mad.VirtualizationInfo{}), 0, mad.PortDown, 0},
	} {
		status, _ := ask(c.set, c.attr, c.modifier, c.data)
		all, _ := f.Virtual(at)
		if status != c.status || all[0].State != c.state || all[0].LID != c.lid {
			t.Errorf("%s: status %#x, virtual port 1 is %v with LID %d; want %#x, %v, %d", c.name, status, all[0].State, all[0].LID, c.status,
				c.state, c.lid)
		}
		if c.name == "P_Keys" && (all[0].PKeys[0] != 0x8003 || all[1].PKeys[0] != ib.PKeyDefault || all[0].Reregister != 1) {
			t.Errorf("virtual ports %+v", all)
		}
	}
}
