package verbs

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/function/rdma/gid"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/datagram"
	"github.com/softvpi/softvpi/internal/link/ethernet"
	"github.com/softvpi/softvpi/internal/link/tap"
)

// Ethernet is what carries whole Ethernet frames of an embedded adapter: exactly one of Interface, TAP and Datagram is given. An
// adapter on such a wire has raw packet QPs.
type Ethernet struct {
	// Interface is an Ethernet interface of the system, in the network namespace of the thread that embeds (root, or
	// CAP_NET_RAW).
	Interface string
	// TAP is the name of a TAP interface, which is made if there is none (CAP_NET_ADMIN); it is the other end.
	TAP string
	// Datagram is the path of the unix socket on which frames arrive, and Peer that of the other side's; empty: Datagram with
	// ".peer" behind it. QEMU's -netdev dgram is such a side.
	Datagram, Peer string
	// MAC is the adapter's; zero: the interface's, or one made of the address.
	MAC [6]byte
	// VLAN tags the frames of RDMA, 1 to 4094; 0: they are not tagged.
	VLAN uint16
	// Prefix is the length of the network of the adapter's address that is on the wire; 0: all of it.
	Prefix int
	// MTU is the largest IP packet in bytes, 576 to 65521, that a datagram wire carries, 0: 1500; or what is set on a TAP, 0:
	// it keeps its own. An interface has its own.
	MTU int
}

// put completes the configuration of an adapter that is on the wire, and opens its link.
func (w *Ethernet) put(cfg *device.AdapterConfig, wake func()) error {
	given := 0
	for _, name := range []string{w.Interface, w.TAP, w.Datagram} {
		if name != "" {
			given++
		}
	}
	bits := cfg.Addr.BitLen()
	switch {
	case given != 1:
		return newError("embed", ErrInvalid, "Ethernet has %d of Interface, TAP and Datagram, want one", given)
	case w.VLAN > 4094:
		return newError("embed", ErrInvalid, "Ethernet.VLAN is %d, want 1 to 4094, or 0", w.VLAN)
	case w.Prefix < 0 || w.Prefix > bits:
		return newError("embed", ErrInvalid, "Ethernet.Prefix is %d, want 1 to %d, or 0", w.Prefix, bits)
	case w.Interface != "" && w.MTU != 0:
		return newError("embed", ErrInvalid, "Ethernet.MTU is %d, want 0 with an interface, which has its own", w.MTU)
	case w.Datagram == "" && w.Peer != "":
		return newError("embed", ErrInvalid, "Ethernet.Peer is given without Datagram")
	}
	cfg.MAC, cfg.VLAN = w.MAC, w.VLAN
	if w.MAC == [6]byte{} && w.Interface == "" {
		cfg.MAC = gid.MAC(cfg.Addr)
	}
	if w.Prefix != 0 {
		cfg.Networks = []netip.Prefix{netip.PrefixFrom(cfg.Addr, w.Prefix)}
	}
	l, err := w.open(cfg, wake)
	if err != nil {
		return fmt.Errorf("verbs: embed: Ethernet: %w", err)
	}
	cfg.Link = l
	return nil
}

func (w *Ethernet) open(cfg *device.AdapterConfig, wake func()) (link.Link, error) {
	switch {
	case w.Interface != "":
		return ethernet.Open(ethernet.Config{Interface: w.Interface, UDPPort: cfg.UDPPort, ReceiveBuffer: cfg.ReceiveBuffer})
	case w.TAP != "":
		return tap.Open(tap.Config{Name: w.TAP, MTU: w.MTU, Up: true})
	}
	peer := w.Peer
	if peer == "" {
		peer = w.Datagram + ".peer"
	}
	return datagram.Open(datagram.Config{Local: w.Datagram, Remote: peer, MTU: w.MTU, Notify: wake})
}
