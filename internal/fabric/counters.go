package fabric

import "github.com/softvpi/softvpi/wire/mad"

// counter is an index into counters.
type counter uint8

// The counters that something in this package can raise. Traffic is counted separately, in traffic, which
// all ports have, and in flow.
const (
	ctrSymbolErrors counter = iota
	ctrLinkRecovery
	ctrLinkDowned
	ctrRcvErrors
	ctrRcvRemotePhysical
	ctrSwitchRelayErrors
	ctrXmitDiscards
	ctrXmitConstraint
	ctrRcvConstraint
	ctrLinkIntegrity
	ctrBufferOverrun
	ctrQP1Dropped
	ctrVL15Dropped
	ctrXmitWait
	ctrLocalPhysical
	ctrMalformed
	ctrOverrunPackets
	ctrDLIDMapping
	ctrVLMapping
	ctrLooping
	ctrInactiveDiscards
	ctrMTUDiscards
	ctrLifetimeDiscards
	ctrHOQDiscards
	ctrUncorrectable
	counterCount
)

// counterNames maps the fields of performance attributes to their counters.
var counterNames = map[string]counter{
	"SymbolErrorCounter": ctrSymbolErrors, "LinkErrorRecoveryCounter": ctrLinkRecovery, "LinkDownedCounter": ctrLinkDowned,
	"PortRcvErrors": ctrRcvErrors, "PortRcvRemotePhysicalErrors": ctrRcvRemotePhysical, "PortRcvSwitchRelayErrors": ctrSwitchRelayErrors,
	"PortXmitDiscards": ctrXmitDiscards, "PortXmitConstraintErrors": ctrXmitConstraint, "PortRcvConstraintErrors": ctrRcvConstraint,
	"LocalLinkIntegrityErrors": ctrLinkIntegrity, "ExcessiveBufferOverrunErrors": ctrBufferOverrun, "QP1Dropped": ctrQP1Dropped,
	"VL15Dropped": ctrVL15Dropped, "PortXmitWait": ctrXmitWait,
	"PortLocalPhysicalErrors": ctrLocalPhysical, "PortMalformedPktErrors": ctrMalformed, "PortBufferOverrunErrors": ctrOverrunPackets,
	"PortDLIDMappingErrors": ctrDLIDMapping, "PortVLMappingErrors": ctrVLMapping, "PortLoopingErrors": ctrLooping,
	"PortInactiveDiscards": ctrInactiveDiscards, "PortNeighborMTUDiscards": ctrMTUDiscards,
	"PortSwLifetimeLimitDiscards": ctrLifetimeDiscards, "PortSwHOQLifetimeLimitDiscards": ctrHOQDiscards,
	"FECUncorrectableBlockCtrLane0": ctrUncorrectable,
}

// counters holds what a port counts besides its traffic, once as most attributes show it and once as
// PortCountersExtended does. Of the traffic they hold the part that has been reset and so is no longer
// shown, for attributes of 32 and of 64 bits.
type counters struct {
	value, wide [counterCount]uint64
	short, long [sightCount]uint64
}

// traffic counts what a port has sent and received, data in units of four bytes.
type traffic struct{ xmitData, rcvData, xmitPkts, rcvPkts, xmitMulti, rcvMulti uint64 }

// sight is a traffic counter as attributes show it.
type sight uint8

const (
	sightXmitData sight = iota
	sightRcvData
	sightXmitPkts
	sightRcvPkts
	sightXmitUnicast
	sightRcvUnicast
	sightXmitMulticast
	sightRcvMulticast
	sightCount
)

func (t *traffic) seen(s sight) uint64 {
	switch s {
	case sightXmitData:
		return t.xmitData
	case sightRcvData:
		return t.rcvData
	case sightXmitPkts:
		return t.xmitPkts
	case sightRcvPkts:
		return t.rcvPkts
	case sightXmitUnicast:
		return t.xmitPkts - t.xmitMulti
	case sightRcvUnicast:
		return t.rcvPkts - t.rcvMulti
	case sightXmitMulticast:
		return t.xmitMulti
	}
	return t.rcvMulti
}

var sightNames = map[string]sight{
	"PortXmitData": sightXmitData, "PortRcvData": sightRcvData, "PortXmitPkts": sightXmitPkts, "PortRcvPkts": sightRcvPkts,
	"PortUnicastXmitPkts": sightXmitUnicast, "PortUnicastRcvPkts": sightRcvUnicast,
	"PortMulticastXmitPkts": sightXmitMulticast, "PortMulticastRcvPkts": sightRcvMulticast,
}

// flow holds a port's counts by service level and by virtual lane. Only ports that carry data or general
// services have it.
type flow struct{ xmitSL, rcvSL, waitVL [16]uint64 }

// flowTables are the attributes that show flow.
var flowTables = map[*mad.PMAttribute]func(*flow) *[16]uint64{
	mad.PortXmitDataSL:         func(f *flow) *[16]uint64 { return &f.xmitSL },
	mad.PortRcvDataSL:          func(f *flow) *[16]uint64 { return &f.rcvSL },
	mad.PortVLXmitWaitCounters: func(f *flow) *[16]uint64 { return &f.waitVL },
}

func (p *port) flows() *flow {
	if p.flow == nil {
		p.flow = &flow{}
	}
	return p.flow
}

// packetWords is the length of a management packet without its variant CRC: LRH, BTH, DETH, MAD and ICRC.
const packetWords = (8 + 12 + 8 + mad.Len + 4) / 4

// sentManagement counts a management packet that the port has sent. Subnet management has no service
// level.
func (p *port) sentManagement(q *Packet) {
	p.traffic.xmitPkts++
	p.traffic.xmitData += packetWords
	if q.DQP != 0 {
		p.flows().xmitSL[q.SL&15] += packetWords
	}
}

func (p *port) gotManagement(q *Packet) {
	p.traffic.rcvPkts++
	p.traffic.rcvData += packetWords
	if q.DQP != 0 {
		p.flows().rcvSL[q.SL&15] += packetWords
	}
}

// sentData counts a data packet that the port has sent.
func (p *port) sentData(q *Parcel) {
	h, words := q.lrh(), uint64(q.length/4)
	p.traffic.xmitPkts++
	p.traffic.xmitData += words
	if multicast(h.DLID()) {
		p.traffic.xmitMulti++
	}
	p.flows().xmitSL[h.SL()] += words
}

func (p *port) gotData(q *Parcel) {
	h, words := q.lrh(), uint64(q.length/4)
	p.traffic.rcvPkts++
	p.traffic.rcvData += words
	if multicast(h.DLID()) {
		p.traffic.rcvMulti++
	}
	p.flows().rcvSL[h.SL()] += words
}

// gotDamaged counts a packet that arrived with a wrong CRC.
func (p *port) gotDamaged() {
	p.count(ctrSymbolErrors, 1)
	p.count(ctrRcvErrors, 1)
	p.count(ctrLocalPhysical, 1)
	if p.info.LinkSpeedExtActive != 0 || p.info.LinkSpeedExt2Active != 0 { // these speeds have forward error correction
		p.count(ctrUncorrectable, 1)
	}
}

func (p *port) count(c counter, n uint64) {
	all := p.all()
	all.value[c] += n
	all.wide[c] += n
}

func (p *port) all() *counters {
	if p.counters == nil {
		p.counters = &counters{}
	}
	return p.counters
}

// source is where the value of a field is counted.
type source uint8

const (
	fromNothing source = iota // always zero: nothing in this package counts it
	fromErrors
	fromTraffic
	fromFlow
)

// counted is a field of an attribute that shows a counter.
type counted struct {
	field  mad.PMAField
	from   source
	index  uint8 // a counter, a sight, or a service level or lane
	table  func(*flow) *[16]uint64
	second bool  // selected by CounterSelect2
	bit    uint8 // of CounterSelect or CounterSelect2
}

// shown lists the counter fields of the attributes that ports in this package have.
var shown = func() map[uint16][]counted {
	m := map[uint16][]counted{}
	for _, a := range []*mad.PMAttribute{mad.PortCounters, mad.PortRcvErrorDetails, mad.PortXmitDiscardDetails, mad.PortOpRcvCounters,
		mad.PortFlowCtlCounters, mad.PortVLOpPackets, mad.PortVLOpData, mad.PortVLXmitFlowCtlUpdateErrors, mad.PortVLXmitWaitCounters,
		mad.PortCountersExtended, mad.PortExtendedSpeedsCounters, mad.PortXmitDataSL, mad.PortRcvDataSL} {
		m[a.ID] = fieldsOf(a)
	}
	return m
}()

func fieldsOf(a *mad.PMAttribute) (list []counted) {
	first, second, later := uint8(0), uint8(0), false
	for _, x := range a.Fields {
		switch x.Name {
		case "CounterSelect2":
			later = a == mad.PortCountersExtended // it selects the fields that follow
			continue
		case "PortSelect", "CounterSelect":
			continue
		}
		c := counted{field: x}
		if k, ok := counterNames[x.Name]; ok {
			c.from, c.index = fromErrors, uint8(k)
		} else if s, ok := sightNames[x.Name]; ok {
			c.from, c.index = fromTraffic, uint8(s)
		} else if t := flowTables[a]; t != nil {
			c.from, c.table, c.index = fromFlow, t, uint8(len(list))
		}
		switch {
		case a == mad.PortCounters && x.Name == "PortXmitWait": // these two were added later
			c.second, c.bit = true, 0
		case a == mad.PortCounters && x.Name == "QP1Dropped":
			c.second, c.bit = true, 1
		case later:
			c.second, c.bit = true, second
			second++
		default:
			c.bit = first
			first++
		}
		list = append(list, c)
	}
	return list
}
