package mad

// SMState is the state of a subnet manager (IBA 14.2.5.13).
type SMState uint8

// The states of a subnet manager.
const (
	SMNotActive   SMState = 0
	SMDiscovering SMState = 1
	SMStandby     SMState = 2
	SMMaster      SMState = 3
)

// String returns the specification's name of the state.
func (s SMState) String() string { return nameOf(uint8(s), "SM state", smStates[:]) }

var smStates = [...]string{"Not-active", "Discovering", "Standby", "Master"}

// Attribute modifiers of Set(SMInfo), with which subnet managers control each other (IBA 14.4.1).
const (
	SMHandover    = 1
	SMAcknowledge = 2
	SMDisable     = 3
	SMStandbyCtl  = 4
	SMDiscover    = 5
)

// SMInfoLen is the length of an SMInfo attribute.
const SMInfoLen = 21

// SMInfo is what a subnet manager tells about itself (IBA 14.2.5.13).
type SMInfo struct {
	GUID     uint64 // of the port
	SMKey    uint64
	ActCount uint32
	Priority uint8 // 4 bits
	State    SMState
}

// Append appends the attribute's SMInfoLen bytes to b.
func (s *SMInfo) Append(b []byte) []byte {
	b, p := zeros(b, SMInfoLen)
	put64(p[0:], s.GUID)
	put64(p[8:], s.SMKey)
	put32(p[16:], s.ActCount)
	p[20] = s.Priority<<4 | uint8(s.State)&15
	return b
}

// ParseSMInfo reads the attribute from the start of b. The error is an *Error.
func ParseSMInfo(b []byte) (SMInfo, error) {
	if err := atLeast("SMInfo", b, SMInfoLen); err != nil {
		return SMInfo{}, err
	}
	return SMInfo{GUID: get64(b), SMKey: get64(b[8:]), ActCount: get32(b[16:]), Priority: b[20] >> 4, State: SMState(b[20] & 15)}, nil
}
