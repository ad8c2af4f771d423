package eswitch

import (
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/wire/eth"
)

// mac is the n-th address of the tests.
func mac(n byte) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, n} }

// group is the n-th group of the tests.
func group(n byte) eth.MAC { return eth.MAC{1, 0, 0x5e, 0, 0, n} }

// bare returns a frame without a tag.
func bare(dst, src eth.MAC, t eth.EtherType, payload ...byte) []byte {
	h := eth.Ethernet{Dst: dst, Src: src, Type: t}
	return append(h.Append(nil), payload...)
}

// tagged returns a frame with a tag.
func tagged(dst, src eth.MAC, tci uint16, t eth.EtherType, payload ...byte) []byte {
	h := eth.Ethernet{Dst: dst, Src: src, Tagged: true, TCI: tci, Type: t}
	return append(h.Append(nil), payload...)
}

// datagram returns an IPv4 packet with the ports of a UDP datagram.
func datagram(src, dst uint16) []byte {
	b := make([]byte, eth.IPv4Len+eth.UDPLen)
	eth.IPv4(b).Encode(0, len(b), 1, 64, eth.ProtocolUDP, [4]byte{10, 0, 0, 1}, [4]byte{10, 0, 0, 2})
	eth.UDP(b[eth.IPv4Len:]).Encode(src, dst, eth.UDPLen)
	return b
}

// trunk is a function with tags of its own, in these VLANs; 0 stands for frames without one.
func trunk(ids ...uint16) (v VLAN) {
	for _, id := range ids {
		if id == 0 {
			v.Untagged = true
		} else {
			v.Trunk.Add(id)
		}
	}
	return v
}

// house is a switch with one function of each sort.
func house(t testing.TB, cfg Config) *Switch {
	t.Helper()
	s := New(cfg)
	for p, f := range map[Port]Function{
		PF:       {MACs: []eth.MAC{mac(1)}, VLAN: AnyVLAN()},
		VF(0):    {MACs: []eth.MAC{mac(10)}, VLAN: trunk(0)},
		VF(1):    {MACs: []eth.MAC{mac(11)}, VLAN: trunk(0)},
		VF(2):    {MACs: []eth.MAC{mac(12)}, VLAN: VLAN{ID: 10, Priority: 3}},
		VF(3):    {MACs: []eth.MAC{mac(13)}, VLAN: VLAN{ID: 10}},
		VF(4):    {MACs: []eth.MAC{mac(14)}, VLAN: trunk(10, 20)},
		VPort(0): {MACs: []eth.MAC{mac(20), mac(21)}, VLAN: trunk(0)},
	} {
		if err := s.Set(p, f); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// got is what each port gets of a frame.
func got(s *Switch, from Port, frame []byte) (map[Port]string, Reason) {
	list, why := s.Forward(from, frame, nil)
	out := map[Port]string{}
	for i := range list {
		if _, twice := out[list[i].To]; twice {
			panic("a port gets a frame twice")
		}
		out[list[i].To] = string(list[i].Append(nil, frame))
	}
	return out, why
}

// everywhere is the same frame at several ports.
func everywhere(frame []byte, ports ...Port) map[Port]string {
	m := map[Port]string{}
	for _, p := range ports {
		m[p] = string(frame)
	}
	return m
}

// and joins what ports get.
func and(list ...map[Port]string) map[Port]string {
	all := map[Port]string{}
	for _, m := range list {
		for p, f := range m {
			all[p] = f
		}
	}
	return all
}

// vlanOf is the VLAN of a frame by its first tag, 0 without one.
func vlanOf(b []byte) uint16 {
	if eth.EtherType(binary.BigEndian.Uint16(b[12:])) != eth.TypeVLAN {
		return 0
	}
	return binary.BigEndian.Uint16(b[14:]) & eth.VIDMask
}
