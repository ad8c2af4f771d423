// Package encap is between the transport and the link: it puts the outer headers of a RoCE
// mode, or of InfiniBand, around packets and makes their ICRC, and on the way in checks and
// strips them.
//
// On a UDP socket the kernel writes the outer headers, so that only the ICRC is made here,
// over the headers as the kernel will write them: no options, DF set, and as
// identification the packet's place in its burst (0 for single packets). On a link that
// carries whole frames everything from the Ethernet header on is written here.
//
// A link that cannot make the kernel use those headers, as the portable UDP link over IPv4,
// where the kernel picks the identification, sends packets whose ICRC is right only to
// receivers that do not see the identification either: to other UDP links, but not to cards
// or kernels. Over IPv6, which has none, there is no such limit.
package encap

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// Mode is a RoCE mode or InfiniBand, numbered as in command.AdapterInfo.
type Mode uint32

// The modes. v1 and v1.25 frame alike and differ in their GIDs: made from the MAC
// address, or from the IP addresses.
const (
	RoCEv1     Mode = 1
	RoCEv125   Mode = 2
	RoCEv2     Mode = 3
	InfiniBand Mode = 4
)

// String is the mode as the manuals write it.
func (m Mode) String() string {
	switch m {
	case RoCEv1:
		return "RoCE v1"
	case RoCEv125:
		return "RoCE v1.25"
	case RoCEv2:
		return "RoCE v2"
	case InfiniBand:
		return "InfiniBand"
	}
	return fmt.Sprintf("RoCE mode %d", uint32(m))
}

// Counters count received packets that were dropped, or taken in spite of something. Plain
// words: the owner of the loop writes them.
type Counters struct {
	// ICRCErrors are packets whose ICRC is wrong, with any identification.
	ICRCErrors uint64
	// ICRCIDInferred are packets that were taken although the identification which makes
	// the ICRC right is neither 0 nor their place in the burst: Linux Soft-RoCE and cards
	// number their packets, and a socket does not show the number. A corrupt packet passes
	// so with probability 2^-16, on top of the UDP and Ethernet checks.
	ICRCIDInferred uint64
	// Placed are packets whose payload was copied to its place together with its ICRC.
	Placed uint64
	// Malformed are packets too short for a BTH and an ICRC, or not a multiple of four
	// bytes long, and frames and packets whose headers contradict themselves.
	Malformed uint64
	// NotForUs are packets to another address, and frames that are not of the RoCE mode.
	NotForUs uint64
}

// defaultHopLimit is the hop limit of routes that leave it 0.
const defaultHopLimit = 64

// maxHeader is the longest IP and UDP header that is written here.
const maxHeader = eth.IPv6Len + eth.UDPLen

// gather is how much from the BTH on joins the outer headers in the scratch, so that
// one call of the CRC covers both. It is cut to a multiple of crcBlock over all: the CRC
// of hash/crc32 takes whole blocks of that size in vectors, from 64 bytes on, and the
// bytes left over one table at a time. Packets of up to gatherShort bytes go there as a
// whole, because what would be left of them is too short for vectors.
const (
	gather      = 64
	gatherShort = 192
	crcBlock    = 16
)

// Encap is the encapsulation of one adapter's port. It is used by the owner of its loop only.
type Encap struct {
	mode     Mode
	addrs    []netip.Addr
	caps     link.Capabilities
	port     uint16
	counters Counters
	icrc     ib.ICRCScratch // for frames with IP options and GRHs
	scratch  [lrhLen + maxHeader + gatherShort]byte
	held     flow // whose outer headers are in the scratch
	heldAt   int  // where the BTH goes behind them
	streams  [streamsKept]stream
	came     stream // that of the packet which came last of those that may
	nextID   uint16 // IPv4 identification to be expected next; 0: that of the packet's place in its burst
	ib       infiniband
}

const lrhLen = ib.LRHLen // eight bytes of ones for the missing LRH begin every ICRC

// New makes the encapsulation of a port with the addresses addrs, which are the ones that
// received packets may be for. A GID of RoCE v1 or InfiniBand is an address too: the IPv6
// one with its bytes. An InfiniBand port's LIDs come with SetPort. port is the RoCE v2 UDP destination port, 0 for 4791. The error is about a mode that
// is none, or that the link cannot carry.
func New(mode Mode, addrs []netip.Addr, caps link.Capabilities, port uint16) (*Encap, error) {
	switch mode {
	case RoCEv1, RoCEv125:
		if !caps.Raw {
			return nil, fmt.Errorf("%v needs a link that carries whole Ethernet frames, a UDP socket carries RoCE v2 only", mode)
		}
	case RoCEv2, InfiniBand:
	default:
		return nil, fmt.Errorf("RoCE mode is %d, want 1 (v1), 2 (v1.25), 3 (v2) or 4 (InfiniBand)", uint32(mode))
	}
	if (mode == InfiniBand) != caps.InfiniBand {
		return nil, fmt.Errorf("%v and the link do not go together: one is InfiniBand and the other is not", mode)
	}
	if port == 0 {
		port = eth.PortRoCEv2
	}
	e := &Encap{mode: mode, caps: caps, port: port}
	for i := range lrhLen {
		e.scratch[i] = 0xff
	}
	e.SetAddrs(addrs)
	return e, nil
}

// SetAddrs replaces the port's addresses, which change while it runs.
func (e *Encap) SetAddrs(addrs []netip.Addr) {
	e.addrs, e.came = e.addrs[:0], stream{}
	for _, a := range addrs {
		e.addrs = append(e.addrs, a.Unmap().WithZone(""))
	}
}

// Counters returns a copy of the counters.
func (e *Encap) Counters() Counters { return e.counters }

// local reports whether a is an address of the port or a group. Which groups are joined is
// known to the link and the transport.
func (e *Encap) local(a netip.Addr) bool {
	for i := range e.addrs {
		if e.addrs[i] == a {
			return true
		}
	}
	return a.IsMulticast()
}

// own is the port's first address of the family of peer, for packets that do not say to
// which one they came.
func (e *Encap) own(peer netip.Addr) netip.Addr {
	for _, a := range e.addrs {
		if a.Is4() == peer.Is4() {
			return a
		}
	}
	return netip.Addr{}
}
