package encap

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Offsets in the scratch buffer after the eight bytes of ones.
const (
	v4Length = lrhLen + 2
	v4ID     = lrhLen + 4
	v4UDP    = lrhLen + eth.IPv4Len
	v6Length = lrhLen + 4
	v6UDP    = lrhLen + eth.IPv6Len
)

// bthECN is the byte of a BTH that the ICRC masks.
const bthECN = 4

// outer writes the masked IP and UDP headers of a flow to the scratch buffer, with everything that does
// not differ between packets, and returns where the BTH follows.
func (e *Encap) outer(f *flow) (at int) {
	if e.heldAt != 0 && e.held == *f {
		return e.heldAt
	}
	s := &e.scratch
	if f.dst.Is4() {
		h := s[lrhLen : lrhLen+eth.IPv4Len]
		binary.BigEndian.PutUint32(h, 0x45ff0000)                 // version, length, ToS masked
		binary.BigEndian.PutUint32(h[4:], 0x00004000)             // identification, DF
		binary.BigEndian.PutUint32(h[8:], 0xff<<24|17<<16|0xffff) // TTL masked, UDP, checksum masked
		put4(h[12:], f.src)
		put4(h[16:], f.dst)
		at = v4UDP
	} else {
		h := s[lrhLen : lrhLen+eth.IPv6Len]
		binary.BigEndian.PutUint32(h, 0x6fffffff)     // version, traffic class and flow label masked
		binary.BigEndian.PutUint32(h[4:], 17<<8|0xff) // UDP, hop limit masked
		*(*[16]byte)(h[8:]) = f.src.As16()
		*(*[16]byte)(h[24:]) = f.dst.As16()
		at = v6UDP
	}
	binary.BigEndian.PutUint16(s[at:], f.srcPort)
	binary.BigEndian.PutUint16(s[at+2:], f.dstPort)
	binary.BigEndian.PutUint32(s[at+4:], 0xffff) // checksum masked
	e.held, e.heldAt = *f, at+eth.UDPLen
	return e.heldAt
}

// put4 writes an IPv4 address; one of another family, which no link accepts, counts as 0.0.0.0.
func put4(b []byte, a netip.Addr) {
	var v [4]byte
	if a.Is4() {
		v = a.As4()
	}
	*(*[4]byte)(b) = v
}

// seed completes the headers written by outer with the length of the packet (from the BTH to the ICRC) and
// its identification, puts the BTH behind them, and begins the ICRC. It includes as much of head, which
// begins with the BTH, and of rest, which follows it, as makes whole blocks for the CRC's vector code; n
// is how much.
func (e *Encap) seed(at, length int, id uint16, head, rest []byte) (crc uint32, n int) {
	s := &e.scratch
	if at == v4UDP+eth.UDPLen {
		binary.BigEndian.PutUint32(s[v4Length:], uint32(length+eth.IPv4Len+eth.UDPLen)<<16|uint32(id))
	} else {
		binary.BigEndian.PutUint16(s[v6Length:], uint16(length+eth.UDPLen))
	}
	binary.BigEndian.PutUint16(s[at-4:], uint16(length+eth.UDPLen))
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
