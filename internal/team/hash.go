package team

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/wire/eth"
)

// grhLen is the length of RoCE v1's global route header, whose GIDs stand where IPv6 has its addresses (IBA annex A16, 8.3).
const grhLen = 40

// flow is a number of the flow of a frame, of which b is the beginning. Frames of one flow have one number, whatever else they carry.
func flow(b []byte, layer Hash) uint32 {
	if layer == L2 {
		return linkFlow(b)
	}
	at := eth.EthernetLen - 2
	kind := eth.EtherType(binary.BigEndian.Uint16(b[at:]))
	for tags := 0; (kind == eth.TypeVLAN || kind == eth.TypeServiceVLAN) && tags < eth.MaxTags && len(b) >= at+eth.VLANLen+2; tags++ {
		at += eth.VLANLen
		kind = eth.EtherType(binary.BigEndian.Uint16(b[at:]))
	}
	ip := b[at+2:]
	switch {
	case kind == eth.TypeIPv4 && len(ip) >= eth.IPv4Len:
		return flow4(ip, layer)
	case (kind == eth.TypeIPv6 || kind == eth.TypeRoCEv1) && len(ip) >= grhLen:
		return flow6(ip, layer, kind)
	}
	return linkFlow(b)
}

// linkFlow is by what is in every frame: MACs and what follows them, of a tag only its VLAN.
func linkFlow(b []byte) uint32 {
	h := mix(seed, binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]))
	const type2 = eth.EthernetLen + eth.VLANLen
	if eth.EtherType(binary.BigEndian.Uint16(b[12:])) == eth.TypeVLAN && len(b) >= type2 {
		tci := binary.BigEndian.Uint16(b[14:]) & eth.VIDMask
		return finish(mix(h, uint32(tci), uint32(binary.BigEndian.Uint16(b[16:]))))
	}
	return finish(mix(h, uint32(binary.BigEndian.Uint16(b[12:]))))
}

func flow4(ip []byte, layer Hash) uint32 {
	const fragment, moreOrOffset, addresses = 6, 0x3fff, 12
	h := mix(seed, binary.BigEndian.Uint32(ip[addresses:]), binary.BigEndian.Uint32(ip[addresses+4:]))
	n := eth.IPv4(ip).HeaderLen()
	// Fragments go by the addresses alone, and so the first one does: it knows the ports, but the others do not.
	if layer == L4 && binary.BigEndian.Uint16(ip[fragment:])&moreOrOffset == 0 && n >= eth.IPv4Len && len(ip) >= n {
		h = ports(h, eth.IPv4(ip).Protocol(), ip[n:])
	}
	return finish(h)
}

func flow6(ip []byte, layer Hash, kind eth.EtherType) uint32 {
	const addresses = 8
	h := uint32(seed)
	for i := addresses; i < grhLen; i += 4 {
		h = mix(h, binary.BigEndian.Uint32(ip[i:]))
	}
	if layer == L4 && kind == eth.TypeIPv6 {
		h = ports(h, eth.IPv6(ip).NextHeader(), ip[grhLen:])
	}
	return finish(h)
}

// ports adds those of UDP and TCP.
func ports(h uint32, protocol uint8, b []byte) uint32 {
	const tcp = 6
	if protocol != eth.ProtocolUDP && protocol != tcp || len(b) < 4 {
		return h
	}
	return mix(h, binary.BigEndian.Uint32(b))
}

// seed begins a number, which mix goes on with: the steps of MurmurHash3 (Appleby, public domain).
const seed = 0x9747b28c

func mix(h uint32, words ...uint32) uint32 {
	for _, k := range words {
		k *= 0xcc9e2d51
		k = k<<15 | k>>17
		h ^= k * 0x1b873593
		h = (h<<13|h>>19)*5 + 0xe6546b64
	}
	return h
}

func finish(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
