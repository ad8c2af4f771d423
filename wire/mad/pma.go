package mad

// ClassVersionPerf is the version of the performance management class (IBA 16.1).
const ClassVersionPerf = 1

// PMADataOffset is where the attribute begins in a performance MAD (IBA 16.1.1): 40 reserved bytes follow
// the header.
const PMADataOffset = 64

// PMADataLen is the length of the attribute area of a performance MAD.
const PMADataLen = Len - PMADataOffset

// Attribute IDs of the performance management class (IBA 16.1.3 and its annexes).
const (
	AttrPortSamplesControl            = 0x0010
	AttrPortSamplesResult             = 0x0011
	AttrPortCounters                  = 0x0012
	AttrPortRcvErrorDetails           = 0x0015
	AttrPortXmitDiscardDetails        = 0x0016
	AttrPortOpRcvCounters             = 0x0017
	AttrPortFlowCtlCounters           = 0x0018
	AttrPortVLOpPackets               = 0x0019
	AttrPortVLOpData                  = 0x001a
	AttrPortVLXmitFlowCtlUpdateErrors = 0x001b
	AttrPortVLXmitWaitCounters        = 0x001c
	AttrPortCountersExtended          = 0x001d
	AttrPortExtendedSpeedsCounters    = 0x001f
	AttrSwPortVLCongestion            = 0x0030
	AttrPortRcvConCtrl                = 0x0031
	AttrPortSLRcvFECN                 = 0x0032
	AttrPortSLRcvBECN                 = 0x0033
	AttrPortXmitConCtrl               = 0x0034
	AttrPortVLXmitTimeCong            = 0x0035
	AttrPortXmitDataSL                = 0x0036
	AttrPortRcvDataSL                 = 0x0037
)

// Bits of ClassPortInfo.CapabilityMask that the performance management class defines (IBA 16.1.3.1).
const (
	CapPMAllPortSelect       = 1 << 8  // port 255 stands for all ports
	CapPMExtendedWidth       = 1 << 9  // PortCountersExtended, complete
	CapPMExtendedWidthNoIETF = 1 << 10 // PortCountersExtended without unicast and multicast counters
	CapPMXmitWait            = 1 << 12 // PortCounters has PortXmitWait
	CapPMQP1Dropped          = 1 << 15 // PortCounters has QP1Dropped
	Cap2PMAdditionalExtended = 1 << 1  // of CapabilityMask2: PortCountersExtended has the error counters too
)

// PMAAllPorts is the port number that stands for all ports of a node.
const PMAAllPorts = 255

// PMAField is a field of a performance attribute: a counter, or a selector.
type PMAField struct {
	Name  string // the specification's name
	Bit   int    // offset in bits from the start of the attribute on the wire
	Width int    // in bits, 1 to 64
	Mask  bool   // a selector or mask, to be shown in hexadecimal; otherwise a number
}

// Max returns the largest value of the field. A counter stops there (IBA 16.1.3.5).
func (f PMAField) Max() uint64 { return ^uint64(0) >> (64 - f.Width) }

// Get reads the field from an attribute. Bits beyond the attribute's end read as zero.
func (f PMAField) Get(attribute []byte) uint64 {
	var v uint64
	for i := f.Bit; i < f.Bit+f.Width; i++ {
		v <<= 1
		if i/8 < len(attribute) && attribute[i/8]&(0x80>>(i%8)) != 0 {
			v |= 1
		}
	}
	return v
}

// Put writes the field into an attribute; a value that is too large becomes the largest. Bits beyond the
// attribute's end are not written.
func (f PMAField) Put(attribute []byte, v uint64) {
	v = min(v, f.Max())
	for i := f.Bit + f.Width - 1; i >= f.Bit; i-- {
		if i/8 < len(attribute) {
			bit := byte(0x80 >> (i % 8))
			attribute[i/8] &^= bit
			attribute[i/8] |= flag(v&1 != 0, bit)
		}
		v >>= 1
	}
}

// PMAttribute describes an attribute of the performance management class, with its fields in the order in
// which they are shown.
type PMAttribute struct {
	ID     uint16
	Name   string
	Fields []PMAField
}

// Field returns the field of that name; false: there is none.
func (a *PMAttribute) Field(name string) (PMAField, bool) {
	for _, f := range a.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return PMAField{}, false
}

// Get reads a field by name; zero if the attribute has none of that name.
func (a *PMAttribute) Get(attribute []byte, name string) uint64 {
	f, ok := a.Field(name)
	if !ok {
		return 0
	}
	return f.Get(attribute)
}

// Put writes a field by name, and reports whether the attribute has it.
func (a *PMAttribute) Put(attribute []byte, name string, v uint64) bool {
	f, ok := a.Field(name)
	if ok {
		f.Put(attribute, v)
	}
	return ok
}

// PMAttributeByID returns the attribute with the ID, or nil if this package does not know it.
func PMAttributeByID(id uint16) *PMAttribute {
	for _, a := range PMAttributes {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// PMARequest is a Get or Set of a performance attribute. Data is the attribute, at most PMADataLen bytes;
// it may be shorter.
type PMARequest struct {
	Header
	Data []byte
}

// Append appends the MAD, Len bytes, to b. It fills in the base version, class and class version.
func (r *PMARequest) Append(b []byte) []byte {
	h := r.Header
	h.BaseVersion, h.Class, h.ClassVersion = BaseVersion, ClassPerf, ClassVersionPerf
	b = h.Append(b)
	var rest [Len - HeaderLen]byte
	copy(rest[PMADataOffset-HeaderLen:], r.Data)
	return append(b, rest[:]...)
}

// ParsePMA reads a MAD of the performance management class. Data is the whole attribute area, PMADataLen
// bytes of b. The error is an *Error.
func ParsePMA(b []byte) (PMARequest, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return PMARequest{}, err
	}
	switch {
	case h.Class != ClassPerf:
		return PMARequest{}, &Error{"management class", uint64(h.Class), "4, performance management"}
	case h.ClassVersion != ClassVersionPerf:
		return PMARequest{}, &Error{"class version", uint64(h.ClassVersion), "1"}
	}
	return PMARequest{Header: h, Data: b[PMADataOffset:Len]}, nil
}
