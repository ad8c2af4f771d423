package lldp

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strconv"

	"github.com/softvpi/softvpi/wire/eth"
)

// Subtypes of chassis IDs (IEEE 802.1AB, table 8-2).
const (
	ChassisComponent     = 1
	ChassisAlias         = 2
	ChassisPortComponent = 3
	ChassisMAC           = 4
	ChassisNetwork       = 5
	ChassisInterface     = 6
	ChassisLocal         = 7
)

// Subtypes of port IDs (IEEE 802.1AB, table 8-3).
const (
	PortAlias     = 1
	PortComponent = 2
	PortMAC       = 3
	PortNetwork   = 4
	PortInterface = 5
	PortCircuit   = 6
	PortLocal     = 7
)

// mostID is the length of the longest ID (IEEE 802.1AB, 8.5.2.3).
const mostID = 255

// ID names a chassis or a port: what that is, its subtype says.
type ID struct {
	Subtype uint8
	Value   string // bytes, 1 to 255
}

// ChassisOf returns the ID of a chassis by its MAC.
func ChassisOf(m eth.MAC) ID { return ID{ChassisMAC, string(m[:])} }

// PortOf returns the ID of a port by its MAC.
func PortOf(m eth.MAC) ID { return ID{PortMAC, string(m[:])} }

// text returns an ID as people write it; mac and network are the subtypes of MACs and addresses.
func (i ID) text(mac, network uint8) string {
	b := []byte(i.Value)
	switch {
	case i.Subtype == mac && len(b) == len(eth.MAC{}):
		return eth.MAC(b).String()
	case i.Subtype == network && len(b) > 1:
		if a, ok := address(b[0], b[1:]); ok {
			return a.String()
		}
	case i.Subtype != mac && bytes.IndexFunc(b, unprintable) < 0:
		return i.Value
	}
	return hex.EncodeToString(b)
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }

// Chassis returns a chassis ID as people write it.
func (i ID) Chassis() string { return i.text(ChassisMAC, ChassisNetwork) }

// Port returns a port ID as people write it.
func (i ID) Port() string { return i.text(PortMAC, PortNetwork) }

// Families of addresses (IANA address family numbers).
const (
	familyIPv4 = 1
	familyIPv6 = 2
)

// address reads an address of a family.
func address(family uint8, b []byte) (a netip.Addr, ok bool) {
	if family == familyIPv4 && len(b) == 4 || family == familyIPv6 && len(b) == 16 {
		return netip.AddrFromSlice(b)
	}
	return netip.Addr{}, false
}

func (i ID) append(b []byte, t Type) []byte {
	v := i.Value[:min(len(i.Value), mostID)]
	return appendTLV(b, t, append([]byte{i.Subtype}, v...))
}

// parseID reads an ID.
func parseID(value []byte, what string) (ID, error) {
	if len(value) < 2 || len(value) > 1+mostID {
		return ID{}, bad(what, "length", len(value), "2 to 256")
	}
	return ID{value[0], string(value[1:])}, nil
}
