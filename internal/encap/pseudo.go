package encap

import (
	"hash/crc32"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// v4End and v6End are the lengths of what precedes the BTH in the scratch buffer: the eight bytes of ones, and the headers.
const (
	v4End = lrhLen + eth.IPv4Len + eth.UDPLen
	v6End = lrhLen + eth.IPv6Len + eth.UDPLen
)

// bthECN is the byte of a BTH that the ICRC masks.
const bthECN = 4

// outer writes the masked IP and UDP headers of a flow to the scratch buffer, with everything that does
// not differ between packets, and returns where the BTH follows.
func (e *Encap) outer(f *flow) (at int) {
	if e.heldAt != 0 && e.held == *f {
		return e.heldAt
	}
	// The ICRC masks with ones what may change on the way.
	d := eth.Datagram{Src: f.src, Dst: f.dst, SrcPort: f.srcPort, DstPort: f.dstPort, TrafficClass: 0xff, HopLimit: 0xff,
		FlowLabel: 0xfffff}
	b := e.scratch[lrhLen:]
	d.Put(b, 0)
	at = v6End
	if f.dst.Is4() {
		eth.IPv4(b).PutChecksum(0xffff)
		at = v4End
	}
	eth.UDP(e.scratch[at-eth.UDPLen:]).SetChecksum(0xffff)
	e.held, e.heldAt = *f, at
	return at
}

// seed completes the headers written by outer with the length of the packet (from the BTH to the ICRC) and
// its identification, puts the BTH behind them, and begins the ICRC. It includes as much of head, which
// begins with the BTH, and of rest, which follows it, as makes whole blocks for the CRC's vector code; n
// is how much.
func (e *Encap) seed(at, length int, id uint16, head, rest []byte) (crc uint32, n int) {
	s := &e.scratch
	if at == v4End {
		ip := eth.IPv4(s[lrhLen:])
		ip.SetTotalLen(eth.IPv4Len + eth.UDPLen + length)
		ip.SetID(id)
	} else {
		eth.IPv6(s[lrhLen:]).SetPayloadLen(eth.UDPLen + length)
	}
	eth.UDP(s[at-eth.UDPLen:]).SetLength(eth.UDPLen + length)
	whole := (at + gather) &^ (crcBlock - 1)
	if length <= gatherShort {
		whole = at + gatherShort
	}
	n = copy(s[at:whole], head)
	n += copy(s[at+n:whole], rest)
	s[at+bthECN] = 0xff
	return crc32.Update(0, crc32.IEEETable, s[:at+n]), n
}

// bytesAfterID returns how many bytes covered by the ICRC follow the IPv4 identification, in a packet of
// length bytes from the BTH to the ICRC.
func bytesAfterID(length int) int {
	return eth.IPv4Len - 6 + eth.UDPLen + length - ib.ICRCLen
}
