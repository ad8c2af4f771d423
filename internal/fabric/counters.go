package fabric

import "github.com/softvpi/softvpi/wire/mad"

// counter is a place in counters.
type counter uint8

// The counters that something here can raise. Traffic is counted in traffic, which all ports have.
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
	counterCount
)

// counterNames are the fields of performance attributes that show them.
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
}

// counters are what a port has counted beside its traffic. Of traffic they keep what the
// attributes of 32 and of 64 bits do not show any more.
type counters struct {
	value       [counterCount]uint64
	short, long traffic
}

// traffic is what a port has sent and received, data in units of four bytes.
type traffic struct{ xmitData, rcvData, xmitPkts, rcvPkts uint64 }

// packetWords is the length of a management packet without its last CRC: LRH, BTH, DETH, MAD and ICRC.
const packetWords = (8 + 12 + 8 + mad.Len + 4) / 4

func (t *traffic) sent()     { t.xmitPkts++; t.xmitData += packetWords }
func (t *traffic) received() { t.rcvPkts++; t.rcvData += packetWords }

func (p *port) count(c counter, n uint64) { p.all().value[c] += n }

func (p *port) all() *counters {
	if p.counters == nil {
		p.counters = &counters{}
	}
	return p.counters
}

// counted are the fields of an attribute that show counters, in the order of the bits of CounterSelect.
type counted struct {
	field   mad.PMAField
	counter counter
	traffic func(*traffic) *uint64 // in place of counter
	fixed   bool                   // always zero
}

var trafficNames = map[string]func(*traffic) *uint64{
	"PortXmitData": func(t *traffic) *uint64 { return &t.xmitData }, "PortRcvData": func(t *traffic) *uint64 { return &t.rcvData },
	"PortXmitPkts": func(t *traffic) *uint64 { return &t.xmitPkts }, "PortRcvPkts": func(t *traffic) *uint64 { return &t.rcvPkts },
	"PortUnicastXmitPkts": func(t *traffic) *uint64 { return &t.xmitPkts }, "PortUnicastRcvPkts": func(t *traffic) *uint64 { return &t.rcvPkts },
}

// shown are the counting fields of the attributes that ports here have. What is in no list of names is always zero: nothing
// here counts it yet.
var shown = func() map[uint16][]counted {
	m := map[uint16][]counted{}
	for _, a := range []*mad.PMAttribute{mad.PortCounters, mad.PortRcvErrorDetails, mad.PortXmitDiscardDetails, mad.PortOpRcvCounters,
		mad.PortFlowCtlCounters, mad.PortVLOpPackets, mad.PortVLOpData, mad.PortVLXmitFlowCtlUpdateErrors, mad.PortVLXmitWaitCounters,
		mad.PortCountersExtended} {
		for _, x := range a.Fields {
			switch {
			case x.Name == "PortSelect" || x.Name == "CounterSelect" || x.Name == "CounterSelect2":
				continue
			case a == mad.PortCountersExtended && trafficNames[x.Name] == nil && x.Name[:len("PortMulti")] != "PortMulti":
				continue // errors of 64 bits are not there
			}
			c, known := counterNames[x.Name]
			m[a.ID] = append(m[a.ID], counted{x, c, trafficNames[x.Name], !known && trafficNames[x.Name] == nil})
		}
	}
	return m
}()
