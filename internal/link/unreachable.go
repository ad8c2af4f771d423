package link

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/ib"
)

// QuotedMAD is how many bytes of a MAD an Unreachable keeps: its header and the following word, which
// identifies a message of the CM to its sender.
const QuotedMAD = 28

// Unreachable is an ICMP error from a destination, or a router on the way, or a destination to which the
// system refused to send.
type Unreachable struct {
	Dst  netip.Addr
	Kind UnreachableKind
	// QPN is the destination QP of the packet that caused it, if the quoted bytes contain it; otherwise 0.
	QPN uint32
	// MAD is the beginning of the MAD that caused it, if the packet was one and enough bytes are quoted;
	// otherwise zeros.
	MAD [QuotedMAD]byte
	// MTU is the largest IP packet that passes, for PacketTooBig if known.
	MTU int
}

// Quote records the packet that caused the error: head is its beginning from the BTH on, payload what
// follows if it is stored elsewhere.
func (u *Unreachable) Quote(head, payload []byte) {
	if len(head) < ib.BTHLen {
		return
	}
	bth := ib.BTH(head)
	u.QPN = uint32(bth.DestQP())
	if bth.DestQP() != ib.QPGSI || bth.Opcode() != ib.UDSendOnly || len(head) < ib.BTHLen+ib.DETHLen {
		return
	}
	front := head[ib.BTHLen+ib.DETHLen:]
	if len(front)+len(payload) < QuotedMAD {
		return
	}
	n := copy(u.MAD[:], front)
	copy(u.MAD[n:], payload)
}

// UnreachableKind tells what could not be reached.
type UnreachableKind uint8

// The kinds of unreachable destinations (RFC 792, RFC 4443).
const (
	PortUnreachable UnreachableKind = iota + 1
	HostUnreachable
	NetworkUnreachable
	PacketTooBig // the path carries no packets of this length
)

// String returns the kind in the words of RFC 792.
func (k UnreachableKind) String() string {
	switch k {
	case PortUnreachable:
		return "port unreachable"
	case HostUnreachable:
		return "host unreachable"
	case NetworkUnreachable:
		return "network unreachable"
	case PacketTooBig:
		return "packet too big"
	}
	return "reachable"
}
