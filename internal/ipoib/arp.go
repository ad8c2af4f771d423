package ipoib

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// Hardware is the type of link-layer addresses in ARP (RFC 4391 9.1).
const Hardware = 32

const (
	arpFixed = 8
	// arpLen is the length of an ARP packet for InfiniBand and IPv4.
	arpLen = arpFixed + 2*(addressLen+4)
)

// arp is an address resolution packet for IPv4 over InfiniBand (RFC 826, RFC 4391 9.1).
type arp struct {
	Operation          uint16 // eth.ARPRequest or eth.ARPReply
	Sender, Target     Address
	SenderIP, TargetIP netip.Addr // IPv4; the zero Addr counts as 0.0.0.0
}

// Append appends the packet's arpLen bytes to b.
func (a *arp) Append(b []byte) []byte {
	b = append(b, 0, Hardware, byte(eth.TypeIPv4>>8), byte(eth.TypeIPv4&0xff), addressLen, 4)
	b = binary.BigEndian.AppendUint16(b, a.Operation)
	b = appendIPv4(a.Sender.Append(b), a.SenderIP)
	return appendIPv4(a.Target.Append(b), a.TargetIP)
}

// parseARP reads the packet at the start of b. The error is a *formatError.
func parseARP(b []byte) (arp, error) {
	if len(b) < arpLen {
		return arp{}, &formatError{"arp packet", len(b), "56 bytes at least"}
	}
	hardware, protocol := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	switch {
	case hardware != Hardware:
		return arp{}, &formatError{"arp hardware type", int(hardware), "32, infiniband"}
	case eth.EtherType(protocol) != eth.TypeIPv4:
		return arp{}, &formatError{"arp protocol type", int(protocol), "0x0800, ipv4"}
	case b[4] != addressLen:
		return arp{}, &formatError{"arp hardware address length", int(b[4]), "20"}
	case b[5] != 4:
		return arp{}, &formatError{"arp protocol address length", int(b[5]), "4"}
	}
	a := arp{Operation: binary.BigEndian.Uint16(b[6:])}
	a.Sender, _ = parseAddress(b[8:])
	a.SenderIP = netip.AddrFrom4([4]byte(b[28:]))
	a.Target, _ = parseAddress(b[32:])
	a.TargetIP = netip.AddrFrom4([4]byte(b[52:]))
	return a, nil
}

// appendIPv4 appends the four bytes of a, zeros if it is not an IPv4 address.
func appendIPv4(b []byte, a netip.Addr) []byte {
	if a = a.Unmap(); !a.Is4() {
		return append(b, 0, 0, 0, 0)
	}
	v := a.As4()
	return append(b, v[:]...)
}
