package team

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/team/carrier"
	"github.com/softvpi/softvpi/wire/eth"
)

const gigabit = 1e9

var (
	stationMAC = eth.MAC{0x02, 0xaa, 0, 0, 0, 1}
	strangeMAC = eth.MAC{0x02, 0xbb, 0, 0, 0, 1}
	stationV4  = netip.MustParseAddr("10.0.0.1")
	stationV6  = netip.MustParseAddr("fd00::1")
	peerV4     = netip.MustParseAddr("10.0.0.2")
	peerV6     = netip.MustParseAddr("fd00::2")
)

// announcements are the rounds in which everybody is told of the active member.
var announcements = carrier.Rounds()

// memberMAC is the address of a member's link.
func memberMAC(i int) eth.MAC { return eth.MAC{0x00, 0x02, 0xc9, 0, 0, byte(i + 1)} }

// teamOf is a team of a type with n members, a station and all links up.
func teamOf(t testing.TB, kind Type, n int, change ...func(*Config)) *Team {
	t.Helper()
	cfg := Config{Type: kind}
	for i := range n {
		cfg.Members = append(cfg.Members, Member{MAC: memberMAC(i)})
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.SetStations([]Station{{MAC: stationMAC, Addrs: []netip.Addr{stationV4, stationV6}}})
	for i := range n {
		m.SetLink(0, i, true, gigabit)
	}
	return m
}

// datagram is a UDP frame from a station to a peer, or the other way.
func datagram(src, dst eth.MAC, from, to netip.AddrPort) []byte {
	d := eth.Datagram{Src: from.Addr(), Dst: to.Addr(), SrcPort: from.Port(), DstPort: to.Port(), HopLimit: 64}
	b := make([]byte, eth.EthernetLen+d.HeaderLen()+64)
	h := eth.Ethernet{Dst: dst, Src: src, Type: d.Type()}
	h.Put(b)
	d.Put(b[eth.EthernetLen:], 64)
	return b
}

// sentFrom is a datagram of the station, of a flow by its source port.
func sentFrom(port uint16) []byte {
	return datagram(stationMAC, strangeMAC, netip.AddrPortFrom(stationV4, port), netip.AddrPortFrom(peerV4, 4791))
}

// sentTo is a datagram of a peer to a MAC.
func sentTo(dst eth.MAC) []byte {
	return datagram(strangeMAC, dst, netip.AddrPortFrom(peerV4, 49152), netip.AddrPortFrom(stationV4, 4791))
}

// drain takes all frames that wait, by member.
func drain(m *Team) (frames []queued) {
	for i, f := m.Frame(0); f != nil; i, f = m.Frame(0) {
		frames = append(frames, queued{i, f})
	}
	return frames
}

// pass does what is due until a time.
func pass(m *Team, until clock.Time) {
	for drain(m); m.Deadline() <= until && m.Deadline() != clock.Never; drain(m) {
		m.Advance(m.Deadline())
	}
}

// arp is an ARP frame.
func arp(operation uint16, dst eth.MAC, sender eth.MAC, from, to netip.Addr) []byte {
	a := eth.ARP{Operation: operation, SenderMAC: sender, SenderIP: from, TargetIP: to}
	if operation == eth.ARPReply {
		a.TargetMAC = dst
	}
	return a.Append(header(dst, sender, 0, eth.TypeARP))
}

// advertisement is the answer of neighbour discovery.
func advertisement(dst, sender eth.MAC, from, to netip.Addr) []byte {
	d := eth.Discovery{Advertisement: true, Solicited: true, Override: true, Target: from, Link: sender[:]}
	return d.AppendPacket(header(dst, sender, 0, eth.TypeIPv6), from, to)
}

// from is the address that a frame comes from.
func from(b []byte) eth.MAC { return eth.MAC(b[6:]) }

// kindOf is the Ethernet type of a frame.
func kindOf(b []byte) eth.EtherType { return eth.EtherType(binary.BigEndian.Uint16(b[12:])) }
