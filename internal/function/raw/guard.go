package raw

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Guard keeps the queue pairs of a function from sending RoCE with another's GID: the switch that is embedded in the port checks their
// MACs. What does not pass is dropped and counted; its request completes as if it had left, as with a card.
type Guard struct {
	// UDPPort is the UDP destination port of RoCE v2 (roce_udp_dport).
	UDPPort uint16
	// Owns reports whether a GID, or the address that it stands for, is the function's.
	Owns func(netip.Addr) bool
	// Forged are the packets with another's GID.
	Forged uint64
}

// SetGuard sets what frames have to pass that are sent; nil: all may.
func (f *Function) SetGuard(g *Guard) { f.guard = g }

// keep removes what does not pass, and returns how many frames are left.
func (g *Guard) keep(out []frame.Out) (n int) {
	for i := range out {
		if !g.passes(out[i].Head[out[i].HeadStart:out[i].HeadEnd]) {
			continue
		}
		if n < i {
			out[n] = out[i]
		}
		n++
	}
	return n
}

// passes looks at the headers of a frame, which the function has copied: the program cannot change them any more.
func (g *Guard) passes(head []byte) bool {
	e, packet, err := eth.ParseEthernet(head)
	if err != nil {
		return true // the switch drops it
	}
	if gid, ok := g.source(e.Type, packet); ok && !g.Owns(gid) {
		g.Forged++
		return false
	}
	return true
}

// source returns the GID that a RoCE packet claims to be from; ok is false if it is none.
func (g *Guard) source(t eth.EtherType, packet []byte) (gid netip.Addr, ok bool) {
	switch {
	case t == eth.TypeRoCEv1 && len(packet) >= ib.GRHLen:
		return ib.GRH(packet[:ib.GRHLen]).SGID().Addr(), true
	case t == eth.TypeIPv4 && len(packet) >= eth.IPv4Len && packet[9] == eth.ProtocolUDP:
		udp := packet[min(int(packet[0]&0xf)*4, len(packet)):]
		return netip.AddrFrom4([4]byte(packet[12:16])), g.roce(udp)
	case t == eth.TypeIPv6 && len(packet) >= eth.IPv6Len && packet[6] == eth.ProtocolUDP:
		return netip.AddrFrom16([16]byte(packet[8:24])), g.roce(packet[eth.IPv6Len:])
	}
	return gid, false
}

// roce reports whether a datagram goes to the port of RoCE v2, or is too short to tell.
func (g *Guard) roce(udp []byte) bool {
	return len(udp) < eth.UDPLen || eth.UDP(udp).DstPort() == g.UDPPort
}
