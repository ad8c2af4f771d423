// Package encap is the layer between the transport and the link: on sending it adds the outer headers of a
// RoCE mode, or of InfiniBand, and computes the ICRC; on receiving it checks and strips them.
//
// On a UDP socket the kernel writes the outer headers, so that only the ICRC is computed here, over the
// headers as the kernel will write them: no options, DF set, and as identification the packet's position
// in its burst (0 for single packets). On a link that carries whole frames everything from the Ethernet
// header on is written here.
//
// Some links cannot make the kernel use those headers, like the portable UDP link over IPv4, where the
// kernel chooses the identification. Their packets have a correct ICRC only for receivers that do not see
// the identification either: other UDP links, but not hardware adapters or kernels. IPv6 has no
// identification, hence no such limit.
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

// The modes. v1 and v1.25 have the same frames but different GIDs: derived from the MAC address, or from
// the IP addresses.
const (
	RoCEv1     Mode = 1
	RoCEv125   Mode = 2
	RoCEv2     Mode = 3
	InfiniBand Mode = 4
)

// String returns the mode as written in the manuals.
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

// Counters count received packets that were dropped, or accepted under special conditions. They are plain
// words, written by the owner of the loop.
type Counters struct {
	// ICRCErrors are packets whose ICRC is wrong for every identification that their sender may have used.
	ICRCErrors uint64
	// ICRCIDInferred are packets that were accepted although the identification for which the ICRC is
	// correct is neither 0 nor their position in the burst: Linux Soft-RoCE and hardware adapters number
	// their packets, and a socket does not reveal the number.
	ICRCIDInferred uint64
	// ICRCIDOpen are those of them for which every identification was acceptable: the first packets of a sender,
	// and those after a jump. A corrupt packet passes this way with probability 2^-16, in addition to the UDP
	// and Ethernet checks; the number of attempts is limited.
	ICRCIDOpen uint64
	// ICRCIDRefused are ICRC errors of packets whose ICRC would be correct for an identification that their
	// sender is not expected to have used: corrupt packets, or a sender that jumps.
	ICRCIDRefused uint64
	// Placed are packets whose payload was copied to its destination while computing the ICRC.
	Placed uint64
	// Malformed are packets too short for a BTH and an ICRC, or not a multiple of four bytes long, and
	// frames and packets with inconsistent headers.
	Malformed uint64
	// NotForUs are packets to another address, and frames of another RoCE mode.
	NotForUs uint64
	// OtherMode are those of them that are RoCE packets of another mode.
	OtherMode uint64
}

// maxHeader is the maximum length of the IP and UDP headers written here.
const maxHeader = eth.IPv6Len + eth.UDPLen

// gather is how many bytes from the BTH on join the outer headers in the scratch buffer, so that one call
// of the CRC covers both. The total is rounded down to a multiple of crcBlock: the CRC of hash/crc32
// processes whole blocks of that size with vector instructions, from 64 bytes on, and the remaining bytes
// one table at a time. Packets of up to gatherShort bytes go there completely, because the remainder would
// be too short for vectors.
const (
	gather      = 64
	gatherShort = 192
	crcBlock    = 16
)

// Encap is the encapsulation for one adapter's port. Only the owner of its loop may use it.
type Encap struct {
	mode     Mode
	addrs    []netip.Addr
	caps     link.Capabilities
	port     uint16
	counters Counters
	icrc     ib.ICRCScratch // for frames with IP options and GRHs
	scratch  [lrhLen + maxHeader + gatherShort]byte
	held     flow // whose outer headers are in scratch
	heldAt   int  // where the BTH goes behind them
	streams  [streamsKept]stream
	came     *stream // of the most recent packet of a stream that may be received, in streams
	nextID   uint16  // IPv4 identification expected next; 0: the packet's position in its burst
	ids      numberings
	ib       infiniband
}

const lrhLen = ib.LRHLen // eight bytes of ones stand for the missing LRH at the start of every ICRC

// New creates the encapsulation for a port. addrs are the port's addresses, to which received packets may
// be sent. A GID of RoCE v1 or InfiniBand is an address too: the IPv6 address with the same bytes. An
// InfiniBand port's LIDs are set with SetPort. port is the RoCE v2 UDP destination port, 0 for 4791. The
// error concerns an invalid mode, or one that the link cannot carry.
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
	e.came = &e.streams[0]
	for i := range lrhLen {
		e.scratch[i] = 0xff
	}
	e.SetAddrs(addrs)
	return e, nil
}

// SetAddrs replaces the port's addresses, which may change at any time.
func (e *Encap) SetAddrs(addrs []netip.Addr) {
	e.addrs = e.addrs[:0]
	for i := range e.streams {
		e.streams[i].admitted = false
	}
	for _, a := range addrs {
		e.addrs = append(e.addrs, a.Unmap().WithZone(""))
	}
}

// Counters returns a copy of the counters.
func (e *Encap) Counters() Counters { return e.counters }

// local reports whether a is an address of the port or a group. Only the link and the transport know which
// groups are joined.
func (e *Encap) local(a netip.Addr) bool {
	for i := range e.addrs {
		if e.addrs[i] == a {
			return true
		}
	}
	return a.IsMulticast()
}

// own returns the port's first address of peer's family, for packets that do not tell their destination.
func (e *Encap) own(peer netip.Addr) netip.Addr {
	for _, a := range e.addrs {
		if a.Is4() == peer.Is4() {
			return a
		}
	}
	return netip.Addr{}
}
