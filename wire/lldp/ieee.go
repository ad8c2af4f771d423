package lldp

import "encoding/binary"

// Subtypes of the TLVs of IEEE 802.1 (IEEE 802.1Q-2018, table D-1).
const (
	subtypeETS            = 9
	subtypeRecommendation = 10
	subtypePFC            = 11
	subtypeApplications   = 12
)

const (
	classes    = 8
	etsLen     = 1 + classes/2 + classes + classes
	pfcLen     = 2
	entryLen   = 3
	willingBit = 0x80
	secondBit  = 0x40 // CBS of ETS, MBC of PFC
)

// Algorithm is how a traffic class gets its turn (IEEE 802.1Q, table D-4).
type Algorithm uint8

// Transmission selection algorithms.
const (
	Strict      Algorithm = 0
	CreditBased Algorithm = 1
	Enhanced    Algorithm = 2 // ETS
	Vendor      Algorithm = 255
)

// ETS says to which traffic class each priority belongs, and how the classes share the wire (IEEE 802.1Q, D.2.8).
type ETS struct {
	Class     [classes]uint8 // by priority
	Bandwidth [classes]uint8 // by class, in percent
	Algorithm [classes]Algorithm
}

// ETSConfiguration is how a port works, with what it could.
type ETSConfiguration struct {
	ETS
	Willing, CBS bool
	// Classes is the number of traffic classes that it has, 3 to 8.
	Classes uint8
}

// PFC are the priorities that a port pauses on their own (IEEE 802.1Q, D.2.10).
type PFC struct {
	Willing bool
	// MBC says that frames may still be taken after a pause for which MACsec would have had to wait.
	MBC bool
	// Capability is for how many classes the port could do so at a time, 0 to 15.
	Capability uint8
	Enabled    uint8 // bit p for priority p
}

// Selector is what the protocol of an application is (IEEE 802.1Q, table D-9).
type Selector uint8

// Selectors.
const (
	SelectDefault   Selector = 0 // with protocol 0: the default; CEE: EtherType
	SelectEtherType Selector = 1
	SelectTCP       Selector = 2 // ports of TCP and SCTP
	SelectUDP       Selector = 3 // ports of UDP and DCCP
	SelectPort      Selector = 4 // of TCP, SCTP, UDP and DCCP
	SelectDSCP      Selector = 5
)

// Application gives a priority to an application.
type Application struct {
	Priority uint8
	Selector Selector
	Protocol uint16
}

// Applications is the table of a port (IEEE 802.1Q, D.2.11).
type Applications []Application

// MostApplications is how many entries a TLV has room for.
const MostApplications = (mostLen - organized - 1) / entryLen

func (e *ETS) value(first byte) []byte {
	v := make([]byte, 0, etsLen)
	v = append(v, first)
	for p := 0; p < classes; p += 2 {
		v = append(v, e.Class[p]<<4|e.Class[p+1]&0x0f)
	}
	v = append(v, e.Bandwidth[:]...)
	for _, a := range e.Algorithm {
		v = append(v, byte(a))
	}
	return v
}

func (e *ETSConfiguration) value() []byte {
	return e.ETS.value(flag(e.Willing, willingBit) | flag(e.CBS, secondBit) | e.Classes&7) // 8 is coded as 0
}

func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

func parseETS(v []byte) (*ETS, bool) {
	if len(v) != etsLen {
		return nil, false
	}
	e := &ETS{}
	v = v[1:]
	for p := range e.Class {
		e.Class[p] = v[p/2] >> (4 * (1 - p%2)) & 0x0f
	}
	v = v[classes/2:]
	copy(e.Bandwidth[:], v)
	for i := range e.Algorithm {
		e.Algorithm[i] = Algorithm(v[classes+i])
	}
	return e, true
}

func parseETSConfiguration(v []byte) (*ETSConfiguration, bool) {
	e, ok := parseETS(v)
	if !ok {
		return nil, false
	}
	c := &ETSConfiguration{ETS: *e, Willing: v[0]&willingBit != 0, CBS: v[0]&secondBit != 0, Classes: v[0] & 7}
	if c.Classes == 0 {
		c.Classes = classes
	}
	return c, true
}

func (p *PFC) value() []byte {
	return []byte{flag(p.Willing, willingBit) | flag(p.MBC, secondBit) | p.Capability&0x0f, p.Enabled}
}

func parsePFC(v []byte) (*PFC, bool) {
	if len(v) != pfcLen {
		return nil, false
	}
	return &PFC{v[0]&willingBit != 0, v[0]&secondBit != 0, v[0] & 0x0f, v[1]}, true
}

func (a Applications) value() []byte {
	v := []byte{0}
	for _, x := range a[:min(len(a), MostApplications)] {
		v = binary.BigEndian.AppendUint16(append(v, x.Priority<<5|byte(x.Selector)&7), x.Protocol)
	}
	return v
}

func parseApplications(v []byte) (*Applications, bool) {
	if len(v) == 0 || len(v)%entryLen != 1 {
		return nil, false
	}
	a := Applications{}
	for v = v[1:]; len(v) > 0; v = v[entryLen:] {
		a = append(a, Application{v[0] >> 5, Selector(v[0] & 7), binary.BigEndian.Uint16(v[1:])})
	}
	return &a, true
}
