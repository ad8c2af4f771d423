package mad

import "fmt"

// ClassVersionSA is the class version of subnet administration.
const ClassVersionSA = 2

// Methods of subnet administration besides the common ones (IBA 15.2.2). A Set is answered by
// MethodGetResp.
const (
	MethodReport       = 0x06 // a notice that was subscribed to
	MethodReportResp   = 0x86
	MethodGetTable     = 0x12
	MethodGetTableResp = 0x92
	MethodGetMulti     = 0x14
	MethodGetMultiResp = 0x94
	MethodDelete       = 0x15
	MethodDeleteResp   = 0x95
)

// Attribute IDs of subnet administration (IBA 15.2.5).
const (
	AttrInformInfo       = 0x0003
	AttrNodeRecord       = 0x0011
	AttrPortInfoRecord   = 0x0012
	AttrSLtoVLRecord     = 0x0013
	AttrSwitchInfoRecord = 0x0014
	AttrLFTRecord        = 0x0015
	AttrMFTRecord        = 0x0017
	AttrSMInfoRecord     = 0x0018
	AttrLinkRecord       = 0x0020
	AttrGUIDInfoRecord   = 0x0030
	AttrServiceRecord    = 0x0031
	AttrPKeyTableRecord  = 0x0033
	AttrPathRecord       = 0x0035
	AttrVLArbRecord      = 0x0036
	AttrMCMemberRecord   = 0x0038
	AttrMultiPathRecord  = 0x003a
	AttrInformInfoRecord = 0x00f3
)

// Statuses of subnet administration, in the class-specific half of the status (IBA 15.2.3).
const (
	SANoResources            = 0x0100
	SARequestInvalid         = 0x0200
	SANoRecords              = 0x0300
	SATooManyRecords         = 0x0400
	SAInvalidGID             = 0x0500
	SAInsufficientComponents = 0x0600
	SARequestDenied          = 0x0700
)

// Capabilities in the ClassPortInfo of subnet administration (IBA 15.2.1.1).
const (
	SACapTrapSupported         = 1 << 0
	SACapGetSetSupported       = 1 << 1
	SACapOptionalRecords       = 1 << 8
	SACapMulticast             = 1 << 9
	SACapMultiPath             = 1 << 10
	SACapReinit                = 1 << 11
	SACapPortInfoCapMaskMatch  = 1 << 13
	SACap2QoS                  = 1 << 1
	SACap2ReversePathPKey      = 1 << 2
	SACap2FullPortInfo         = 1 << 6
	SACap2ExtendedSpeeds       = 1 << 7
	SACap2MulticastServiceRecs = 1 << 8
)

const (
	saSMKey     = RMPPHeaderEnd
	saOffset    = 44
	saMask      = 48
	saHeaderEnd = 56
)

// SADataLen is the length of the attribute in one MAD of subnet administration.
const SADataLen = Len - saHeaderEnd

// saRepeated is how much of the SA header is repeated in every segment and counts as payload (IBA
// 15.2.1.1).
const saRepeated = saHeaderEnd - RMPPHeaderEnd

// SA is a MAD of subnet administration (IBA 15.2.1.1).
type SA struct {
	Header
	RMPP          RMPP
	SMKey         uint64
	AttrOffset    uint16 // in tables: length of a record in 8-byte words
	ComponentMask uint64 // which components of a request are given
	Data          [SADataLen]byte
}

// NewSA returns a request without components.
func NewSA(method uint8, attribute uint16, modifier uint32, transaction uint64) SA {
	return SA{Header: Header{BaseVersion: BaseVersion, Class: ClassSubnetAdm, ClassVersion: ClassVersionSA, Method: method,
		TransactionID: transaction, AttributeID: attribute, AttributeModifier: modifier}}
}

// Append appends the MAD's Len bytes to b.
func (s *SA) Append(b []byte) []byte {
	b = s.Header.Append(b)
	b, p := zeros(b, Len-HeaderLen)
	s.RMPP.put(p)
	put64(p[saSMKey-HeaderLen:], s.SMKey)
	put16(p[saOffset-HeaderLen:], s.AttrOffset)
	put64(p[saMask-HeaderLen:], s.ComponentMask)
	copy(p[saHeaderEnd-HeaderLen:], s.Data[:])
	return b
}

// ParseSA reads a MAD of subnet administration. It checks length, base version, class and class version.
// The error is an *Error.
func ParseSA(b []byte) (SA, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return SA{}, err
	}
	switch {
	case h.Class != ClassSubnetAdm:
		return SA{}, &Error{"management class", uint64(h.Class), "0x3, subnet administration"}
	case h.ClassVersion != ClassVersionSA:
		return SA{}, &Error{"class version", uint64(h.ClassVersion), "2"}
	}
	return SA{Header: h, RMPP: getRMPP(b[HeaderLen:]), SMKey: get64(b[saSMKey:]), AttrOffset: get16(b[saOffset:]),
		ComponentMask: get64(b[saMask:]), Data: [SADataLen]byte(b[saHeaderEnd:])}, nil
}

// StatusText returns the specification's name of a status of subnet administration.
func StatusText(status uint16) string {
	switch status {
	case StatusOK:
		return "success"
	case SANoResources:
		return "ERR_NO_RESOURCES"
	case SARequestInvalid:
		return "ERR_REQ_INVALID"
	case SANoRecords:
		return "ERR_NO_RECORDS"
	case SATooManyRecords:
		return "ERR_TOO_MANY_RECORDS"
	case SAInvalidGID:
		return "ERR_REQ_INVALID_GID"
	case SAInsufficientComponents:
		return "ERR_REQ_INSUFFICIENT_COMPONENTS"
	case SARequestDenied:
		return "ERR_REQ_DENIED"
	}
	return fmt.Sprintf("status %#04x", status)
}
