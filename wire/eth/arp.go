package eth

import (
	"encoding/binary"
	"net/netip"
)

// ARPLen is the length of an ARP packet for Ethernet and IPv4.
const ARPLen = 28

// ARP operations.
const (
	ARPRequest = 1
	ARPReply   = 2
)

// ARP is an address resolution packet for IPv4 over Ethernet (RFC 826).
type ARP struct {
	Operation            uint16
	SenderMAC, TargetMAC MAC
	SenderIP, TargetIP   netip.Addr // IPv4; the zero Addr counts as 0.0.0.0
}

// Append adds the packet's ARPLen bytes to b.
func (a *ARP) Append(b []byte) []byte {
	b = append(b, 0, 1, byte(TypeIPv4>>8), byte(TypeIPv4&0xff), 6, 4)
	b = binary.BigEndian.AppendUint16(b, a.Operation)
	b = append(b, a.SenderMAC[:]...)
	b = appendIPv4(b, a.SenderIP)
	b = append(b, a.TargetMAC[:]...)
	return appendIPv4(b, a.TargetIP)
}

// ParseARP reads the packet at the start of b. The error is a *LengthError or a *FieldError.
func ParseARP(b []byte) (ARP, error) {
	if len(b) < ARPLen {
		return ARP{}, short("arp packet", len(b), ARPLen)
	}
	switch {
	case binary.BigEndian.Uint16(b) != 1:
		return ARP{}, bad("arp hardware type", int(binary.BigEndian.Uint16(b)), "1, ethernet")
	case EtherType(binary.BigEndian.Uint16(b[2:])) != TypeIPv4:
		return ARP{}, bad("arp protocol type", int(binary.BigEndian.Uint16(b[2:])), "0x0800, ipv4")
	case b[4] != 6 || b[5] != 4:
		return ARP{}, bad("arp address lengths", int(binary.BigEndian.Uint16(b[4:])), "6 and 4")
	}
	return ARP{
		Operation: binary.BigEndian.Uint16(b[6:]),
		SenderMAC: MAC(b[8:]), SenderIP: netip.AddrFrom4([4]byte(b[14:])),
		TargetMAC: MAC(b[18:]), TargetIP: netip.AddrFrom4([4]byte(b[24:])),
	}, nil
}

// appendIPv4 adds the four bytes of a, or zeros if it is not an IPv4 address.
func appendIPv4(b []byte, a netip.Addr) []byte {
	v := bytes4(a)
	return append(b, v[:]...)
}

// appendIPv6 adds the sixteen bytes of a, or zeros if it is not valid.
func appendIPv6(b []byte, a netip.Addr) []byte {
	v := bytes16(a)
	return append(b, v[:]...)
}
