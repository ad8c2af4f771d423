package subnet

import (
	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// office is a manager as seen by its administration.
type office struct{ s *SM }

var _ administration.Manager = office{}

func (o office) Master() bool { return o.s.state == mad.SMMaster }

func (o office) Tables(node uint64) (unicast []byte, multicast map[uint32]mad.MulticastForwardingTable) {
	t := o.s.tables[node]
	if t == nil {
		return nil, nil
	}
	return t.lft, t.mft
}

func (o office) SMInfo(p int32) (mad.SMInfo, bool) {
	if p == o.s.live.Self {
		return o.s.smInfo(), true
	}
	if other := o.s.others[o.s.live.Ports[p].GUID]; other != nil {
		return other.info, true
	}
	return mad.SMInfo{}, false
}

func (o office) SLtoVL(p int32) (t mad.SLtoVLMappingTable) {
	if port := &o.s.live.Ports[p]; o.setsLanes(port) {
		t = o.s.mappingOf(o.s.live, port)
	}
	return t
}

func (o office) VLArbitration(p int32, block uint8) (t mad.VLArbitrationTable) {
	if port := &o.s.live.Ports[p]; o.setsLanes(port) {
		t = o.s.arbitrationOf(o.s.live, port, uint32(block))
	}
	return t
}

// setsLanes reports whether the manager sets the SL-to-VL and arbitration tables of a port.
func (o office) setsLanes(port *topology.Port) bool {
	return port.Num != 0 && port.Peer != topology.None && o.s.qos() != nil
}

func (o office) Send(to administration.Address, m *mad.SA) {
	if len(o.s.answers) >= maxAnswers {
		return
	}
	p := Packet{LID: to.LID, QPN: to.QPN, LocalQPN: 1, SL: to.SL, PKeyIndex: to.PKeyIndex}
	m.Append(p.MAD[:0])
	o.s.answers = append(o.s.answers, p)
}

func (o office) Crowded() bool { return len(o.s.answers) >= maxAnswers/2 }

func (o office) WrongKey(from ib.LID, key uint64) {
	o.s.say(EventTrap, "request from LID %d to the subnet administration with the wrong SM_Key %#x", from, key)
}

// client returns the sender or destination of an administration MAD.
func (p *Packet) client() administration.Address {
	return administration.Address{LID: p.LID, QPN: p.QPN, SL: p.SL, PKeyIndex: p.PKeyIndex}
}
