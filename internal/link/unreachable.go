package link

import (
	"net/netip"

	"github.com/softvpi/softvpi/wire/ib"
)

// QuotedMAD is how much of a MAD an Unreachable keeps: its header and the first word
// behind it, which names a message of the CM to its sender.
const QuotedMAD = 28

// Unreachable is an ICMP error that a destination, or a router before it,
// answered with, or a destination that the system refused to send to.
type Unreachable struct {
	Dst  netip.Addr
	Kind UnreachableKind
	// QPN is the destination QP of the packet that was answered, where the
	// quoted bytes hold it; otherwise 0.
	QPN uint32
	// MAD is the front of the MAD that was answered, where the packet was one and the
	// quoted bytes hold that much; otherwise zeros.
	MAD [QuotedMAD]byte
	// MTU is the largest IP packet that passes, with PacketTooBig where known.
	MTU int
}

// Quote notes what the packet was that was answered: head is its front from the BTH
// on, payload what comes behind where that lies elsewhere.
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

// UnreachableKind tells what was not there.
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
