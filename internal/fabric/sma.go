package fabric

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

// agent lets the agents of a port answer a packet in place. own is the port with the node's LID, in the
// one where the packet arrived. False: it is not for them. An agent that does not answer sets the method
// to zero.
func (f *Fabric) agent(now clock.Time, own, in *port, p *Packet) bool {
	switch p.MAD[1] {
	case mad.ClassSubnetLID, mad.ClassSubnetDir:
		return f.sma(now, own, in, &p.MAD)
	case mad.ClassPerf:
		return f.pma(now, own, in, &p.MAD)
	case classCongestion:
		return congestion(&p.MAD)
	case classVendorPing:
		return vendorPing(&f.nodes[own.node], &p.MAD)
	}
	return false
}

// silent sets the method to zero: the agent does not answer.
func silent(b *[mad.Len]byte) bool {
	b[3] = 0
	return true
}

// answer turns a request into its response, with the data now in it.
func answer(b *[mad.Len]byte, status uint16) bool {
	b[3] = mad.MethodGetResp
	binary.BigEndian.PutUint16(b[atStatus:], status)
	return true
}

// sma is the subnet management agent (IBA 14.2). SMInfo, and everything other than Get and Set, is left to
// a program at the port.
func (f *Fabric) sma(now clock.Time, own, in *port, b *[mad.Len]byte) bool {
	attribute, method := binary.BigEndian.Uint16(b[16:]), b[3]
	if method == mad.MethodTrapRepress {
		if f.checkMKey(now, own, in, b) {
			f.repressed(own, binary.BigEndian.Uint64(b[8:]))
		}
		return silent(b)
	}
	if method != mad.MethodGet && method != mad.MethodSet || attribute == mad.AttrSMInfo {
		return false
	}
	switch {
	case b[0] != mad.BaseVersion:
		return answer(b, mad.StatusBadVersion)
	case b[2] != mad.ClassVersionSMP:
		return answer(b, mad.StatusBadVersion)
	case !f.checkMKey(now, own, in, b):
		return silent(b)
	}
	r := smaRequest{now: now, node: &f.nodes[own.node], own: own, in: in, set: method == mad.MethodSet,
		modifier: binary.BigEndian.Uint32(b[20:]), data: b[atData : atData+mad.SMPDataLen : atData+mad.SMPDataLen]}
	r.known = own.info.MKey == 0 || own.info.MKey == binary.BigEndian.Uint64(b[atMKey:])
	if r.set {
		f.touch(own)
	}
	return answer(b, f.attribute(&r, attribute))
}

// smaRequest is a Get or Set of an attribute.
type smaRequest struct {
	now      clock.Time
	node     *node
	own, in  *port // see agent
	set      bool
	known    bool // the M_Key is right
	modifier uint32
	data     []byte // the attribute, replaced by that of the response
}

// attribute answers a request for an attribute and returns the status.
func (f *Fabric) attribute(r *smaRequest, id uint16) uint16 {
	switch id {
	case mad.AttrNodeDescription:
		return f.nodeDescription(r)
	case mad.AttrNodeInfo:
		return f.smaNodeInfo(r)
	case mad.AttrSwitchInfo:
		return f.switchInfo(r)
	case mad.AttrGUIDInfo:
		return f.guidInfo(r)
	case mad.AttrPortInfo:
		return f.portInfo(r)
	case mad.AttrPKeyTable:
		return f.pkeyTable(r)
	case mad.AttrSLtoVLMappingTable:
		return f.slToVL(r)
	case mad.AttrVLArbitrationTable:
		return f.vlArbitration(r)
	case mad.AttrLinearForwardingTable:
		return f.linearForwarding(r)
	case mad.AttrMulticastForwardingTable:
		return f.multicastForwarding(r)
	case mad.AttrVendorDiag:
		return f.vendorDiag(r)
	case mad.AttrLEDInfo:
		return f.ledInfo(r)
	case mad.AttrMellanoxExtendedPortInfo:
		return f.extendedPortInfo(r)
	}
	return f.virtualAttribute(r, id)
}

func (f *Fabric) nodeDescription(r *smaRequest) uint16 {
	if r.set {
		return mad.StatusMethodUnsupported
	}
	copy(r.data, r.node.description[:])
	return mad.StatusOK
}

func (f *Fabric) smaNodeInfo(r *smaRequest) uint16 {
	if r.set {
		return mad.StatusMethodUnsupported
	}
	clear(r.data)
	n := f.nodeInfo(r.node, r.in)
	n.Append(r.data[:0])
	return mad.StatusOK
}

func (f *Fabric) nodeInfo(n *node, in *port) mad.NodeInfo {
	keys := uint16(adapterPKeys)
	if n.kind == mad.NodeSwitch {
		keys = switchPKeys
	}
	return mad.NodeInfo{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersionSMP, NodeType: n.kind, NumPorts: n.count,
		SystemImageGUID: n.image, NodeGUID: n.guid, PortGUID: f.own(n, in).guid, PartitionCap: keys,
		DeviceID: n.device, Revision: revision, LocalPortNum: in.number, VendorID: n.vendor,
	}
}

// target returns the port that the attribute modifier selects. At nodes other than switches 0 means the
// port asked.
func (f *Fabric) target(r *smaRequest, number uint32) *port {
	if number > uint32(r.node.count) {
		return nil
	}
	if number == 0 {
		return r.own
	}
	return &f.ports[uint32(r.node.first)+number]
}

// vendorDiag answers VendorDiag: no further page, and no fault (IBA 14.2.5.14).
func (f *Fabric) vendorDiag(r *smaRequest) uint16 {
	if r.set {
		return mad.StatusMethodUnsupported
	}
	clear(r.data)
	return mad.StatusOK
}

// ledOn is the first bit of LEDInfo.
const ledOn = 0x80

// ledInfo answers LEDInfo: whether the port's light is on, to help somebody find it (IBA 14.2.5.15).
func (f *Fabric) ledInfo(r *smaRequest) uint16 {
	p := f.target(r, r.modifier)
	if p == nil {
		return mad.StatusInvalidField
	}
	if r.set {
		p.led = r.data[0]&ledOn != 0
	}
	clear(r.data)
	if p.led {
		r.data[0] = ledOn
	}
	return mad.StatusOK
}
