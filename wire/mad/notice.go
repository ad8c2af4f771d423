package mad

import "github.com/softvpi/softvpi/wire/ib"

// Types of notices (IBA 13.4.8.2).
const (
	NoticeFatal         = 0
	NoticeUrgent        = 1
	NoticeSecurity      = 2
	NoticeSubnet        = 3
	NoticeInformational = 4
	NoticeEmpty         = 0x7f
)

// Trap numbers of the subnet management agent and of subnet administration (IBA 14.2.5.1).
const (
	TrapGIDInService      = 64
	TrapGIDOutOfService   = 65
	TrapMulticastCreated  = 66
	TrapMulticastDeleted  = 67
	TrapLinkStateChange   = 128
	TrapLinkIntegrity     = 129
	TrapBufferOverrun     = 130
	TrapFlowControl       = 131
	TrapCapabilityMask    = 144
	TrapSystemImageGUID   = 145
	TrapBadMKey           = 256
	TrapBadPKey           = 257
	TrapBadQKey           = 258
	TrapBadPKeySwitchPort = 259
)

// NoticeDetailsLen is the length of Notice.DataDetails.
const NoticeDetailsLen = 54

// NoticeLen is the length of a Notice in a subnet management packet, NoticeGIDLen that of the form with
// the issuer's GID, which subnet administration's reports carry.
const (
	NoticeLen    = 64
	NoticeGIDLen = 80
)

// Notice reports an event (IBA 13.4.8.2). The layout of DataDetails depends on the trap number: see the
// trap types, such as TrapPort.
type Notice struct {
	IsGeneric    bool
	Type         uint8  // 7 bits
	ProducerType uint32 // 24 bits: the NodeType, or 4 for a class manager; the vendor if IsGeneric is false
	TrapNumber   uint16 // the device if IsGeneric is false
	IssuerLID    ib.LID
	Toggle       bool
	Count        uint16 // 15 bits
	DataDetails  [NoticeDetailsLen]byte
	IssuerGID    ib.GID // see NoticeGIDLen
}

// ProducerClassManager is the producer type of notices of a class manager (IBA 13.4.8.2).
const ProducerClassManager = 4

// Append appends the NoticeLen bytes of the form without the issuer's GID to b.
func (n *Notice) Append(b []byte) []byte {
	b, p := zeros(b, NoticeLen)
	p[0] = flag(n.IsGeneric, 0x80) | n.Type&0x7f
	put24(p[1:], n.ProducerType)
	put16(p[4:], n.TrapNumber)
	put16(p[6:], uint16(n.IssuerLID))
	put16(p[8:], n.Count&0x7fff|uint16(flag(n.Toggle, 0x80))<<8)
	copy(p[10:], n.DataDetails[:])
	return b
}

// AppendWithGID appends the NoticeGIDLen bytes of the form with the issuer's GID to b.
func (n *Notice) AppendWithGID(b []byte) []byte { return append(n.Append(b), n.IssuerGID[:]...) }

// ParseNotice reads the attribute from the start of b, with the issuer's GID if b has at least
// NoticeGIDLen bytes. The error is an *Error.
func ParseNotice(b []byte) (Notice, error) {
	if err := atLeast("Notice", b, NoticeLen); err != nil {
		return Notice{}, err
	}
	n := Notice{
		IsGeneric: b[0]&0x80 != 0, Type: b[0] & 0x7f, ProducerType: get24(b[1:]), TrapNumber: get16(b[4:]),
		IssuerLID: ib.LID(get16(b[6:])), Toggle: b[8]&0x80 != 0, Count: get16(b[8:]) & 0x7fff,
		DataDetails: [NoticeDetailsLen]byte(b[10:]),
	}
	if len(b) >= NoticeGIDLen {
		n.IssuerGID = ib.GID(b[NoticeLen:])
	}
	return n, nil
}
