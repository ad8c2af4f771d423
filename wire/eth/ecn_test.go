package eth

import (
	"net/netip"
	"testing"
)

// A mark changes the ECN field of the IP header alone, and its checksum; frames without an IP header stay as they are.
func TestMarkCongestion(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fd00::1")
	ip4, ip6 := make([]byte, IPv4Len), make([]byte, IPv6Len)
	IPv4(ip4).Encode(26<<2|2, IPv4Len+8, 0, 9, ProtocolUDP, v4.As4(), v4.As4())
	IPv6(ip6).Encode(26<<2|2, 0xabcde, 8, ProtocolUDP, 9, v6.As16(), v6.As16())
	for _, c := range []struct {
		name string
		vlan uint16
		kind EtherType
		ip   []byte
		want bool
	}{
		{"IPv4", 0, TypeIPv4, ip4, true},
		{"IPv4 in a VLAN", 3<<13 | 7, TypeIPv4, ip4, true},
		{"IPv6", 0, TypeIPv6, ip6, true},
		{"RoCE v1", 0, TypeRoCEv1, ip6, true},
		{"cut", 0, TypeIPv4, ip4[:IPv4Len-1], false},
		{"ARP", 0, TypeARP, ip4, false},
		{"nothing", 0, TypeIPv4, nil, false},
	} {
		h := Ethernet{Type: c.kind, Tagged: c.vlan != 0, TCI: c.vlan}
		b := append(h.Append(nil), c.ip...)
		was := string(b)
		if got := MarkCongestion(b); got != c.want || !got && string(b) != was {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		at := h.Len()
		switch {
		case !c.want:
		case c.kind == TypeIPv4:
			if p := IPv4(b[at:]); p.ToS() != 26<<2|3 || !p.ChecksumOK() || p.TTL() != 9 {
				t.Errorf("%s: %x", c.name, b)
			}
		default:
			if p := IPv6(b[at:]); p.TrafficClass() != 26<<2|3 || p.FlowLabel() != 0xabcde {
				t.Errorf("%s: %x", c.name, b)
			}
		}
	}
	if MarkCongestion([]byte{1, 2, 3}) {
		t.Error("three bytes were marked")
	}
}

func TestMarked(t *testing.T) {
	for class, want := range map[uint8]bool{0: false, 1: false, 2: false, 3: true, 26<<2 | 3: true, 26<<2 | 2: false} {
		if Marked(class) != want {
			t.Errorf("traffic class %#x is marked: %v", class, !want)
		}
		if !Marked(Mark(class)) || Mark(class)&^ECNMask != class&^ECNMask {
			t.Errorf("traffic class %#x becomes %#x", class, Mark(class))
		}
	}
}
