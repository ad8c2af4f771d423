package fabric

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// portTables are the tables of a port. Each is nil until somebody sets it.
type portTables struct {
	guids       []uint64
	pkeys       []ib.PKey
	slToVL      []mad.SLtoVLMappingTable   // of a switch: by the port where packets arrive
	arbitration *[2]mad.VLArbitrationTable // low and high priority
}

func (p *port) table() *portTables {
	if p.tables == nil {
		p.tables = &portTables{}
	}
	return p.tables
}

// guidInfo answers GUIDInfo of the port asked (IBA 14.2.5.5). The very first GUID is the port's own and
// cannot be changed.
func (f *Fabric) guidInfo(r *smaRequest) uint16 {
	p, cap := r.own, int(r.own.info.GUIDCap)
	if int64(r.modifier) > int64(cap-1)/8 {
		return mad.StatusInvalidField
	}
	at := int(r.modifier) * 8
	if r.set {
		want, err := mad.ParseGUIDInfo(r.data)
		if err != nil {
			return mad.StatusInvalidField
		}
		t := p.table()
		if t.guids == nil {
			t.guids = make([]uint64, cap)
		}
		copy(t.guids[at:], want[:])
	}
	var g mad.GUIDInfo
	if p.tables != nil && p.tables.guids != nil {
		copy(g[:], p.tables.guids[at:])
	}
	if at == 0 {
		g[0] = p.guid
	}
	g.Append(r.data[:0])
	return mad.StatusOK
}

// pkeyTable answers P_KeyTable (IBA 14.2.5.7). For adapters the upper half of the modifier is ignored;
// ibdiagnet of ibutils puts the port there.
func (f *Fabric) pkeyTable(r *smaRequest) uint16 {
	p, cap, block := r.own, adapterPKeys, int(r.modifier&0xffff)
	if r.node.kind == mad.NodeSwitch {
		if p, cap = f.target(r, r.modifier>>16), enforcedPKeys; p != nil && p.number == 0 {
			cap = switchPKeys
		}
	}
	if p == nil || block >= (cap+31)/32 {
		return mad.StatusInvalidField
	}
	if r.set {
		want, err := mad.ParsePKeyTable(r.data)
		if err != nil {
			return mad.StatusInvalidField
		}
		t := p.table()
		if t.pkeys == nil {
			t.pkeys = make([]ib.PKey, cap)
			t.pkeys[0] = ib.PKeyDefault
		}
		copy(t.pkeys[block*32:], want[:])
	}
	k := p.pkeys(block)
	k.Append(r.data[:0])
	return mad.StatusOK
}

// pkeys returns a block of the port's P_Keys. Initially there is only the default one.
func (p *port) pkeys(block int) (t mad.PKeyTable) {
	if p.tables != nil && p.tables.pkeys != nil {
		copy(t[:], p.tables.pkeys[min(block*32, len(p.tables.pkeys)):])
	} else if block == 0 {
		t[0] = ib.PKeyDefault
	}
	return t
}

// eachLane is the initial mapping: each service level has the virtual lane of its number, modulo the
// number of lanes.
var eachLane = mad.SLtoVLMappingTable{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}

// Bits of the attribute modifier for a Set of SLtoVLMappingTable that applies to all output ports, or all
// input ports, of a switch (IBA 14.2.5.8, OptimizedSLtoVLMappingProgramming).
const (
	allOutputs = 1 << 16
	allInputs  = 1 << 17
)

// slToVL answers SLtoVLMappingTable (IBA 14.2.5.8).
func (f *Fabric) slToVL(r *smaRequest) uint16 {
	p, in := r.own, 0
	if r.node.kind == mad.NodeSwitch {
		if r.set && r.modifier&(allOutputs|allInputs) != 0 && r.modifier>>18 == 0 {
			return f.setAllLanes(r)
		}
		in = int(r.modifier >> 8 & 0xff)
		p = f.target(r, r.modifier&0xff)
	}
	if p == nil || in > int(r.node.count) || r.modifier>>16 != 0 {
		return mad.StatusInvalidField
	}
	if r.set {
		want, err := mad.ParseSLtoVLMappingTable(r.data)
		if err != nil {
			return mad.StatusInvalidField
		}
		p.setLanes(r.node, in, want)
	}
	t := eachLane
	if p.tables != nil && p.tables.slToVL != nil {
		t = p.tables.slToVL[in]
	}
	clear(r.data)
	t.Append(r.data[:0])
	return mad.StatusOK
}

// setAllLanes sets the mapping of many ports of a switch at once.
func (f *Fabric) setAllLanes(r *smaRequest) uint16 {
	want, err := mad.ParseSLtoVLMappingTable(r.data)
	out, in := int(r.modifier&0xff), int(r.modifier>>8&0xff)
	count := int(r.node.count)
	lastOut, lastIn := out, in
	if r.modifier&allOutputs != 0 {
		out, lastOut = 0, count
	}
	if r.modifier&allInputs != 0 {
		in, lastIn = 0, count
	}
	if err != nil || lastOut > count || lastIn > count {
		return mad.StatusInvalidField
	}
	for o := out; o <= lastOut; o++ {
		for i := in; i <= lastIn; i++ {
			f.ports[int(r.node.first)+o].setLanes(r.node, i, want)
		}
	}
	return mad.StatusOK
}

func (p *port) setLanes(n *node, in int, want mad.SLtoVLMappingTable) {
	t := p.table()
	if t.slToVL == nil {
		count := 1
		if n.kind == mad.NodeSwitch {
			count += int(n.count)
		}
		t.slToVL = make([]mad.SLtoVLMappingTable, count)
		for i := range t.slToVL {
			t.slToVL[i] = eachLane
		}
	}
	t.slToVL[in] = want
}

// alike is the initial state of the arbitration tables: all lanes have the same share, none has priority.
var alike = func() (t [2]mad.VLArbitrationTable) {
	for i := range arbitrationCap {
		t[0][i], t[1][i] = mad.VLArbitration{VL: uint8(i), Weight: 4}, mad.VLArbitration{VL: uint8(i)}
	}
	return t
}()

// vlArbitration answers VLArbitrationTable (IBA 14.2.5.9). The tables are so short that they have no
// second half.
func (f *Fabric) vlArbitration(r *smaRequest) uint16 {
	p := r.own
	if r.node.kind == mad.NodeSwitch {
		p = f.target(r, r.modifier&0xffff)
	}
	which := r.modifier >> 16
	if p == nil || which != 1 && which != 3 {
		return mad.StatusInvalidField
	}
	if r.set {
		want, err := mad.ParseVLArbitrationTable(r.data)
		if err != nil {
			return mad.StatusInvalidField
		}
		t := p.table()
		if t.arbitration == nil {
			first := alike
			t.arbitration = &first
		}
		clear(want[arbitrationCap:])
		t.arbitration[which/2] = want
	}
	t := &alike
	if p.tables != nil && p.tables.arbitration != nil {
		t = p.tables.arbitration
	}
	t[which/2].Append(r.data[:0])
	return mad.StatusOK
}
