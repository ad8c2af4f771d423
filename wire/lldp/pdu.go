package lldp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// PDU is a data unit: what a port says of itself.
type PDU struct {
	ChassisID ID
	PortID    ID
	// TTL is for how long it holds, in seconds; 0 ends what was said before (a shutdown).
	TTL uint16
	// The basic TLVs; empty: not there.
	PortDescription   string
	SystemName        string
	SystemDescription string
	Capabilities      *Capabilities
	Management        []ManagementAddress
	// DCBX of IEEE 802.1Q; nil: not there.
	ETS            *ETSConfiguration
	Recommendation *ETS
	PFC            *PFC
	Applications   *Applications
	// CEE is DCBX of CEE; nil: not there.
	CEE *CEE
	// Others are the TLVs that are not known, in order.
	Others []TLV
}

// Capability is one of a system (IEEE 802.1AB, table 8-4).
type Capability uint16

// Capabilities of systems.
const (
	CapabilityOther    Capability = 1 << 0
	CapabilityRepeater Capability = 1 << 1
	CapabilityBridge   Capability = 1 << 2
	CapabilityWLAN     Capability = 1 << 3
	CapabilityRouter   Capability = 1 << 4
	CapabilityPhone    Capability = 1 << 5
	CapabilityDOCSIS   Capability = 1 << 6
	CapabilityStation  Capability = 1 << 7
)

// Capabilities are those that a system has, and those that it uses.
type Capabilities struct{ Supported, Enabled Capability }

// ManagementAddress is one at which a system is managed (IEEE 802.1AB, 8.5.9).
type ManagementAddress struct {
	Addr netip.Addr
	// Interface is the number of its interface: an index if Numbering is 2, a port number of the system if it is 3, unknown if it is 1.
	Numbering uint8
	Interface uint32
}

const (
	mostText  = 255
	oidLen    = 1 // of the length of an object identifier, which is not written and not kept
	numberLen = 5 // of an interface: the numbering, and its number
)

// Error is why a data unit is invalid as a whole.
type Error struct {
	TLV, Field string
	Value      any
	Want       string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("LLDP data unit: %s: %s %v: want %s", e.TLV, e.Field, e.Value, e.Want)
}

func bad(tlv, field string, value any, want string) error { return &Error{tlv, field, value, want} }

// Faults counts the TLVs of a data unit that were not taken (IEEE 802.1AB, 9.2.7.7.2).
type Faults struct {
	// Discarded TLVs were wrong: of a length that their type does not have, or a second one where there may be one.
	Discarded int
	// Unrecognized TLVs are of no type that this package knows; they are in Others.
	Unrecognized int
}

// Append adds the data unit to b, with the TLV that ends it.
func (p *PDU) Append(b []byte) []byte {
	b = p.ChassisID.append(b, TypeChassisID)
	b = p.PortID.append(b, TypePortID)
	b = appendTLV(b, TypeTTL, binary.BigEndian.AppendUint16(nil, p.TTL))
	if p.TTL == 0 { // a shutdown says nothing else (9.2.7.4)
		return appendTLV(b, TypeEnd, nil)
	}
	for _, t := range []struct {
		t    Type
		text string
	}{{TypePortDescription, p.PortDescription}, {TypeSystemName, p.SystemName}, {TypeSystemDescription, p.SystemDescription}} {
		if t.text != "" {
			b = appendTLV(b, t.t, []byte(t.text[:min(len(t.text), mostText)]))
		}
	}
	if c := p.Capabilities; c != nil {
		v := binary.BigEndian.AppendUint16(nil, uint16(c.Supported))
		b = appendTLV(b, TypeCapabilities, binary.BigEndian.AppendUint16(v, uint16(c.Enabled)))
	}
	for _, m := range p.Management {
		b = m.append(b)
	}
	b = p.appendDCBX(b)
	for i := range p.Others {
		b = p.Others[i].append(b)
	}
	return appendTLV(b, TypeEnd, nil)
}

// appendDCBX adds the TLVs of both kinds of DCBX.
func (p *PDU) appendDCBX(b []byte) []byte {
	if p.ETS != nil {
		b = appendOrganization(b, OUI8021, subtypeETS, p.ETS.value())
	}
	if p.Recommendation != nil {
		b = appendOrganization(b, OUI8021, subtypeRecommendation, p.Recommendation.value(0))
	}
	if p.PFC != nil {
		b = appendOrganization(b, OUI8021, subtypePFC, p.PFC.value())
	}
	if p.Applications != nil {
		b = appendOrganization(b, OUI8021, subtypeApplications, p.Applications.value())
	}
	if p.CEE != nil {
		b = appendOrganization(b, OUICEE, subtypeCEE, p.CEE.value())
	}
	return b
}

func (m *ManagementAddress) append(b []byte) []byte {
	family := byte(familyIPv4)
	if m.Addr.Is6() {
		family = familyIPv6
	}
	a := m.Addr.AsSlice()
	v := append([]byte{byte(1 + len(a)), family}, a...)
	v = binary.BigEndian.AppendUint32(append(v, m.Numbering), m.Interface)
	return appendTLV(b, TypeManagementAddress, append(v, 0))
}

// Parse reads a data unit: what follows the Ethernet header of a frame. What stands behind the TLV that ends it is padding. The
// error is an *Error. Nothing of b is kept.
func Parse(b []byte) (p PDU, f Faults, err error) {
	rest, err := p.parseMandatory(b)
	if err != nil || p.TTL == 0 {
		return p, f, err
	}
	var seen uint16
	for len(rest) > 0 {
		t, value, more, ok := next(rest)
		if !ok {
			return p, f, bad(fmt.Sprintf("type %d", rest[0]>>1), "length", int(rest[0]&1)<<8|int(rest[min(1, len(rest)-1)]),
				"at most the rest of the data unit")
		}
		rest = more
		switch {
		case t == TypeEnd:
			if len(value) > 0 {
				f.Discarded++
			}
			return p, f, nil
		case t <= TypeTTL:
			return p, f, bad(fmt.Sprintf("type %d", t), "number", 2, "one of a data unit")
		case t < TypeManagementAddress && seen>>t&1 != 0:
			f.Discarded++
		case t == TypeOrganization:
			p.organization(value, &f)
		case t > TypeManagementAddress:
			f.Unrecognized++
			p.Others = append(p.Others, TLV{Type: t, Value: append([]byte(nil), value...)})
		case !p.basic(t, value):
			f.Discarded++
		default:
			seen |= 1 << t
		}
	}
	return p, f, nil // the TLV that ends it may be missing (802.1AB-2009, 8.5.1)
}

// parseMandatory reads the three TLVs that come first (9.2.7.7.1).
func (p *PDU) parseMandatory(b []byte) (rest []byte, err error) {
	for i, what := range []string{"chassis ID", "port ID", "TTL"} {
		t, value, more, ok := next(b)
		switch {
		case !ok:
			return nil, bad(what, "length", len(b), "a whole TLV")
		case int(t) != i+1:
			return nil, bad(what, "type", t, fmt.Sprintf("%d, as TLV %d of a data unit", i+1, i+1))
		}
		switch t {
		case TypeChassisID:
			p.ChassisID, err = parseID(value, what)
		case TypePortID:
			p.PortID, err = parseID(value, what)
		default:
			if len(value) < 2 {
				return nil, bad(what, "length", len(value), "2")
			}
			p.TTL = binary.BigEndian.Uint16(value)
		}
		if err != nil {
			return nil, err
		}
		b = more
	}
	return b, nil
}

// basic takes one of the optional basic TLVs; false: it is wrong.
func (p *PDU) basic(t Type, value []byte) bool {
	switch t {
	case TypeCapabilities:
		if len(value) != 4 {
			return false
		}
		p.Capabilities = &Capabilities{Capability(binary.BigEndian.Uint16(value)), Capability(binary.BigEndian.Uint16(value[2:]))}
		return true
	case TypeManagementAddress:
		return p.management(value)
	}
	if len(value) > mostText {
		return false
	}
	switch text := string(value); t {
	case TypePortDescription:
		p.PortDescription = text
	case TypeSystemName:
		p.SystemName = text
	default:
		p.SystemDescription = text
	}
	return true
}

// management takes a management address. One of a family other than IP is valid, and left out.
func (p *PDU) management(value []byte) bool {
	const least = 1 + 2 + numberLen + oidLen // one byte of address
	if len(value) < least {
		return false
	}
	n := int(value[0])
	if n < 2 || len(value) < 1+n+numberLen+oidLen {
		return false
	}
	rest := value[1+n:]
	if oid := int(rest[numberLen]); oid > 128 || len(rest) != numberLen+oidLen+oid {
		return false
	}
	m := ManagementAddress{Numbering: rest[0], Interface: binary.BigEndian.Uint32(rest[1:])}
	ok := false
	if m.Addr, ok = address(value[1], value[2:1+n]); ok {
		p.Management = append(p.Management, m)
		return true
	}
	return value[1] != familyIPv4 && value[1] != familyIPv6
}

// organization takes a TLV of an organization.
func (p *PDU) organization(value []byte, f *Faults) {
	if len(value) < organized {
		f.Discarded++
		return
	}
	t := TLV{TypeOrganization, OUI(value), value[3], value[organized:]}
	known, ok := p.dcbx(&t)
	switch {
	case !known:
		f.Unrecognized++
		t.Value = append([]byte(nil), t.Value...)
		p.Others = append(p.Others, t)
	case !ok:
		f.Discarded++
	}
}

// dcbx takes a TLV of DCBX. ok is false if it is wrong, or the second of its kind.
func (p *PDU) dcbx(t *TLV) (known, ok bool) {
	switch {
	case t.OUI == OUICEE && t.Subtype == subtypeCEE:
		if p.CEE == nil {
			p.CEE, ok = parseCEE(t.Value)
		}
		return true, ok
	case t.OUI != OUI8021:
		return false, false
	}
	switch t.Subtype {
	case subtypeETS:
		if p.ETS == nil {
			p.ETS, ok = parseETSConfiguration(t.Value)
		}
	case subtypeRecommendation:
		if p.Recommendation == nil {
			p.Recommendation, ok = parseETS(t.Value)
		}
	case subtypePFC:
		if p.PFC == nil {
			p.PFC, ok = parsePFC(t.Value)
		}
	case subtypeApplications:
		if p.Applications == nil {
			p.Applications, ok = parseApplications(t.Value)
		}
	default:
		return false, false
	}
	return true, ok
}

// Frame returns the Ethernet frame of a data unit from a port, filled up to the shortest one.
func (p *PDU) Frame(src eth.MAC) []byte {
	const shortest = 60
	b := make([]byte, eth.EthernetLen, 256)
	h := eth.Ethernet{Dst: NearestBridge, Src: src, Type: EtherType}
	h.Put(b)
	b = p.Append(b)
	for len(b) < shortest {
		b = append(b, 0)
	}
	return b
}
