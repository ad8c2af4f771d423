package mad

import "github.com/softvpi/softvpi/wire/ib"

// LAPPrivateData is the length of a LAP's private data.
const LAPPrivateData = 168

const (
	lapLocalCommID   = 24
	lapRemoteCommID  = 28
	lapRemoteQPN     = 36
	lapRemoteTimeout = 39
	lapLIDs          = 44
	lapLocalGID      = 48
	lapRemoteGID     = 64
	lapFlowLabel     = 80 // flow label, reserved, traffic class
	lapHopLimit      = 84
	lapPacketRate    = 85
	lapService       = 86
	lapPrivate       = 88
)

// LAP is the load alternate path message (IBA 12.8.1). The layout of its path differs from that of a REQ.
type LAP struct {
	TransactionID             uint64
	LocalCommID, RemoteCommID uint32
	RemoteQPN                 ib.QPN
	RemoteCMResponseTimeout   uint8 // 5 bits: see ib.CMTimeout
	Alternate                 Path
	PrivateData               [LAPPrivateData]byte
}

// Attribute implements Message.
func (*LAP) Attribute() uint16 { return AttrLAP }

// Transaction implements Message.
func (m *LAP) Transaction() uint64 { return m.TransactionID }

// Append implements Message.
func (m *LAP) Append(b []byte) []byte {
	b, p := start(b, AttrLAP, m.TransactionID)
	put32(p[lapLocalCommID:], m.LocalCommID)
	put32(p[lapRemoteCommID:], m.RemoteCommID)
	put24(p[lapRemoteQPN:], uint32(m.RemoteQPN))
	p[lapRemoteTimeout] = m.RemoteCMResponseTimeout << 3
	a := &m.Alternate
	put16(p[lapLIDs:], uint16(a.LocalLID))
	put16(p[lapLIDs+2:], uint16(a.RemoteLID))
	copy(p[lapLocalGID:], a.LocalGID[:])
	copy(p[lapRemoteGID:], a.RemoteGID[:])
	put32(p[lapFlowLabel:], a.FlowLabel<<12|uint32(a.TrafficClass))
	p[lapHopLimit] = a.HopLimit
	p[lapPacketRate] = a.PacketRate & 0x3f
	a.putService(p[lapService:])
	copy(p[lapPrivate:], m.PrivateData[:])
	return b
}

// ParseLAP reads a LAP. The error is an *Error.
func ParseLAP(b []byte) (LAP, error) {
	tid, err := open(b, AttrLAP)
	if err != nil {
		return LAP{}, err
	}
	m := LAP{
		TransactionID:           tid,
		LocalCommID:             get32(b[lapLocalCommID:]),
		RemoteCommID:            get32(b[lapRemoteCommID:]),
		RemoteQPN:               getQPN(b[lapRemoteQPN:]),
		RemoteCMResponseTimeout: b[lapRemoteTimeout] >> 3,
		Alternate: Path{
			LocalLID: ib.LID(get16(b[lapLIDs:])), RemoteLID: ib.LID(get16(b[lapLIDs+2:])),
			LocalGID: ib.GID(b[lapLocalGID:lapRemoteGID]), RemoteGID: ib.GID(b[lapRemoteGID:lapFlowLabel]),
			FlowLabel: get32(b[lapFlowLabel:]) >> 12, TrafficClass: b[lapFlowLabel+3],
			HopLimit: b[lapHopLimit], PacketRate: b[lapPacketRate] & 0x3f,
		},
		PrivateData: [LAPPrivateData]byte(b[lapPrivate:]),
	}
	m.Alternate.getService(b[lapService:])
	return m, nil
}
