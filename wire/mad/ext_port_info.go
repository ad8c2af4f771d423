package mad

// ExtendedPortInfoLen is the length of the vendor's ExtendedPortInfo attribute.
const ExtendedPortInfoLen = 16

// FDR10 is the bit for FDR10 in the link speeds of an ExtendedPortInfo.
const FDR10 = 1

// ExtendedPortInfo is the vendor attribute of Mellanox devices (0xff90) for the speed FDR10, as
// infiniband-diags reads it. The attribute modifier is the port.
type ExtendedPortInfo struct {
	StateChangeEnable  uint8
	LinkSpeedSupported uint8
	LinkSpeedEnabled   uint8
	LinkSpeedActive    uint8
}

// Append appends the attribute's ExtendedPortInfoLen bytes to b.
func (e *ExtendedPortInfo) Append(b []byte) []byte {
	b, p := zeros(b, ExtendedPortInfoLen)
	p[3], p[7], p[11], p[15] = e.StateChangeEnable, e.LinkSpeedSupported, e.LinkSpeedEnabled, e.LinkSpeedActive
	return b
}

// ParseExtendedPortInfo reads the attribute from the start of b. The error is an *Error.
func ParseExtendedPortInfo(b []byte) (ExtendedPortInfo, error) {
	if err := atLeast("ExtendedPortInfo", b, ExtendedPortInfoLen); err != nil {
		return ExtendedPortInfo{}, err
	}
	return ExtendedPortInfo{b[3], b[7], b[11], b[15]}, nil
}
