package ib

import (
	"encoding/binary"
	"hash/crc32"
)

// ICRCScratch is a buffer for the masked headers. Callers keep one in a long-lived object (a queue pair or
// a loop), because the CRC's assembly would make a local one escape to the heap. It is large enough for
// the longest case: eight bytes of ones, an IPv4 header with options, UDP and BTH.
type ICRCScratch [lrhOnes + 60 + 8 + BTHLen]byte

const lrhOnes = 8 // eight bytes of ones stand for the missing LRH

// The ICRC is the Ethernet CRC-32 (IBA 7.8.1). It is computed in three steps: a seed over the headers, in
// which the fields that the network may change are masked; ICRCUpdate over the rest, in any number of
// pieces; and PutICRC. The running value is that of hash/crc32.

// ICRCSeedIPv4 starts the ICRC of a RoCE v2 packet over IPv4: ip is the header, 20 to 60 bytes, udp 8 and
// bth 12. It masks ToS, TTL, header checksum, the UDP checksum and the BTH's congestion byte.
func ICRCSeedIPv4(s *ICRCScratch, ip, udp, bth []byte) uint32 {
	s.ones()
	n := lrhOnes + copy(s[lrhOnes:lrhOnes+60], ip)
	s[lrhOnes+1], s[lrhOnes+8] = 0xff, 0xff
	s[lrhOnes+10], s[lrhOnes+11] = 0xff, 0xff
	return s.udp(n, udp, bth)
}

// ICRCSeedIPv6 starts the ICRC of a RoCE v2 packet over IPv6: ip is 40 bytes, udp 8 and bth 12. It masks
// traffic class, flow label, hop limit, the UDP checksum and the BTH's congestion byte.
func ICRCSeedIPv6(s *ICRCScratch, ip, udp, bth []byte) uint32 {
	s.ones()
	s.v6(lrhOnes, ip)
	return s.udp(lrhOnes+GRHLen, udp, bth)
}

// ICRCSeedGRH starts the ICRC of a RoCE v1 packet: grh is 40 bytes and bth 12. It masks traffic class,
// flow label, hop limit and the BTH's congestion byte.
func ICRCSeedGRH(s *ICRCScratch, grh, bth []byte) uint32 {
	s.ones()
	s.v6(lrhOnes, grh)
	return s.bth(lrhOnes+GRHLen, bth)
}

// ICRCSeedLRH starts the ICRC of an InfiniBand packet: lrh is 8 bytes, grh 40 or none, bth 12. Without a
// GRH it masks only the virtual lane in the LRH; with one it masks the whole LRH, and the GRH as for RoCE
// v1 (IBA 7.8.1).
func ICRCSeedLRH(s *ICRCScratch, lrh, grh, bth []byte) uint32 {
	if len(grh) != 0 {
		return ICRCSeedGRH(s, grh, bth)
	}
	copy(s[:LRHLen], lrh)
	s[0] |= 0xf0
	return s.bth(LRHLen, bth)
}

func (s *ICRCScratch) ones() { binary.NativeEndian.PutUint64(s[:], ^uint64(0)) }

// v6 puts a masked IPv6 header or GRH at offset n.
func (s *ICRCScratch) v6(n int, ip []byte) {
	h := s[n : n+GRHLen]
	copy(h, ip)
	h[0] |= 0x0f
	h[1], h[2], h[3], h[7] = 0xff, 0xff, 0xff, 0xff
}

// udp puts a masked UDP header and BTH at offset n and runs the CRC over everything.
func (s *ICRCScratch) udp(n int, udp, bth []byte) uint32 {
	copy(s[n:n+8], udp)
	s[n+6], s[n+7] = 0xff, 0xff
	return s.bth(n+8, bth)
}

// bth puts a masked BTH at offset n and runs the CRC over everything.
func (s *ICRCScratch) bth(n int, bth []byte) uint32 {
	copy(s[n:n+BTHLen], bth)
	s[n+bthECN] = 0xff
	return crc32.Update(0, crc32.IEEETable, s[:n+BTHLen])
}

// ICRCUpdate continues the ICRC over p: extended headers, payload and pad, in this order.
func ICRCUpdate(crc uint32, p []byte) uint32 {
	switch {
	case multiplies && len(p) <= shortPiece:
		return icrcShort(crc, p)
	case icrcByTables:
		return icrcSlices(crc, p)
	}
	return crc32.Update(crc, crc32.IEEETable, p)
}

// icrcSlices is ICRCUpdate using tables.
func icrcSlices(crc uint32, p []byte) uint32 { return ^bySlices(crcTables, ^crc, p) }

// shortPiece is the length up to which folding one block at a time is as fast as folding four.
const shortPiece = 128

// icrcWords processes four bytes at a time with tables, then the remaining bytes one by one.
func icrcWords(crc uint32, p []byte) uint32 {
	for ; len(p) >= 4; p = p[4:] {
		crc = ICRCWord(crc, p)
	}
	c := ^crc
	for _, b := range p {
		c = c>>8 ^ crcTables[0][byte(c)^b]
	}
	return ^c
}

// ICRCWord continues the ICRC over the first four bytes of b. It is cheaper than ICRCUpdate, which is made
// for long pieces.
func ICRCWord(crc uint32, b []byte) uint32 {
	v := ^crc ^ binary.LittleEndian.Uint32(b)
	return ^(crcTables[3][byte(v)] ^ crcTables[2][byte(v>>8)] ^ crcTables[1][byte(v>>16)] ^ crcTables[0][v>>24])
}

var crcTables = byteTables(*crc32.IEEETable)

// PutICRC writes the finished ICRC to the first four bytes of b, least significant byte first.
func PutICRC(b []byte, crc uint32) { binary.LittleEndian.PutUint32(b, crc) }

// ICRC is the ICRC that a packet carries in the first four bytes of b.
func ICRC(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
