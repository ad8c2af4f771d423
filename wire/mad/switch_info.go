package mad

// SwitchInfoLen is the length of a SwitchInfo attribute.
const SwitchInfoLen = 20

// SwitchInfo says what a switch can forward, and how it is configured (IBA 14.2.5.4).
type SwitchInfo struct {
	LinearFDBCap                      uint16 // entries of the linear forwarding table
	RandomFDBCap                      uint16
	MulticastFDBCap                   uint16
	LinearFDBTop                      uint16 // highest LID that the linear table forwards
	DefaultPort                       uint8
	DefaultMulticastPrimaryPort       uint8
	DefaultMulticastNotPrimaryPort    uint8
	LifeTimeValue                     uint8 // 5 bits: 4.096 us times two to the power of it; above 19 packets live forever
	PortStateChange                   bool  // a port's state has changed; setting it clears it
	OptimizedSLtoVLMappingProgramming uint8 // 2 bits
	LIDsPerPort                       uint16
	PartitionEnforcementCap           uint16
	InboundEnforcementCap             bool
	OutboundEnforcementCap            bool
	FilterRawInboundCap               bool
	FilterRawOutboundCap              bool
	EnhancedPort0                     bool
	MulticastFDBTop                   uint16
}

// Append appends the attribute's SwitchInfoLen bytes to b.
func (s *SwitchInfo) Append(b []byte) []byte {
	b, p := zeros(b, SwitchInfoLen)
	put16(p[0:], s.LinearFDBCap)
	put16(p[2:], s.RandomFDBCap)
	put16(p[4:], s.MulticastFDBCap)
	put16(p[6:], s.LinearFDBTop)
	p[8], p[9], p[10] = s.DefaultPort, s.DefaultMulticastPrimaryPort, s.DefaultMulticastNotPrimaryPort
	p[11] = s.LifeTimeValue<<3 | flag(s.PortStateChange, 4) | s.OptimizedSLtoVLMappingProgramming&3
	put16(p[12:], s.LIDsPerPort)
	put16(p[14:], s.PartitionEnforcementCap)
	p[16] = flag(s.InboundEnforcementCap, 0x80) | flag(s.OutboundEnforcementCap, 0x40) |
		flag(s.FilterRawInboundCap, 0x20) | flag(s.FilterRawOutboundCap, 0x10) | flag(s.EnhancedPort0, 0x08)
	put16(p[18:], s.MulticastFDBTop)
	return b
}

// ParseSwitchInfo reads the attribute from the start of b. The error is an *Error.
func ParseSwitchInfo(b []byte) (SwitchInfo, error) {
	if err := atLeast("SwitchInfo", b, SwitchInfoLen); err != nil {
		return SwitchInfo{}, err
	}
	return SwitchInfo{
		LinearFDBCap: get16(b), RandomFDBCap: get16(b[2:]), MulticastFDBCap: get16(b[4:]), LinearFDBTop: get16(b[6:]),
		DefaultPort: b[8], DefaultMulticastPrimaryPort: b[9], DefaultMulticastNotPrimaryPort: b[10],
		LifeTimeValue: b[11] >> 3, PortStateChange: b[11]&4 != 0, OptimizedSLtoVLMappingProgramming: b[11] & 3,
		LIDsPerPort: get16(b[12:]), PartitionEnforcementCap: get16(b[14:]),
		InboundEnforcementCap: b[16]&0x80 != 0, OutboundEnforcementCap: b[16]&0x40 != 0,
		FilterRawInboundCap: b[16]&0x20 != 0, FilterRawOutboundCap: b[16]&0x10 != 0, EnhancedPort0: b[16]&0x08 != 0,
		MulticastFDBTop: get16(b[18:]),
	}, nil
}
