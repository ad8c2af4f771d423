package mad

import "github.com/softvpi/softvpi/wire/ib"

// MCMemberRecordLen is the length of a MCMemberRecord.
const MCMemberRecordLen = 52

// Components of a MCMemberRecord (IBA 15.2.5.17).
const (
	MemberMGID         = 1 << 0
	MemberPortGID      = 1 << 1
	MemberQKey         = 1 << 2
	MemberMLID         = 1 << 3
	MemberMTUSelector  = 1 << 4
	MemberMTU          = 1 << 5
	MemberTrafficClass = 1 << 6
	MemberPKey         = 1 << 7
	MemberRateSelector = 1 << 8
	MemberRate         = 1 << 9
	MemberLifeSelector = 1 << 10
	MemberLife         = 1 << 11
	MemberSL           = 1 << 12
	MemberFlowLabel    = 1 << 13
	MemberHopLimit     = 1 << 14
	MemberScope        = 1 << 15
	MemberJoinState    = 1 << 16
	MemberProxyJoin    = 1 << 17
)

// Bits of MCMemberRecord.JoinState.
const (
	JoinFull           = 1
	JoinNonMember      = 2
	JoinSendOnly       = 4
	JoinSendOnlyFull   = 8
	mcMemberRecordFlow = 44
)

// MCMemberRecord is a multicast group with one of its members (IBA 15.2.5.17).
type MCMemberRecord struct {
	MGID, PortGID ib.GID
	QKey          uint32
	MLID          ib.LID
	MTUSelector   uint8
	MTU           ib.MTU
	TrafficClass  uint8
	PKey          ib.PKey
	RateSelector  uint8
	Rate          uint8
	LifeSelector  uint8
	Life          uint8
	SL            uint8
	FlowLabel     uint32
	HopLimit      uint8
	Scope         uint8 // 4 bits
	JoinState     uint8 // 4 bits
	ProxyJoin     bool
}

// Append appends the record's MCMemberRecordLen bytes to b.
func (r *MCMemberRecord) Append(b []byte) []byte {
	b, p := zeros(b, MCMemberRecordLen)
	copy(p, r.MGID[:])
	copy(p[16:], r.PortGID[:])
	put32(p[32:], r.QKey)
	put16(p[36:], uint16(r.MLID))
	p[38], p[39] = r.MTUSelector<<6|uint8(r.MTU)&63, r.TrafficClass
	put16(p[40:], uint16(r.PKey))
	p[42], p[43] = r.RateSelector<<6|r.Rate&63, r.LifeSelector<<6|r.Life&63
	put32(p[mcMemberRecordFlow:], uint32(r.SL&15)<<28|r.FlowLabel&0xfffff<<8|uint32(r.HopLimit))
	p[48], p[49] = r.Scope<<4|r.JoinState&15, flag(r.ProxyJoin, 0x80)
	return b
}

// ParseMCMemberRecord reads the record from the start of b. The error is an *Error.
func ParseMCMemberRecord(b []byte) (r MCMemberRecord, err error) {
	if err = atLeast("MCMemberRecord", b, MCMemberRecordLen); err != nil {
		return r, err
	}
	w := get32(b[mcMemberRecordFlow:])
	return MCMemberRecord{
		MGID: ib.GID(b[:16]), PortGID: ib.GID(b[16:32]), QKey: get32(b[32:]), MLID: ib.LID(get16(b[36:])), MTUSelector: b[38] >> 6,
		MTU:          ib.MTU(b[38] & 63),
		TrafficClass: b[39], PKey: ib.PKey(get16(b[40:])), RateSelector: b[42] >> 6, Rate: b[42] & 63, LifeSelector: b[43] >> 6,
		Life: b[43] & 63,
		SL:   uint8(w >> 28), FlowLabel: w >> 8 & 0xfffff, HopLimit: uint8(w), Scope: b[48] >> 4, JoinState: b[48] & 15,
		ProxyJoin: b[49]&0x80 != 0,
	}, nil
}

// ServiceRecordLen is the length of a ServiceRecord.
const ServiceRecordLen = 176

// Components of a ServiceRecord (IBA 15.2.5.14).
const (
	ServiceComponentID    = 1 << 0
	ServiceComponentGID   = 1 << 1
	ServiceComponentPKey  = 1 << 2
	ServiceComponentLease = 1 << 4
	ServiceComponentKey   = 1 << 5
	ServiceComponentName  = 1 << 6
	ServiceComponentData8 = 1 << 7 // for the first byte of the data, and so on
)

// ServiceRecord is a service that a port offers (IBA 15.2.5.14).
type ServiceRecord struct {
	ID    uint64
	GID   ib.GID
	PKey  ib.PKey
	Lease uint32 // seconds; 0xffffffff: forever
	Key   [16]byte
	Name  [64]byte
	Data  [64]byte // 16 bytes, 8 words of 16 bits, 4 of 32, 2 of 64
}

// Append appends the record's ServiceRecordLen bytes to b.
func (r *ServiceRecord) Append(b []byte) []byte {
	b, p := zeros(b, ServiceRecordLen)
	put64(p, r.ID)
	copy(p[8:], r.GID[:])
	put16(p[24:], uint16(r.PKey))
	put32(p[28:], r.Lease)
	copy(p[32:], r.Key[:])
	copy(p[48:], r.Name[:])
	copy(p[112:], r.Data[:])
	return b
}

// ParseServiceRecord reads the record from the start of b. The error is an *Error.
func ParseServiceRecord(b []byte) (r ServiceRecord, err error) {
	if err = atLeast("ServiceRecord", b, ServiceRecordLen); err != nil {
		return r, err
	}
	return ServiceRecord{ID: get64(b), GID: ib.GID(b[8:24]), PKey: ib.PKey(get16(b[24:])), Lease: get32(b[28:]),
		Key: [16]byte(b[32:]), Name: [64]byte(b[48:]), Data: [64]byte(b[112:])}, nil
}

// InformInfoLen is the length of an InformInfo.
const InformInfoLen = 36

// InformInfo subscribes to notices (IBA 13.4.8.3).
type InformInfo struct {
	GID              ib.GID
	LIDBegin, LIDEnd ib.LID // LIDBegin 0xffff: all
	IsGeneric        bool
	Subscribe        bool
	Type             uint16 // 0xffff: all
	TrapNumber       uint16 // or device; 0xffff: all
	QPN              ib.QPN
	RespTime         uint8  // 5 bits
	ProducerType     uint32 // 24 bits, or vendor; 0xffffff: all
}

// Append appends the attribute's InformInfoLen bytes to b.
func (r *InformInfo) Append(b []byte) []byte {
	b, p := zeros(b, InformInfoLen)
	copy(p, r.GID[:])
	put16(p[16:], uint16(r.LIDBegin))
	put16(p[18:], uint16(r.LIDEnd))
	p[22], p[23] = flag(r.IsGeneric, 1), flag(r.Subscribe, 1)
	put16(p[24:], r.Type)
	put16(p[26:], r.TrapNumber)
	put24(p[28:], uint32(r.QPN))
	p[31] = r.RespTime & 31
	put24(p[33:], r.ProducerType)
	return b
}

// ParseInformInfo reads the attribute from the start of b. The error is an *Error.
func ParseInformInfo(b []byte) (r InformInfo, err error) {
	if err = atLeast("InformInfo", b, InformInfoLen); err != nil {
		return r, err
	}
	if b[23] > 1 {
		return r, &Error{"InformInfo subscribe", uint64(b[23]), "0 or 1"}
	}
	return InformInfo{GID: ib.GID(b[:16]), LIDBegin: ib.LID(get16(b[16:])), LIDEnd: ib.LID(get16(b[18:])), IsGeneric: b[22] != 0,
		Subscribe: b[23] == 1,
		Type:      get16(b[24:]), TrapNumber: get16(b[26:]), QPN: getQPN(b[28:]), RespTime: b[31] & 31, ProducerType: get24(b[33:])}, nil
}

// InformInfoRecordLen is the length of an InformInfoRecord.
const InformInfoRecordLen = 60

// InformInfoRecord is a subscription (IBA 15.2.5.12).
type InformInfoRecord struct {
	SubscriberGID ib.GID
	Enum          uint16
	Info          InformInfo
}

// Append appends the record's InformInfoRecordLen bytes to b.
func (r *InformInfoRecord) Append(b []byte) []byte {
	b = append(b, r.SubscriberGID[:]...)
	b = append(b, byte(r.Enum>>8), byte(r.Enum), 0, 0, 0, 0, 0, 0)
	return r.Info.Append(b)
}

// ParseInformInfoRecord reads the record from the start of b. The error is an *Error.
func ParseInformInfoRecord(b []byte) (r InformInfoRecord, err error) {
	if err = atLeast("InformInfoRecord", b, InformInfoRecordLen); err != nil {
		return r, err
	}
	r.SubscriberGID, r.Enum = ib.GID(b[:16]), get16(b[16:])
	r.Info, err = ParseInformInfo(b[24:])
	return r, err
}
