package mad

import "net/netip"

// IPHeaderLen is the length of the header that RDMA IP addressing puts in front of the
// private data of a REQ and a SIDR_REQ.
const IPHeaderLen = 36

// PortSpace is the part of a service ID that identifies the kind of port.
type PortSpace uint16

// The port spaces of the RDMA CM.
const (
	PortSpaceTCP PortSpace = 0x0106 // connected, reliable
	PortSpaceUDP PortSpace = 0x0111 // datagrams
	PortSpaceIB  PortSpace = 0x013f // any transport of InfiniBand, extended reliable connections too
)

// ServiceID returns the RDMA IP CM service ID of a port (IBA annex A11): 0x0000000001060000 | port for
// TCP.
func ServiceID(space PortSpace, port uint16) uint64 { return uint64(space)<<16 | uint64(port) }

// ParseServiceID splits a service ID; ok is false for one outside the three port spaces.
func ParseServiceID(id uint64) (space PortSpace, port uint16, ok bool) {
	space = PortSpace(id >> 16)
	return space, uint16(id), id>>32 == 0 && (space == PortSpaceTCP || space == PortSpaceUDP || space == PortSpaceIB)
}

// IPHeader is the RDMA IP CM private data header (IBA annex A11.4): the addresses as the programs at both
// ends see them. Both are of the same family; the zero value is IPv4 0.0.0.0.
type IPHeader struct {
	Source      netip.AddrPort
	Destination netip.Addr
}

// Append appends the header's IPHeaderLen bytes to b. If either address is IPv6, which includes
// IPv4-mapped ones, it is an IPv6 header: callers that mean IPv4 must unmap.
func (h IPHeader) Append(b []byte) []byte {
	src, dst := h.Source.Addr(), h.Destination
	version := byte(4)
	if src.Is6() || dst.Is6() {
		version = 6
	}
	b = append(b, 0, version<<4, byte(h.Source.Port()>>8), byte(h.Source.Port()))
	b = appendIP(b, version, src)
	return appendIP(b, version, dst)
}

func appendIP(b []byte, version byte, a netip.Addr) []byte {
	var ip [16]byte
	switch {
	case !a.IsValid():
	case version == 6:
		ip = a.As16()
	default:
		v4 := a.As4()
		copy(ip[12:], v4[:])
	}
	return append(b, ip[:]...)
}

// ParseIPHeader reads the header at the start of private data. The error is an *Error.
func ParseIPHeader(b []byte) (IPHeader, error) {
	if len(b) < IPHeaderLen {
		return IPHeader{}, &Error{"private data length", uint64(len(b)), "at least 36 for the IP header"}
	}
	if b[0]>>4 != 0 {
		return IPHeader{}, &Error{"IP CM major version", uint64(b[0] >> 4), "0"}
	}
	port := get16(b[2:])
	switch b[1] >> 4 {
	case 4:
		return IPHeader{netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[16:20])), port), netip.AddrFrom4([4]byte(b[32:36]))}, nil
	case 6:
		return IPHeader{netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[4:20])), port), netip.AddrFrom16([16]byte(b[20:36]))}, nil
	}
	return IPHeader{}, &Error{"IP version", uint64(b[1] >> 4), "4 or 6"}
}
