package rss

import "github.com/softvpi/softvpi/wire/eth"

// Types are types of hashes, as NDIS numbers them: what of a packet is hashed.
type Types uint32

// The types. Those of IPv6 with EX take the home address of a mobile node, if the packet's extension headers have one, for
// its source or destination.
const (
	IPv4      Types = 0x100
	TCPIPv4   Types = 0x200
	IPv6      Types = 0x400
	IPv6Ex    Types = 0x800
	TCPIPv6   Types = 0x1000
	TCPIPv6Ex Types = 0x2000
	UDPIPv4   Types = 0x4000
	UDPIPv6   Types = 0x8000
	UDPIPv6Ex Types = 0x10000

	// All are all of them.
	All = IPv4 | TCPIPv4 | UDPIPv4 | IPv6 | TCPIPv6 | UDPIPv6 | IPv6Ex | TCPIPv6Ex | UDPIPv6Ex
)

// Of returns the hash of a received frame with these headers, and its type, of those in use. The type is 0 for a frame
// without a hash: one that is not IP or cannot be understood, or none of whose types is in use.
//
// Fragments, the first included, are hashed by their addresses, so that those of a packet stay together.
func (t *Toeplitz) Of(h *eth.Headers, frame []byte, use Types) (uint32, Types) {
	return t.of(h, frame, use, false)
}

// OfSent returns the hash that frames of the other direction of a sent frame's flow have when they are received, so that
// both take the same queue (WinOF 5.50, 4.6.5: transmit side scaling).
func (t *Toeplitz) OfSent(h *eth.Headers, frame []byte, use Types) (uint32, Types) {
	return t.of(h, frame, use, true)
}

func (t *Toeplitz) of(h *eth.Headers, frame []byte, use Types, sent bool) (uint32, Types) {
	switch h.Version {
	case 4:
		kind := narrow(h, use, IPv4, TCPIPv4, UDPIPv4)
		if kind == 0 {
			return 0, 0
		}
		p := frame[h.Network:]
		src, dst := (*[4]byte)(p[12:]), (*[4]byte)(p[16:])
		if sent {
			src, dst = dst, src
		}
		hash := t.IPv4(src, dst)
		if kind != IPv4 {
			hash ^= t.portsOf(h, frame, 8, sent)
		}
		return hash, kind
	case 6:
		return t.ofIPv6(h, frame, use, sent)
	}
	return 0, 0
}

func (t *Toeplitz) ofIPv6(h *eth.Headers, frame []byte, use Types, sent bool) (uint32, Types) {
	p := frame[h.Network:]
	src, dst := (*[16]byte)(p[8:]), (*[16]byte)(p[24:])
	kind := narrow(h, use, IPv6Ex, TCPIPv6Ex, UDPIPv6Ex)
	plain := narrow(h, use, IPv6, TCPIPv6, UDPIPv6)
	// The longer hash goes first, and of equal ones that without EX, unless there is what EX is for.
	ports := plain != 0 && plain != IPv6
	if mobile := h.HomeAddress | h.Routing; kind == 0 || mobile == 0 && plain != 0 && (ports || kind == IPv6Ex) {
		kind = plain
	} else {
		if h.HomeAddress != 0 {
			src = (*[16]byte)(frame[h.HomeAddress:])
		}
		if h.Routing != 0 {
			dst = (*[16]byte)(frame[h.Routing:])
		}
	}
	if kind == 0 {
		return 0, 0
	}
	if sent {
		src, dst = dst, src
	}
	hash := t.IPv6(src, dst)
	if kind&(IPv6|IPv6Ex) == 0 {
		hash ^= t.portsOf(h, frame, 32, sent)
	}
	return hash, kind
}

// portsOf returns what the ports add to the hash of addresses that take n bytes.
func (t *Toeplitz) portsOf(h *eth.Headers, frame []byte, n int, sent bool) uint32 {
	p := frame[h.Transport:]
	src, dst := (*[2]byte)(p), (*[2]byte)(p[2:])
	if sent {
		src, dst = dst, src
	}
	return t.ports(n, src, dst)
}

// narrow returns the one of three types that says most about a packet; 0 if none of them is in use.
func narrow(h *eth.Headers, use, addresses, tcp, udp Types) Types {
	if h.Data != 0 {
		switch {
		case h.Protocol == eth.ProtocolTCP && use&tcp != 0:
			return tcp
		case h.Protocol == eth.ProtocolUDP && use&udp != 0:
			return udp
		}
	}
	return use & addresses
}
