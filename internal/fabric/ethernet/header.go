package ethernet

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// header is what a switch looks at in a frame.
type header struct {
	dst, src eth.MAC
	tci      uint16 // of the 802.1Q tag
	tagged   bool
	kind     eth.EtherType // behind the tag
	network  int           // where that is
	version  uint8         // of IP, 0: it is none
	class    uint8         // type of service or traffic class: DSCP and ECN
	hops     uint8         // hop limit
}

// plain is what most frames have behind the addresses: no tag, and an IPv4 header without options.
const plain = uint32(eth.TypeIPv4)<<8 | 0x45

// parse looks at the first bytes of a frame, of at least an Ethernet header. What the lengths make impossible is not looked at. The header
// must be a new one.
func (h *header) parse(b []byte) bool {
	h.dst = eth.MAC(b[:6])
	h.src = eth.MAC(b[6:macs])
	h.network = eth.EthernetLen
	if len(b) >= eth.EthernetLen+eth.IPv4Len && binary.BigEndian.Uint32(b[macs:])>>8 == plain {
		h.kind, h.version, h.class, h.hops = eth.TypeIPv4, 4, b[macs+3], b[eth.EthernetLen+8]
		return true
	}
	h.kind = eth.EtherType(binary.BigEndian.Uint16(b[macs:]))
	if h.kind == eth.TypeVLAN {
		if len(b) < eth.EthernetLen+eth.VLANLen {
			return false
		}
		h.tagged, h.tci = true, binary.BigEndian.Uint16(b[eth.EthernetLen:])
		h.kind = eth.EtherType(binary.BigEndian.Uint16(b[eth.EthernetLen+2:]))
		h.network += eth.VLANLen
	}
	switch p := b[h.network:]; {
	case h.kind == eth.TypeIPv4 && len(p) >= eth.IPv4Len && p[0]>>4 == 4 && eth.IPv4(p).HeaderLen() >= eth.IPv4Len:
		h.version, h.class, h.hops = 4, eth.IPv4(p).ToS(), eth.IPv4(p).TTL()
	case h.kind == eth.TypeIPv6 && len(p) >= eth.IPv6Len && p[0]>>4 == 6:
		h.version, h.class, h.hops = 6, eth.IPv6(p).TrafficClass(), eth.IPv6(p).HopLimit()
	}
	return true
}

// pause reports whether a frame is one of MAC control, as pauses are.
func (h *header) pause() bool { return h.kind == eth.TypeMACControl && !h.tagged }

// slow reports whether a frame is one of slow protocols, LACP among them.
func (h *header) slow() bool {
	return h.kind == lacp.EtherType && h.dst == lacp.SlowProtocols && !h.tagged
}

// to returns where an IP packet goes.
func (h *header) to(b []byte) netip.Addr {
	if h.version == 4 {
		return eth.IPv4(b[h.network:]).Dst()
	}
	return eth.IPv6(b[h.network:]).Dst()
}

// flow returns a number that is the same for all frames of a flow: addresses, protocol and ports of IP, of other frames
// the MACs and the VLAN.
func (h *header) flow(b []byte, seed uint64) uint64 {
	x := mix(seed)
	p := b[h.network:]
	n, protocol := 0, uint8(0)
	switch h.version {
	case 4:
		x = mix(x ^ binary.BigEndian.Uint64(p[12:]))
		n, protocol = eth.IPv4(p).HeaderLen(), eth.IPv4(p).Protocol()
		if eth.IPv4(p).Fragment() {
			n = len(p)
		}
	case 6:
		for at := 8; at < eth.IPv6Len; at += 8 {
			x = mix(x ^ binary.BigEndian.Uint64(p[at:]))
		}
		n, protocol = eth.IPv6Len, eth.IPv6(p).NextHeader()
	default:
		x = mix(x ^ binary.BigEndian.Uint64(b))
		return mix(x ^ uint64(binary.BigEndian.Uint32(b[8:]))<<16 ^ uint64(h.tci&eth.VIDMask))
	}
	ports := uint32(0)
	if (protocol == eth.ProtocolTCP || protocol == eth.ProtocolUDP) && len(p) >= n+4 {
		ports = binary.BigEndian.Uint32(p[n:])
	}
	return mix(x ^ uint64(ports)<<8 ^ uint64(protocol))
}

// mix spreads every bit of x over all bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// capable reports whether a packet's ends understand marks, and it has none yet.
func (h *header) capable() bool {
	return h.version != 0 && h.class&eth.ECNMask != 0 && !eth.Marked(h.class)
}

// mark marks an IP packet of a frame as having met congestion.
func mark(b []byte) {
	var h header
	if !h.parse(b) {
		return
	}
	switch p := b[h.network:]; h.version {
	case 4:
		word := binary.BigEndian.Uint16(p)
		eth.IPv4(p).SetToS(eth.Mark(h.class))
		patch(p, word, binary.BigEndian.Uint16(p))
	case 6:
		p[1] |= eth.ECNMarked << 4
	}
}

// hop takes one from the hop limit of an IP packet.
func (h *header) hop(b []byte) {
	switch p := b[h.network:]; h.version {
	case 4:
		p[8]--
		patch(p, 1<<8, 0) // the limit is the first byte of a word
	case 6:
		p[7]--
	}
}

// patch corrects the checksum of an IPv4 header of which a word has changed; a wrong one stays wrong (RFC 1624).
func patch(p eth.IPv4, from, to uint16) {
	sum := uint32(^p.Checksum()) + uint32(^from) + uint32(to)
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	p.PutChecksum(^uint16(sum))
}
