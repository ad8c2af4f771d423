package subnet

import (
	"maps"
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// field is where a component of a record is: its first bit and how many bits. None: it is reserved, or not compared.
type field struct{ at, bits int }

// recordKind is one kind of record that a request is compared with, component by component.
type recordKind struct {
	attr    uint16
	stride  int  // bytes from one record to the next
	trusted bool // only for those who know the key
	fields  []field
	each    func(a *administration, p int32, emit func(record []byte)) // makes the records that belong to an end port
}

// bytesAt makes fields of whole bytes that follow each other.
func bytesAt(at int, lengths ...int) (f []field) {
	for _, n := range lengths {
		f = append(f, field{8 * at, 8 * n})
		at += n
	}
	return f
}

func fields(parts ...[]field) []field { return slices.Concat(parts...) }

var reserved = []field{{}}

// kinds are the records, with their components in the order of the bits of the mask (IBA 15.2.5).
var kinds []recordKind

func init() {
	kinds = []recordKind{
		{mad.AttrNodeRecord, 112, false, fields(bytesAt(0, 2), reserved, bytesAt(4, 1, 1, 1, 1, 8, 8, 8, 2, 2, 4, 1, 3, 64)), (*administration).eachNode},
		{mad.AttrPortInfoRecord, 72, false, fields(bytesAt(0, 2, 1), reserved, portInfoFields(4)), (*administration).eachPort},
		{mad.AttrSLtoVLRecord, 16, false, bytesAt(0, 2, 1, 1), (*administration).eachSLtoVL},
		{mad.AttrSwitchInfoRecord, 24, false, fields(bytesAt(0, 2), reserved), (*administration).eachSwitch},
		{mad.AttrLFTRecord, 72, false, bytesAt(0, 2, 2), (*administration).eachLFT},
		{mad.AttrMFTRecord, 72, false, fields(bytesAt(0, 2), []field{{16, 4}, {}, {23, 9}}), (*administration).eachMFT},
		{mad.AttrSMInfoRecord, 32, false, fields(bytesAt(0, 2), reserved, bytesAt(4, 8, 8, 4), []field{{24 * 8, 4}, {24*8 + 4, 4}}), (*administration).eachSMInfo},
		{mad.AttrLinkRecord, 8, false, bytesAt(0, 2, 1, 1, 2), (*administration).eachLink},
		{mad.AttrGUIDInfoRecord, 72, false, fields(bytesAt(0, 2, 1), reserved, reserved, bytesAt(8, 8, 8, 8, 8, 8, 8, 8, 8)), (*administration).eachGUIDInfo},
		{mad.AttrPKeyTableRecord, 72, true, bytesAt(0, 2, 2, 1), (*administration).eachPKeys},
		{mad.AttrVLArbRecord, 72, false, bytesAt(0, 2, 1, 1), (*administration).eachVLArb},
		{mad.AttrInformInfoRecord, 64, false, fields(bytesAt(0, 16, 2), reserved, bytesAt(24, 16, 2, 2), reserved, bytesAt(46, 1, 1, 2, 2, 3), reserved), (*administration).eachSubscription},
	}
}

func kindOf(attr uint16) *recordKind {
	for i := range kinds {
		if kinds[i].attr == attr {
			return &kinds[i]
		}
	}
	return nil
}

// portInfoFields are the components of a PortInfo (IBA 15.2.5.3): offset in bits and length of each.
func portInfoFields(at int) (f []field) {
	for _, x := range [][2]int{
		{0, 64}, {64, 64}, {128, 16}, {144, 16}, {160, 32}, {192, 16}, {208, 16}, {224, 8}, {232, 8}, {240, 8}, {248, 8}, {256, 4}, {260, 4}, {264, 4}, {268, 4},
		{272, 2}, {274, 0}, {277, 3}, {280, 4}, {284, 4}, {288, 4}, {292, 4}, {296, 4}, {300, 4}, {304, 8}, {312, 8}, {320, 8}, {328, 4}, {332, 4}, {336, 3}, {339, 5},
		{344, 4}, {348, 1}, {349, 1}, {350, 1}, {351, 1}, {352, 16}, {368, 16}, {384, 16}, {400, 8}, {408, 0}, {411, 5}, {416, 0}, {419, 5}, {424, 4}, {428, 4},
	} {
		f = append(f, field{8*at + x[0], x[1]})
	}
	return f
}

// capabilityMask is the component of a PortInfoRecord that bit 31 of the modifier has compared bit by bit (IBA 15.2.5.3).
const capabilityMask = 7

// match compares the components in mask.
func (k *recordKind) match(template, record []byte, mask uint64, modifier uint32) bool {
	for i, f := range k.fields {
		if mask>>i&1 == 0 || f.bits == 0 {
			continue
		}
		if k.attr == mad.AttrPortInfoRecord && i == capabilityMask && modifier>>31 != 0 {
			if bitsOf(template, f)&^bitsOf(record, f) != 0 {
				return false
			}
			continue
		}
		if f.at%8 == 0 && f.bits%8 == 0 {
			if string(template[f.at/8:(f.at+f.bits)/8]) != string(record[f.at/8:(f.at+f.bits)/8]) {
				return false
			}
			continue
		}
		if bitsOf(template, f) != bitsOf(record, f) {
			return false
		}
	}
	return true
}

// bitsOf reads a component of up to 64 bits.
func bitsOf(b []byte, f field) (v uint64) {
	for i := f.at; i < f.at+f.bits; i++ {
		v = v<<1 | uint64(b[i/8]>>(7-i%8)&1)
	}
	return v
}

// query is what is looked for, and the end ports where it can be.
type query struct {
	template []byte
	ports    []int32
}

// query narrows a search by the LID, the first component of most records: any LID of a port finds it.
func (k *recordKind) query(a *administration, r *request) query {
	n := a.sm.live
	q := query{template: slices.Clone(r.data)}
	for len(q.template) < k.stride {
		q.template = append(q.template, 0)
	}
	switch {
	case k.attr == mad.AttrInformInfoRecord:
		q.ports = []int32{n.Self} // they belong to nobody in particular
	case r.sa.ComponentMask&1 != 0:
		lid := ib.LID(q.template[0])<<8 | ib.LID(q.template[1])
		if p := n.EndPortOfLID(lid); p != none && a.visible(r, p) {
			q.ports = []int32{p}
			base := n.Ports[p].Info.LID
			q.template[0], q.template[1] = byte(base>>8), byte(base)
			if !n.isSwitch(p) { // its port is known by the LID: whatever number was asked for is the one (as OpenSM has it)
				switch k.attr {
				case mad.AttrVLArbRecord:
					q.template[2] = n.Ports[p].Num
				case mad.AttrSLtoVLRecord:
					q.template[2], q.template[3] = 0, n.Ports[p].Num
				}
			}
		}
	default:
		for i := range n.Ports {
			if p := int32(i); n.Ports[p].reach && n.Ports[p].known && n.Ports[p].Info.LID != 0 && a.visible(r, p) {
				q.ports = append(q.ports, p)
			}
		}
	}
	return q
}

// pad makes a record as long as its place in a table.
func pad(b []byte, stride int) []byte {
	for len(b) < stride {
		b = append(b, 0)
	}
	return b
}

func (a *administration) eachNode(p int32, emit func([]byte)) {
	n := a.sm.live
	node := &n.Nodes[n.Ports[p].Node]
	r := mad.NodeRecord{LID: n.Ports[p].Info.LID, Info: node.Info, Description: node.Desc}
	r.Info.PortGUID, r.Info.LocalPortNum = n.Ports[p].GUID, n.Ports[p].Num
	emit(pad(r.Append(nil), 112))
}

// managed calls f for all ports that an end port stands for: itself, or the ports of its switch.
func (n *Subnet) managed(p int32, f func(q int32)) {
	if !n.isSwitch(p) {
		f(p)
		return
	}
	node := &n.Nodes[n.Ports[p].Node]
	for i := range int32(node.Info.NumPorts) + 1 {
		if n.Ports[node.First+i].known {
			f(node.First + i)
		}
	}
}

func (a *administration) eachPort(p int32, emit func([]byte)) {
	n := a.sm.live
	n.managed(p, func(q int32) {
		r := mad.PortInfoRecord{EndPortLID: n.Ports[p].Info.LID, PortNum: n.Ports[q].Num, Info: n.Ports[q].Info}
		r.Info.MKey = 0
		if r.Info.PortState == mad.PortDown { // all else is undefined (IBA 14.2.5.6)
			r.Info = mad.PortInfo{PortState: r.Info.PortState, PortPhysicalState: r.Info.PortPhysicalState}
		}
		emit(pad(r.Append(nil), 72))
	})
}

func (a *administration) eachLink(p int32, emit func([]byte)) {
	n := a.sm.live
	n.managed(p, func(q int32) {
		if o := n.Ports[q].Peer; o != none {
			r := mad.LinkRecord{FromLID: n.Ports[p].Info.LID, FromPort: n.Ports[q].Num, ToPort: n.Ports[o].Num, ToLID: n.Ports[n.entry(o)].Info.LID}
			emit(r.Append(nil))
		}
	})
}

func (a *administration) eachSwitch(p int32, emit func([]byte)) {
	n := a.sm.live
	if info := n.Nodes[n.Ports[p].Node].SwInfo; info != nil {
		r := mad.SwitchInfoRecord{LID: n.Ports[p].Info.LID, Info: *info}
		emit(r.Append(nil))
	}
}

// tablesOf is what a switch is known to have, nil for others.
func (a *administration) tablesOf(p int32) *tables {
	n := a.sm.live
	if !n.isSwitch(p) {
		return nil
	}
	return a.sm.tables[n.Nodes[n.Ports[p].Node].Info.NodeGUID]
}

func (a *administration) eachLFT(p int32, emit func([]byte)) {
	t := a.tablesOf(p)
	if t == nil {
		return
	}
	for b := 0; (b+1)*routing.BlockLen <= len(t.lft); b++ {
		r := mad.LFTRecord{LID: a.sm.live.Ports[p].Info.LID, Block: uint16(b), Table: mad.LinearForwardingTable(t.lft[b*routing.BlockLen:])}
		emit(r.Append(nil))
	}
}

func (a *administration) eachMFT(p int32, emit func([]byte)) {
	t := a.tablesOf(p)
	if t == nil {
		return
	}
	for _, at := range sortedKeys(t.mft) {
		table := t.mft[at]
		if table == (mad.MulticastForwardingTable{}) {
			continue
		}
		r := mad.MFTRecord{LID: a.sm.live.Ports[p].Info.LID, Position: uint8(at >> 28), Block: uint16(at & 0x1ff), Table: table}
		emit(r.Append(nil))
	}
}

func (a *administration) eachSMInfo(p int32, emit func([]byte)) {
	s := a.sm
	var info mad.SMInfo
	if p == s.live.Self {
		info = s.smInfo()
	} else if o := s.others[s.live.Ports[p].GUID]; o != nil {
		info = o.info
	} else {
		return
	}
	info.SMKey = 0
	r := mad.SMInfoRecord{LID: s.live.Ports[p].Info.LID, Info: info}
	emit(pad(r.Append(nil), 32))
}

func (a *administration) eachPKeys(p int32, emit func([]byte)) {
	n := a.sm.live
	n.managed(p, func(q int32) {
		keys := n.Ports[q].PKeys
		for b := 0; b*32 < len(keys); b++ {
			r := mad.PKeyTableRecord{LID: n.Ports[p].Info.LID, Block: uint16(b), Port: n.Ports[q].Num}
			copy(r.Table[:], keys[b*32:])
			emit(r.Append(nil))
		}
	})
}

// eachSLtoVL shows the mappings of all pairs of ports. Those that this manager has not set are zeros, as OpenSM has it.
func (a *administration) eachSLtoVL(p int32, emit func([]byte)) {
	n, qos := a.sm.live, a.sm.qos()
	one := func(out *Port, in uint8) {
		r := mad.SLtoVLRecord{LID: n.Ports[p].Info.LID, InPort: in, OutPort: out.Num}
		if qos != nil && out.Num != 0 && out.Peer != none {
			r.Table = a.sm.mappingOf(n, out)
		}
		emit(r.Append(nil))
	}
	if !n.isSwitch(p) {
		one(&n.Ports[p], 0)
		return
	}
	n.managed(p, func(out int32) {
		n.managed(p, func(in int32) { one(&n.Ports[out], n.Ports[in].Num) })
	})
}

// eachVLArb shows the tables of arbitration. Those that this manager has not set are zeros, as OpenSM has it.
func (a *administration) eachVLArb(p int32, emit func([]byte)) {
	n, qos := a.sm.live, a.sm.qos()
	n.managed(p, func(q int32) {
		port := &n.Ports[q]
		for block := uint8(1); block <= 4; block++ {
			r := mad.VLArbRecord{LID: n.Ports[p].Info.LID, OutPort: port.Num, Block: block}
			if qos != nil && port.Num != 0 && port.Peer != none {
				r.Table = a.sm.arbitrationOf(n, port, uint32(block))
			}
			emit(r.Append(nil))
		}
	})
}

// sortedKeys are the keys of a table, in order.
func sortedKeys[V any](m map[uint32]V) []uint32 { return slices.Sorted(maps.Keys(m)) }
