package lldp

import "encoding/binary"

// subtypeCEE is the subtype of CEE's TLV; subtype 1, of what was before CEE, is not known.
const subtypeCEE = 2

// Types of the TLVs inside of CEE's, whose headers are those of LLDP.
const (
	ceeControl      = 1
	ceeGroups       = 2
	ceePFC          = 3
	ceeApplications = 4
)

const (
	ceeControlLen = 10
	ceeFeatureLen = 4 // versions, flags and subtype
	ceeGroupsLen  = ceeFeatureLen + classes/2 + classes + 1
	ceePFCLen     = ceeFeatureLen + 2
	ceeEntryLen   = 6
	ceeSelector   = 3 // bits of a selector, beside the upper ones of an OUI

	enableBit     = 0x80
	ceeWillingBit = 0x40
	errorBit      = 0x20
)

// StrictGroup is the priority group whose priorities go first, without a limit.
const StrictGroup = 15

// CEE is DCBX of CEE: a control TLV, and one for each feature.
type CEE struct {
	// Versions of the protocol that is spoken, and of the latest that could be.
	Operating, Latest uint8
	// Sequence numbers what is said, and Acknowledged is the last that was heard from the peer.
	Sequence, Acknowledged uint32
	Groups                 *CEEGroups
	PFC                    *CEEPFC
	Applications           *CEEApplications
}

// Feature is what every feature of CEE says.
type Feature struct {
	Operating, Latest      uint8
	Enable, Willing, Error bool
	Subtype                uint8
}

// CEEGroups puts priorities into groups, which share the wire.
type CEEGroups struct {
	Feature
	Group   [classes]uint8 // by priority: 0 to 7, or StrictGroup
	Percent [classes]uint8 // by group
	Classes uint8          // traffic classes that the port has
}

// CEEPFC are the priorities that are paused on their own.
type CEEPFC struct {
	Feature
	Enabled uint8 // bit p for priority p
	Classes uint8 // for how many traffic classes the port could do so
}

// CEEApplication gives priorities to an application.
type CEEApplication struct {
	Protocol   uint16
	Selector   Selector // 0: EtherType, 1: port of TCP or UDP
	OUI        OUI      // its lowest bits of the first byte are the selector's place
	Priorities uint8    // bit p for priority p
}

// CEEApplications is the table of a port.
type CEEApplications struct {
	Feature
	Table []CEEApplication
}

// MostCEEApplications is how many entries have room beside the other features.
const MostCEEApplications = (mostLen - organized - 4*headerLen - ceeControlLen - ceeGroupsLen - ceePFCLen - ceeFeatureLen) / ceeEntryLen

func (c *CEE) value() []byte {
	v := binary.BigEndian.AppendUint32([]byte{c.Operating, c.Latest}, c.Sequence)
	b := appendTLV(nil, ceeControl, binary.BigEndian.AppendUint32(v, c.Acknowledged))
	if g := c.Groups; g != nil {
		v := g.Feature.value()
		for p := 0; p < classes; p += 2 {
			v = append(v, g.Group[p]<<4|g.Group[p+1]&0x0f)
		}
		b = appendTLV(b, ceeGroups, append(append(v, g.Percent[:]...), g.Classes))
	}
	if p := c.PFC; p != nil {
		b = appendTLV(b, ceePFC, append(p.Feature.value(), p.Enabled, p.Classes))
	}
	if a := c.Applications; a != nil {
		v := a.Feature.value()
		for _, x := range a.Table[:min(len(a.Table), MostCEEApplications)] {
			v = binary.BigEndian.AppendUint16(v, x.Protocol)
			v = append(v, x.OUI[0]&^ceeSelector|byte(x.Selector)&ceeSelector, x.OUI[1], x.OUI[2], x.Priorities)
		}
		b = appendTLV(b, ceeApplications, v)
	}
	return b
}

func (f *Feature) value() []byte {
	return []byte{f.Operating, f.Latest, flag(f.Enable, enableBit) | flag(f.Willing, ceeWillingBit) | flag(f.Error, errorBit), f.Subtype}
}

// parseCEE reads CEE's TLV. It is wrong as a whole if anything in it is: half of what a peer wants is nothing to act on. Features
// that are not known are left out.
func parseCEE(b []byte) (*CEE, bool) {
	c, control := &CEE{}, false
	for len(b) > 0 {
		t, v, rest, ok := next(b)
		if !ok {
			return nil, false
		}
		b = rest
		switch t {
		case TypeEnd:
			return c, control
		case ceeControl:
			if control || len(v) != ceeControlLen {
				return nil, false
			}
			control = true
			c.Operating, c.Latest = v[0], v[1]
			c.Sequence, c.Acknowledged = binary.BigEndian.Uint32(v[2:]), binary.BigEndian.Uint32(v[6:])
		default:
			if len(v) < ceeFeatureLen || !c.feature(t, parseFeature(v), v[ceeFeatureLen:]) {
				return nil, false
			}
		}
	}
	return c, control
}

func parseFeature(v []byte) Feature {
	return Feature{v[0], v[1], v[2]&enableBit != 0, v[2]&ceeWillingBit != 0, v[2]&errorBit != 0, v[3]}
}

// feature takes a feature; false: it is wrong, or there is a second one.
func (c *CEE) feature(t Type, f Feature, v []byte) bool {
	switch t {
	case ceeGroups:
		if c.Groups != nil || len(v) != ceeGroupsLen-ceeFeatureLen {
			return false
		}
		g := &CEEGroups{Feature: f, Classes: v[len(v)-1]}
		for p := range g.Group {
			g.Group[p] = v[p/2] >> (4 * (1 - p%2)) & 0x0f
		}
		copy(g.Percent[:], v[classes/2:])
		c.Groups = g
	case ceePFC:
		if c.PFC != nil || len(v) != ceePFCLen-ceeFeatureLen {
			return false
		}
		c.PFC = &CEEPFC{f, v[0], v[1]}
	case ceeApplications:
		if c.Applications != nil || len(v)%ceeEntryLen != 0 {
			return false
		}
		a := &CEEApplications{Feature: f}
		for ; len(v) > 0; v = v[ceeEntryLen:] {
			a.Table = append(a.Table, CEEApplication{binary.BigEndian.Uint16(v), Selector(v[2] & ceeSelector),
				OUI{v[2] &^ ceeSelector, v[3], v[4]}, v[5]})
		}
		c.Applications = a
	}
	return true
}
