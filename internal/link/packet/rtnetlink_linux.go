package packet

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The rtnetlink messages (rtnetlink(7)) that are needed: requests for a route, a neighbour and an
// interface, and the answers, which are also the messages that notify of changes.

const (
	align    = 4
	typeMask = 0x3fff // without the flags of nested and big-endian values
)

func aligned(n int) int { return (n + align - 1) &^ (align - 1) }

// request builds a message: a header and a fixed part; attributes can be added.
func request(b []byte, kind, flags uint16, fixed []byte) []byte {
	b = append(b[:0], make([]byte, unix.SizeofNlMsghdr)...)
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], flags)
	b = append(b, fixed...)
	return finished(b)
}

// attribute adds an attribute to a message.
func attribute(b []byte, kind uint16, value []byte) []byte {
	var h [unix.SizeofRtAttr]byte
	binary.NativeEndian.PutUint16(h[:], uint16(len(h)+len(value)))
	binary.NativeEndian.PutUint16(h[2:], kind)
	b = append(append(b, h[:]...), value...)
	b = append(b, make([]byte, aligned(len(b))-len(b))...)
	return finished(b)
}

// finished puts the length into a message's header.
func finished(b []byte) []byte {
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

// nextMessage splits off the first message received from a netlink socket; body is nil if there is no
// complete one.
func nextMessage(b []byte) (kind uint16, body, rest []byte) {
	if len(b) < unix.SizeofNlMsghdr {
		return 0, nil, nil
	}
	n := int(binary.NativeEndian.Uint32(b))
	if n < unix.SizeofNlMsghdr || n > len(b) {
		return 0, nil, nil
	}
	return binary.NativeEndian.Uint16(b[4:]), b[unix.SizeofNlMsghdr:n:n], b[min(aligned(n), len(b)):]
}

// nextAttribute splits off the first attribute; ok is false if there is no complete one.
func nextAttribute(b []byte) (kind uint16, value, rest []byte, ok bool) {
	if len(b) < unix.SizeofRtAttr {
		return 0, nil, nil, false
	}
	n := int(binary.NativeEndian.Uint16(b))
	if n < unix.SizeofRtAttr || n > len(b) {
		return 0, nil, nil, false
	}
	return binary.NativeEndian.Uint16(b[2:]) & typeMask, b[unix.SizeofRtAttr:n], b[min(aligned(n), len(b)):], true
}

func family(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// route says how the system would send a packet.
type route struct {
	gateway netip.Addr // invalid if the destination is a neighbour
	out     int        // index of the interface
	unicast bool       // to another host, by an Ethernet address
}

// askRoute builds the request for the route of a UDP datagram.
func askRoute(b []byte, src, dst netip.Addr, srcPort, dstPort uint16, out int) []byte {
	var fixed [unix.SizeofRtMsg]byte
	bits := uint8(dst.BitLen())
	fixed[0], fixed[1], fixed[2] = family(dst), bits, bits
	b = request(b, unix.RTM_GETROUTE, unix.NLM_F_REQUEST, fixed[:])
	b = attribute(b, unix.RTA_DST, dst.AsSlice())
	b = attribute(b, unix.RTA_SRC, src.AsSlice())
	b = attribute(b, unix.RTA_IP_PROTO, []byte{unix.IPPROTO_UDP})
	b = attribute(b, unix.RTA_SPORT, binary.BigEndian.AppendUint16(nil, srcPort))
	b = attribute(b, unix.RTA_DPORT, binary.BigEndian.AppendUint16(nil, dstPort))
	if dst.IsLinkLocalUnicast() { // such an address needs its zone
		b = attribute(b, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(out)))
	}
	return b
}

// parseRoute decodes an RTM_NEWROUTE.
func parseRoute(b []byte) (r route, ok bool) {
	if len(b) < unix.SizeofRtMsg {
		return r, false
	}
	r.unicast = b[7] == unix.RTN_UNICAST
	for b = b[unix.SizeofRtMsg:]; ; {
		kind, value, rest, more := nextAttribute(b)
		if !more {
			return r, r.out != 0
		}
		switch kind {
		case unix.RTA_OIF:
			r.out = number(value)
		case unix.RTA_GATEWAY:
			r.gateway, _ = netip.AddrFromSlice(value)
		case unix.RTA_VIA: // of another family: two bytes, then the address
			if len(value) > 2 {
				r.gateway, _ = netip.AddrFromSlice(value[2:])
			}
		case unix.RTA_MULTIPATH, unix.RTA_ENCAP:
			r.unicast = false // by means that frames cannot follow
		}
		b = rest
	}
}

func number(b []byte) int {
	if len(b) < 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(b))
}

// neighbour is an entry of the system's neighbour table.
type neighbour struct {
	addr  netip.Addr
	out   int
	mac   [6]byte
	valid bool // the system would send to mac
}

// validStates are those in which the system uses an entry (its NUD_VALID).
const validStates = unix.NUD_PERMANENT | unix.NUD_NOARP | unix.NUD_REACHABLE | unix.NUD_PROBE | unix.NUD_STALE | unix.NUD_DELAY

// askNeighbour builds the request for the entry of an address on an interface.
func askNeighbour(b []byte, addr netip.Addr, out int) []byte {
	var fixed [unix.SizeofNdMsg]byte
	fixed[0] = family(addr)
	binary.NativeEndian.PutUint32(fixed[4:], uint32(out))
	b = request(b, unix.RTM_GETNEIGH, unix.NLM_F_REQUEST, fixed[:])
	return attribute(b, unix.NDA_DST, addr.AsSlice())
}

// parseNeighbour decodes an RTM_NEWNEIGH or, if gone, an RTM_DELNEIGH.
func parseNeighbour(b []byte, gone bool) (n neighbour, ok bool) {
	if len(b) < unix.SizeofNdMsg {
		return n, false
	}
	n.out = number(b[4:])
	state := binary.NativeEndian.Uint16(b[8:])
	known := false
	for b = b[unix.SizeofNdMsg:]; ; {
		kind, value, rest, more := nextAttribute(b)
		if !more {
			n.valid = known && !gone && state&validStates != 0
			return n, n.addr.IsValid()
		}
		switch kind {
		case unix.NDA_DST:
			n.addr, _ = netip.AddrFromSlice(value)
		case unix.NDA_LLADDR:
			known = len(value) == len(n.mac)
			copy(n.mac[:], value)
		}
		b = rest
	}
}

// device is an interface.
type device struct {
	kind     uint16 // ARPHRD_*
	mac      [6]byte
	enslaved bool
	up       bool
}

// askDevice builds the request for an interface.
func askDevice(b []byte, index int) []byte {
	var fixed [unix.SizeofIfInfomsg]byte
	binary.NativeEndian.PutUint32(fixed[4:], uint32(index))
	return request(b, unix.RTM_GETLINK, unix.NLM_F_REQUEST, fixed[:])
}

// parseDevice decodes an RTM_NEWLINK.
func parseDevice(b []byte) (d device, ok bool) {
	if len(b) < unix.SizeofIfInfomsg {
		return d, false
	}
	d.kind = binary.NativeEndian.Uint16(b[2:])
	d.up = binary.NativeEndian.Uint32(b[8:])&unix.IFF_UP != 0
	for b = b[unix.SizeofIfInfomsg:]; ; {
		kind, value, rest, more := nextAttribute(b)
		if !more {
			return d, true
		}
		switch kind {
		case unix.IFLA_ADDRESS:
			if len(value) == len(d.mac) {
				copy(d.mac[:], value)
			}
		case unix.IFLA_MASTER:
			d.enslaved = number(value) != 0
		}
		b = rest
	}
}
