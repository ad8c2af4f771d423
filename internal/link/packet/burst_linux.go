package packet

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// BurstHead is room for what Begin writes.
const BurstHead = virtioLen + mostHeaders

// Offsets in struct virtio_net_hdr, and the values used here (linux/virtio_net.h).
const (
	virtioFlags        = 0
	virtioKind         = 1
	virtioHeaders      = 2
	virtioSegment      = 4
	virtioChecksumFrom = 6
	virtioChecksumAt   = 8
	virtioLen          = 10

	needsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	datagrams     = 5 // VIRTIO_NET_HDR_GSO_UDP_L4

	udpChecksumAt = 6 // in the UDP header
)

// Burst returns the descriptor to which each burst is written, as one message, behind what Begin wrote.
func (p *Port) Burst() int { return p.outlet.burst }

// Begin writes to b, which has room for BurstHead bytes, what precedes the packets of a burst, of total bytes, and returns
// its length. All are as long as the first, except that the last may be shorter; there may be only one. The system
// completes their headers as it does for a UDP socket. It returns 0 if the socket must send them: for the same reasons as
// with Send, except for the length, which is limited by the interface's MTU: the system does not check a burst's packets.
// (Route MTUs and what routers report do not limit the socket's packets either, which are sent as probes.)
func (p *Port) Begin(b []byte, frames []frame.Out, total int, hop uint16) int {
	r, size := frames[0].Route, frames[0].Len()
	h := p.by(hop, r)
	if h == nil || p.headers()+size > p.device.mtu {
		return 0
	}
	port := p.cfg.Port
	if r.DstPort != 0 {
		port = r.DstPort
	}
	clear(b[:virtioLen])
	length := eth.UDPLen + total
	udp := h.begins.Put(b[virtioLen:], r.TrafficClass, frame.Hops(r.HopLimit), r.FlowLabel, length)
	header := eth.UDP(b[virtioLen+udp:])
	header.Encode(r.SrcPort, port, length)
	header.SetChecksum(eth.PseudoSum(r.Src, r.Dst, eth.ProtocolUDP, length))
	b[virtioFlags] = needsChecksum
	binary.NativeEndian.PutUint16(b[virtioHeaders:], uint16(udp+eth.UDPLen))
	binary.NativeEndian.PutUint16(b[virtioChecksumFrom:], uint16(udp))
	binary.NativeEndian.PutUint16(b[virtioChecksumAt:], udpChecksumAt)
	if len(frames) > 1 {
		b[virtioKind] = datagrams
		binary.NativeEndian.PutUint16(b[virtioSegment:], uint16(size))
	}
	return virtioLen + udp + eth.UDPLen
}

// headers returns the length of the IP and UDP headers.
func (p *Port) headers() int {
	if p.cfg.Addr.Is4() {
		return eth.IPv4Len + eth.UDPLen
	}
	return eth.IPv6Len + eth.UDPLen
}

// BurstSent counts the packets of bursts that were sent.
func (p *Port) BurstSent(packets int) { p.sent += uint64(packets) }
