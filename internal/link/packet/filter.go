package packet

import (
	"encoding/binary"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
)

// instruction is one of the classic BPF machine (linux/filter.h, struct sock_filter).
type instruction struct {
	Code   uint16
	Jt, Jf uint8 // instructions to skip if a comparison is true, and if false
	K      uint32
}

// Operations (linux/bpf_common.h): loads into the accumulator, comparisons with K, and returning K, the
// number of bytes to accept.
const (
	loadWord = 0x20
	loadHalf = 0x28
	loadByte = 0x30
	equal    = 0x15
	greater  = 0x25
	anySet   = 0x45
	take     = 0x06
)

// Offsets outside the packet (linux/filter.h): metadata of the system, and the start of the IP header.
const (
	kindOfPacket = 0xfffff000 + 4  // SKF_AD_OFF + SKF_AD_PKTTYPE; 0 (PACKET_HOST): to this station
	interfaceOf  = 0xfffff000 + 8  // SKF_AD_OFF + SKF_AD_IFINDEX
	tagOf        = 0xfffff000 + 44 // the VLAN tag that was stripped, 0 for none
	networkLayer = 0xfff00000      // SKF_NET_OFF
)

const (
	whole        = 0x40000 // longer than any packet
	version4     = 0x45    // IPv4 with a header without options
	anyFragment  = 0x3fff  // more fragments, or an offset
	anyVLAN      = 0x0fff  // a VLAN ID: it belongs to another interface
	udpLengthMax = eth.UDPLen + MostPayload
)

// Rule selects the packets of a Port: UDP datagrams to an address and port that arrive through an
// interface, unfragmented and without IP options, addressed to this station. The short ones are completely
// in the ring and nowhere else.
type Rule struct {
	Addr      netip.Addr
	Port      uint16
	Interface int
}

// program builds a filter: each condition that does not hold jumps to the end, which is added last.
type program struct {
	code []instruction
	exit []int // conditions with a way out
}

func (p *program) load(op uint16, at uint32) { p.code = append(p.code, instruction{Code: op, K: at}) }

// want continues if the accumulator equals k.
func (p *program) want(k uint32) {
	p.exit = append(p.exit, len(p.code))
	p.code = append(p.code, instruction{Code: equal, K: k})
}

// wantNone continues if the accumulator has none of these bits.
func (p *program) wantNone(bits uint32) {
	p.code = append(p.code, instruction{Code: anySet, Jf: 1, K: bits})
	p.exit = append(p.exit, len(p.code))
	p.code = append(p.code, instruction{Code: equal, K: ^uint32(0)}) // never: the way out
}

// end takes long bytes where the accumulator is more than most, else short ones, and
// other bytes where a condition did not hold.
func (p *program) end(most, long, short, other uint32) []instruction {
	p.code = append(p.code,
		instruction{Code: greater, Jf: 1, K: most},
		instruction{Code: take, K: long},
		instruction{Code: take, K: short},
		instruction{Code: take, K: other})
	for _, i := range p.exit {
		p.code[i].Jf = uint8(len(p.code) - 2 - i)
	}
	return p.code
}

// headers returns the number of bytes before the UDP payload of a frame.
func (r Rule) headers() int {
	if r.Addr.Is4() {
		return eth.EthernetLen + eth.IPv4Len + eth.UDPLen
	}
	return eth.EthernetLen + eth.IPv6Len + eth.UDPLen
}

// ring is the filter of the ring, which begins at the Ethernet header: short packets are taken
// whole, of longer ones the headers alone, and others not at all.
func (r Rule) ring() []instruction { return r.frames(r.kind(), uint32(r.headers()), whole) }

// alarm is the filter of a ring beside a gate: it takes the headers of frames that wake, which differ from the rule's
// packets in their Ethernet type.
func (r Rule) alarm(kind uint32) []instruction { return r.frames(kind, 0, uint32(r.headers())) }

// kind returns the Ethernet type of the rule's packets.
func (r Rule) kind() uint32 {
	if r.Addr.Is4() {
		return uint32(eth.TypeIPv4)
	}
	return uint32(eth.TypeIPv6)
}

// frames is a filter for packets of the rule, but with Ethernet type kind: it takes long bytes of long packets and short
// bytes of short ones.
func (r Rule) frames(kind, long, short uint32) []instruction {
	var p program
	p.load(loadWord, kindOfPacket)
	p.want(0)
	p.load(loadWord, tagOf)
	p.wantNone(anyVLAN)
	const ip = eth.EthernetLen
	udp := uint32(r.headers() - eth.UDPLen)
	p.load(loadHalf, 12)
	p.want(kind)
	if r.Addr.Is4() {
		p.load(loadByte, ip)
		p.want(version4)
		p.load(loadByte, ip+9)
		p.want(eth.ProtocolUDP)
		p.load(loadHalf, ip+6)
		p.wantNone(anyFragment)
		b := r.Addr.As4()
		p.words(ip+16, b[:])
	} else {
		p.load(loadByte, ip+6)
		p.want(eth.ProtocolUDP)
		b := r.Addr.As16()
		p.words(ip+24, b[:])
	}
	p.load(loadHalf, udp+2)
	p.want(uint32(r.Port))
	p.load(loadHalf, udp+4)
	return p.end(udpLengthMax, long, short, 0)
}

// words continues if the packet has these bytes at offset at.
func (p *program) words(at uint32, b []byte) {
	for i := 0; i < len(b); i += 4 {
		p.load(loadWord, at+uint32(i))
		p.want(binary.BigEndian.Uint32(b[i:]))
	}
}

// socket is the filter of the UDP socket that is bound to the rule's address and port, which
// begins at the UDP header: it drops what the ring has whole. Fragments never come so far.
func (r Rule) socket() []instruction {
	var p program
	p.load(loadWord, interfaceOf)
	p.want(uint32(r.Interface))
	p.load(loadWord, kindOfPacket)
	p.want(0)
	if r.Addr.Is4() {
		p.load(loadByte, networkLayer)
		p.want(version4)
	} else {
		p.load(loadByte, networkLayer+6)
		p.want(eth.ProtocolUDP)
	}
	p.load(loadHalf, 4)
	return p.end(udpLengthMax, whole, 0, whole)
}
