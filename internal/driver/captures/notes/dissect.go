package notes

import (
	"github.com/softvpi/softvpi/internal/link/capture"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

const vcrcLen = 2

// dissect returns what a captured packet says, and whether its ICRC is wrong, which is not known of one of which only a part is kept;
// false: it is none of RDMA.
func (j *Joiner) dissect(p *capture.Packet) (k key, damaged, ok bool) {
	var body []byte
	var seed func(bth []byte) uint32
	switch whole := len(p.Data) == p.Length; {
	case p.InfiniBand:
		body, seed = j.infiniband(p.Data, whole)
	case p.Ethernet:
		e, packet, err := eth.ParseEthernet(p.Data)
		if err != nil {
			return k, false, false
		}
		if e.Type == eth.TypeRoCEv1 {
			body, seed = j.global(packet)
		} else {
			body, seed = j.datagram(packet)
		}
	default:
		body, seed = j.datagram(p.Data)
	}
	if len(body) < ib.BTHLen {
		return k, false, false
	}
	bth := ib.BTH(body[:ib.BTHLen])
	k = key{dest: uint32(bth.DestQP()), psn: bth.PSN(), opcode: bth.Opcode()}
	if len(p.Data) == p.Length && len(body) >= ib.BTHLen+ib.ICRCLen {
		end := len(body) - ib.ICRCLen
		damaged = ib.ICRCUpdate(seed(bth), body[ib.BTHLen:end]) != ib.ICRC(body[end:])
	}
	return k, damaged, true
}

// infiniband returns a packet from its BTH to its ICRC, and how its ICRC begins.
func (j *Joiner) infiniband(b []byte, whole bool) (body []byte, seed func([]byte) uint32) {
	if whole {
		b = b[:max(len(b)-vcrcLen, 0)]
	}
	if len(b) < ib.LRHLen {
		return nil, nil
	}
	lrh, rest := ib.LRH(b[:ib.LRHLen]), b[ib.LRHLen:]
	switch lrh.NextHeader() {
	case ib.LNHLocal:
		return rest, func(bth []byte) uint32 { return ib.ICRCSeedLRH(&j.icrc, lrh, nil, bth) }
	case ib.LNHGlobal:
		return j.global(rest)
	}
	return nil, nil
}

// global is infiniband for what begins with a GRH.
func (j *Joiner) global(b []byte) (body []byte, seed func([]byte) uint32) {
	if len(b) < ib.GRHLen || ib.GRH(b).NextHeader() != ib.GRHNextHeader {
		return nil, nil
	}
	grh := ib.GRH(b[:ib.GRHLen])
	return atMost(b[ib.GRHLen:], grh.PayLen()), func(bth []byte) uint32 { return ib.ICRCSeedGRH(&j.icrc, grh, bth) }
}

// datagram is infiniband for an IP packet. A part of one is enough: lengths are checked by whoever receives it.
func (j *Joiner) datagram(b []byte) (body []byte, seed func([]byte) uint32) {
	n := 0
	switch {
	case len(b) >= eth.IPv4Len && b[0]>>4 == 4 && eth.IPv4(b).Protocol() == eth.ProtocolUDP && !eth.IPv4(b).Fragment():
		n = eth.IPv4(b).HeaderLen()
	case len(b) >= eth.IPv6Len && b[0]>>4 == 6 && eth.IPv6(b).NextHeader() == eth.ProtocolUDP:
		n = eth.IPv6Len
	}
	if n == 0 || len(b) < n+eth.UDPLen {
		return nil, nil
	}
	ip, udp := b[:n], eth.UDP(b[n:n+eth.UDPLen])
	return atMost(b[n+eth.UDPLen:], udp.Length()-eth.UDPLen), func(bth []byte) uint32 {
		if n == eth.IPv6Len && ip[0]>>4 == 6 {
			return ib.ICRCSeedIPv6(&j.icrc, ip, udp, bth)
		}
		return ib.ICRCSeedIPv4(&j.icrc, ip, udp, bth)
	}
}

// atMost returns the first n bytes of b, or all if there are fewer.
func atMost(b []byte, n int) []byte { return b[:max(min(len(b), n), 0)] }
