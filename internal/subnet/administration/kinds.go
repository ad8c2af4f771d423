package administration

import (
	"maps"
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// field is where a component of a record is: its first bit and the number of bits. 0 bits: it is reserved,
// or not compared.
type field struct{ at, bits int }

// recordKind is a kind of record that is compared with a request component by component.
type recordKind struct {
	attr    uint16
	stride  int  // bytes from one record to the next
	trusted bool // only for requesters that know the key
	fields  []field
	each    func(a *SA, p int32, emit func(record []byte)) // emits the records that belong to an end port
}

// bytesAt returns consecutive fields of whole bytes.
func bytesAt(at int, lengths ...int) (f []field) {
	for _, n := range lengths {
		f = append(f, field{8 * at, 8 * n})
		at += n
	}
	return f
}

func fields(parts ...[]field) []field { return slices.Concat(parts...) }

var reserved = []field{{}}

// kinds lists the kinds of records, with their components in the order of the bits in the mask (IBA
// 15.2.5).
var kinds []recordKind

func init() {
	kinds = []recordKind{
		{mad.AttrNodeRecord, 112, false, fields(bytesAt(0, 2), reserved, bytesAt(4, 1, 1, 1, 1, 8, 8, 8, 2, 2, 4, 1, 3, 64)),
			(*SA).eachNode},
		{mad.AttrPortInfoRecord, 72, false, fields(bytesAt(0, 2, 1), reserved, portInfoFields(4)), (*SA).eachPort},
		{mad.AttrSLtoVLRecord, 16, false, bytesAt(0, 2, 1, 1), (*SA).eachSLtoVL},
		{mad.AttrSwitchInfoRecord, 24, false, fields(bytesAt(0, 2), reserved), (*SA).eachSwitch},
		{mad.AttrLFTRecord, 72, false, bytesAt(0, 2, 2), (*SA).eachLFT},
		{mad.AttrMFTRecord, 72, false, fields(bytesAt(0, 2), []field{{16, 4}, {}, {23, 9}}), (*SA).eachMFT},
		{mad.AttrSMInfoRecord, 32, false, fields(bytesAt(0, 2), reserved, bytesAt(4, 8, 8, 4), []field{{24 * 8, 4}, {24*8 + 4, 4}}),
			(*SA).eachSMInfo},
		{mad.AttrLinkRecord, 8, false, bytesAt(0, 2, 1, 1, 2), (*SA).eachLink},
		{mad.AttrGUIDInfoRecord, 72, false, fields(bytesAt(0, 2, 1), reserved, reserved, bytesAt(8, 8, 8, 8, 8, 8, 8, 8, 8)),
			(*SA).eachGUIDInfo},
		{mad.AttrPKeyTableRecord, 72, true, bytesAt(0, 2, 2, 1), (*SA).eachPKeys},
		{mad.AttrVLArbRecord, 72, false, bytesAt(0, 2, 1, 1), (*SA).eachVLArb},
		{mad.AttrInformInfoRecord, 64, false, fields(bytesAt(0, 16, 2), reserved, bytesAt(24, 16, 2, 2), reserved,
			bytesAt(46, 1, 1, 2, 2, 3), reserved), (*SA).eachSubscription},
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

// portInfoFields returns the components of a PortInfo (IBA 15.2.5.3): offset in bits and length of each.
func portInfoFields(at int) (f []field) {
	for _, x := range [][2]int{
		{0, 64}, {64, 64}, {128, 16}, {144, 16}, {160, 32}, {192, 16}, {208, 16}, {224, 8}, {232, 8}, {240, 8}, {248, 8}, {256, 4},
		{260, 4}, {264, 4}, {268, 4},
		{272, 2}, {274, 0}, {277, 3}, {280, 4}, {284, 4}, {288, 4}, {292, 4}, {296, 4}, {300, 4}, {304, 8}, {312, 8}, {320, 8}, {328, 4},
		{332, 4}, {336, 3}, {339, 5},
		{344, 4}, {348, 1}, {349, 1}, {350, 1}, {351, 1}, {352, 16}, {368, 16}, {384, 16}, {400, 8}, {408, 0}, {411, 5}, {416, 0}, {419, 5},
		{424, 4}, {428, 4},
	} {
		f = append(f, field{8*at + x[0], x[1]})
	}
	return f
}

// capabilityMask is the component of a PortInfoRecord that is compared bit by bit if bit 31 of the
// modifier is set (IBA 15.2.5.3).
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

// query is what is being searched for, and the end ports where it can be.
type query struct {
	template []byte
	ports    []int32
}

// query narrows a search by the LID, the first component of most records: any LID of a port finds it.
func (k *recordKind) query(a *SA, r *request) query {
	n := a.live
	q := query{template: slices.Clone(r.data)}
	for len(q.template) < k.stride {
		q.template = append(q.template, 0)
	}
	switch {
	case k.attr == mad.AttrInformInfoRecord:
		q.ports = []int32{n.Self} // they belong to no port in particular
	case r.sa.ComponentMask&1 != 0:
		lid := ib.LID(q.template[0])<<8 | ib.LID(q.template[1])
		if p := n.EndPortOfLID(lid); p != topology.None && a.visible(r, p) {
			p = n.Base(p) // records are those of ports; virtual ones have none
			q.ports = []int32{p}
			base := n.Ports[p].Info.LID
			q.template[0], q.template[1] = byte(base>>8), byte(base)
			if !n.IsSwitch(p) { // the LID determines the port, so any port number requested matches (as in OpenSM)
				switch k.attr {
				case mad.AttrVLArbRecord:
					q.template[2] = n.Ports[p].Num
				case mad.AttrSLtoVLRecord:
					q.template[2], q.template[3] = 0, n.Ports[p].Num
				}
			}
		}
	default:
		q.ports = slices.DeleteFunc(a.allVisible(r), func(p int32) bool { return n.Ports[p].Index != 0 })
	}
	return q
}

// pad extends a record to its size in a table.
func pad(b []byte, stride int) []byte {
	for len(b) < stride {
		b = append(b, 0)
	}
	return b
}

func (a *SA) eachNode(p int32, emit func([]byte)) {
	n := a.live
	node := &n.Nodes[n.Ports[p].Node]
	r := mad.NodeRecord{LID: n.Ports[p].Info.LID, Info: node.Info, Description: node.Desc}
	r.Info.PortGUID, r.Info.LocalPortNum = n.Ports[p].GUID, n.Ports[p].Num
	emit(pad(r.Append(nil), 112))
}

func (a *SA) eachPort(p int32, emit func([]byte)) {
	n := a.live
	n.Managed(p, func(q int32) {
		r := mad.PortInfoRecord{EndPortLID: n.Ports[p].Info.LID, PortNum: n.Ports[q].Num, Info: n.Ports[q].Info}
		r.Info.MKey = 0
		if r.Info.PortState == mad.PortDown { // all else is undefined (IBA 14.2.5.6)
			r.Info = mad.PortInfo{PortState: r.Info.PortState, PortPhysicalState: r.Info.PortPhysicalState}
		}
		emit(pad(r.Append(nil), 72))
	})
}

func (a *SA) eachLink(p int32, emit func([]byte)) {
	n := a.live
	n.Managed(p, func(q int32) {
		if o := n.Ports[q].Peer; o != topology.None {
			r := mad.LinkRecord{FromLID: n.Ports[p].Info.LID, FromPort: n.Ports[q].Num, ToPort: n.Ports[o].Num,
				ToLID: n.Ports[n.Entry(o)].Info.LID}
			emit(r.Append(nil))
		}
	})
}

func (a *SA) eachSwitch(p int32, emit func([]byte)) {
	n := a.live
	if info := n.Nodes[n.Ports[p].Node].SwInfo; info != nil {
		r := mad.SwitchInfoRecord{LID: n.Ports[p].Info.LID, Info: *info}
		emit(r.Append(nil))
	}
}

// tablesOf returns what is known about a switch's tables, nothing for other nodes.
func (a *SA) tablesOf(p int32) (unicast []byte, multicast map[uint32]mad.MulticastForwardingTable) {
	n := a.live
	if !n.IsSwitch(p) {
		return nil, nil
	}
	return a.m.Tables(n.Nodes[n.Ports[p].Node].Info.NodeGUID)
}

func (a *SA) eachLFT(p int32, emit func([]byte)) {
	lft, _ := a.tablesOf(p)
	for b := 0; (b+1)*routing.BlockLen <= len(lft); b++ {
		r := mad.LFTRecord{LID: a.live.Ports[p].Info.LID, Block: uint16(b), Table: mad.LinearForwardingTable(lft[b*routing.BlockLen:])}
		emit(r.Append(nil))
	}
}

func (a *SA) eachMFT(p int32, emit func([]byte)) {
	_, mft := a.tablesOf(p)
	for _, at := range slices.Sorted(maps.Keys(mft)) {
		table := mft[at]
		if table == (mad.MulticastForwardingTable{}) {
			continue
		}
		r := mad.MFTRecord{LID: a.live.Ports[p].Info.LID, Position: uint8(at >> 28), Block: uint16(at & 0x1ff), Table: table}
		emit(r.Append(nil))
	}
}

func (a *SA) eachSMInfo(p int32, emit func([]byte)) {
	info, there := a.m.SMInfo(p)
	if !there {
		return
	}
	info.SMKey = 0
	r := mad.SMInfoRecord{LID: a.live.Ports[p].Info.LID, Info: info}
	emit(pad(r.Append(nil), 32))
}

func (a *SA) eachPKeys(p int32, emit func([]byte)) {
	n := a.live
	n.Managed(p, func(q int32) {
		keys := n.Ports[q].PKeys
		for b := 0; b*32 < len(keys); b++ {
			r := mad.PKeyTableRecord{LID: n.Ports[p].Info.LID, Block: uint16(b), Port: n.Ports[q].Num}
			copy(r.Table[:], keys[b*32:])
			emit(r.Append(nil))
		}
	})
}

// eachSLtoVL emits the mappings of all pairs of ports. As in OpenSM, those that this manager has not set
// are zeros.
func (a *SA) eachSLtoVL(p int32, emit func([]byte)) {
	n := a.live
	one := func(out int32, in uint8) {
		r := mad.SLtoVLRecord{LID: n.Ports[p].Info.LID, InPort: in, OutPort: n.Ports[out].Num, Table: a.m.SLtoVL(out)}
		emit(r.Append(nil))
	}
	if !n.IsSwitch(p) {
		one(p, 0)
		return
	}
	n.Managed(p, func(out int32) {
		n.Managed(p, func(in int32) { one(out, n.Ports[in].Num) })
	})
}

// eachVLArb emits the arbitration tables. As in OpenSM, those that this manager has not set are zeros.
func (a *SA) eachVLArb(p int32, emit func([]byte)) {
	n := a.live
	n.Managed(p, func(q int32) {
		for block := uint8(1); block <= 4; block++ {
			r := mad.VLArbRecord{LID: n.Ports[p].Info.LID, OutPort: n.Ports[q].Num, Block: block, Table: a.m.VLArbitration(q, block)}
			emit(r.Append(nil))
		}
	})
}
