package packet

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"

	"github.com/softvpi/softvpi/wire/eth"
)

// networkLayer is an offset outside the packet: the start of the IP header (SKF_NET_OFF of linux/filter.h).
const networkLayer = 0xfff00000

const (
	toThisHost   = 0       // PACKET_HOST of linux/if_packet.h
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
	code []bpf.Instruction
	exit []int // conditions with a way out
}

func (p *program) load(size int, at uint32) {
	p.code = append(p.code, bpf.LoadAbsolute{Off: at, Size: size})
}

// about loads what the system says about the packet.
func (p *program) about(what bpf.Extension) {
	p.code = append(p.code, bpf.LoadExtension{Num: what})
}

// want continues if the accumulator equals k.
func (p *program) want(k uint32) { p.test(bpf.JumpEqual, k) }

// wantNone continues if the accumulator has none of these bits.
func (p *program) wantNone(bits uint32) { p.test(bpf.JumpBitsNotSet, bits) }

func (p *program) test(condition bpf.JumpTest, k uint32) {
	p.exit = append(p.exit, len(p.code))
	p.code = append(p.code, bpf.JumpIf{Cond: condition, Val: k})
}

// end takes long bytes where the accumulator is more than most, else short ones, and
// other bytes where a condition did not hold.
func (p *program) end(most, long, short, other uint32) []bpf.Instruction {
	p.code = append(p.code,
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: most, SkipFalse: 1},
		bpf.RetConstant{Val: long},
		bpf.RetConstant{Val: short},
		bpf.RetConstant{Val: other})
	for _, i := range p.exit {
		jump := p.code[i].(bpf.JumpIf)
		jump.SkipFalse = uint8(len(p.code) - 2 - i)
		p.code[i] = jump
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
func (r Rule) ring() []bpf.Instruction { return r.frames(r.kind(), uint32(r.headers()), whole) }

// alarm is the filter of a ring beside a gate: it takes the headers of frames that wake, which differ from the rule's
// packets in their Ethernet type.
func (r Rule) alarm(kind uint32) []bpf.Instruction { return r.frames(kind, 0, uint32(r.headers())) }

// kind returns the Ethernet type of the rule's packets.
func (r Rule) kind() uint32 {
	if r.Addr.Is4() {
		return uint32(eth.TypeIPv4)
	}
	return uint32(eth.TypeIPv6)
}

// frames is a filter for packets of the rule, but with Ethernet type kind: it takes long bytes of long packets and short
// bytes of short ones.
func (r Rule) frames(kind, long, short uint32) []bpf.Instruction {
	var p program
	p.about(bpf.ExtType)
	p.want(toThisHost)
	p.about(bpf.ExtVLANTag)
	p.wantNone(anyVLAN)
	const ip = eth.EthernetLen
	udp := uint32(r.headers() - eth.UDPLen)
	p.load(2, 12)
	p.want(kind)
	if r.Addr.Is4() {
		p.load(1, ip)
		p.want(version4)
		p.load(1, ip+9)
		p.want(eth.ProtocolUDP)
		p.load(2, ip+6)
		p.wantNone(anyFragment)
		b := r.Addr.As4()
		p.words(ip+16, b[:])
	} else {
		p.load(1, ip+6)
		p.want(eth.ProtocolUDP)
		b := r.Addr.As16()
		p.words(ip+24, b[:])
	}
	p.load(2, udp+2)
	p.want(uint32(r.Port))
	p.load(2, udp+4)
	return p.end(udpLengthMax, long, short, 0)
}

// words continues if the packet has these bytes at offset at.
func (p *program) words(at uint32, b []byte) {
	for i := 0; i < len(b); i += 4 {
		p.load(4, at+uint32(i))
		p.want(binary.BigEndian.Uint32(b[i:]))
	}
}

// socket is the filter of the UDP socket that is bound to the rule's address and port, which
// begins at the UDP header: it drops what the ring has whole. Fragments never come so far.
func (r Rule) socket() []bpf.Instruction {
	var p program
	p.about(bpf.ExtInterfaceIndex)
	p.want(uint32(r.Interface))
	p.about(bpf.ExtType)
	p.want(toThisHost)
	if r.Addr.Is4() {
		p.load(1, networkLayer)
		p.want(version4)
	} else {
		p.load(1, networkLayer+6)
		p.want(eth.ProtocolUDP)
	}
	p.load(2, 4)
	return p.end(udpLengthMax, whole, 0, whole)
}
