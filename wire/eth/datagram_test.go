package eth

import (
	"bytes"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// drawDatagram draws a datagram of either family.
func drawDatagram(t *rapid.T) Datagram {
	d := Datagram{SrcPort: rapid.Uint16().Draw(t, "source port"), DstPort: rapid.Uint16().Draw(t, "destination port"),
		TrafficClass: rapid.Byte().Draw(t, "class"), HopLimit: rapid.Byte().Draw(t, "hops")}
	if rapid.Bool().Draw(t, "IPv6") {
		d.Src, d.Dst, d.FlowLabel = draw6(t, "src"), draw6(t, "dst"), rapid.Uint32Range(0, 0xfffff).Draw(t, "flow label")
	} else {
		d.Src, d.Dst, d.ID = draw4(t, "src"), draw4(t, "dst"), rapid.Uint16().Draw(t, "id")
	}
	return d
}

// TestDatagram_ReadsBack: the parsers of the three headers find what Put wrote, and the payload.
func TestDatagram_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDatagram(t)
		payload := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload")
		b := append(bytes.Repeat([]byte{0x5a}, d.HeaderLen()), payload...)
		d.Put(b, len(payload))
		got := Datagram{}
		var rest []byte
		var err error
		if d.Type() == TypeIPv4 {
			var h IPv4
			h, rest, err = ParseIPv4(b)
			if err != nil || h.Protocol() != ProtocolUDP || !h.DontFragment() {
				t.Fatalf("% x: %v", b, err)
			}
			got = Datagram{Src: h.Src(), Dst: h.Dst(), TrafficClass: h.ToS(), HopLimit: h.TTL(), ID: h.ID()}
		} else {
			var h IPv6
			h, rest, err = ParseIPv6(b)
			if err != nil || h.NextHeader() != ProtocolUDP {
				t.Fatalf("% x: %v", b, err)
			}
			got = Datagram{Src: h.Src(), Dst: h.Dst(), TrafficClass: h.TrafficClass(), HopLimit: h.HopLimit(), FlowLabel: h.FlowLabel()}
		}
		u, rest, err := ParseUDP(rest)
		if err != nil || u.Checksum() != 0 || !bytes.Equal(rest, payload) || d.HeaderLen() != len(b)-len(rest) {
			t.Fatalf("% x: %v", b, err)
		}
		if got.SrcPort, got.DstPort = u.SrcPort(), u.DstPort(); got != d {
			t.Fatalf("%+v reads back as %+v", d, got)
		}
	})
}

// TestDatagram_WithoutSource: an address of another family, or none, counts as the unspecified one.
func TestDatagram_WithoutSource(t *testing.T) {
	for _, dst := range []string{"192.0.2.1", "2001:db8::1"} {
		for _, src := range []netip.Addr{{}, netip.MustParseAddr("2001:db8::2")} {
			d := Datagram{Src: src, Dst: netip.MustParseAddr(dst)}
			b := make([]byte, d.HeaderLen())
			d.Put(b, 0)
			if d.Dst.Is4() && IPv4(b).Src() != netip.IPv4Unspecified() || d.Dst.Is6() && !src.IsValid() &&
				IPv6(b).Src() != netip.IPv6Unspecified() {
				t.Errorf("from %v to %v: % x", src, dst, b)
			}
		}
	}
}

// TestTemplate_EquivalentToHeaders: the headers made from a template are those that Ethernet and Datagram write.
func TestTemplate_EquivalentToHeaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDatagram(t)
		d.ID = 0
		n := rapid.IntRange(0, 65535-IPv4Len-UDPLen).Draw(t, "length")
		e := Ethernet{Dst: MAC{2, 0, 0, 0, 0, 1}, Src: MAC{2, 0, 0, 0, 0, 2}, Type: d.Type()}
		want := append(e.Append(nil), make([]byte, d.HeaderLen())...)
		d.Put(want[e.Len():], n)
		var m Template
		m.Set(e.Dst, e.Src, d.Src, d.Dst)
		got := bytes.Repeat([]byte{0x5a}, EthernetLen+IPv6Len+UDPLen)
		end := m.Put(got, d.TrafficClass, d.HopLimit, d.FlowLabel, UDPLen+n)
		UDP(got[end:]).Encode(d.SrcPort, d.DstPort, UDPLen+n)
		if got = got[:end+UDPLen]; !bytes.Equal(got, want) {
			t.Fatalf("% x, want\n% x", got, want)
		}
	})
}

// TestHeaders_NoAllocation: neither writing nor reading headers allocates.
func TestHeaders_NoAllocation(t *testing.T) {
	d := Datagram{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")}
	var m Template
	m.Set(MAC{}, MAC{}, d.Src, d.Dst)
	b := make([]byte, 128)
	if n := testing.AllocsPerRun(100, func() {
		m.Put(b, 0, 16, 0, UDPLen)
		d.Put(b[EthernetLen:], 0)
		_, rest, _ := ParseEthernet(b)
		_, rest, _ = ParseIPv4(rest)
		if _, _, err := ParseUDP(rest); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHeaders(b *testing.B) {
	mem := make([]byte, 128)
	for name, to := range map[string]string{"IPv4": "192.0.2.2", "IPv6": "2001:db8::2"} {
		d := Datagram{Src: netip.MustParseAddr(to).Prev(), Dst: netip.MustParseAddr(to), SrcPort: 0xc000, DstPort: PortRoCEv2, HopLimit: 16}
		b.Run(name+"/datagram", func(b *testing.B) {
			for b.Loop() {
				d.Put(mem, 100)
			}
		})
		var m Template
		m.Set(MAC{}, MAC{}, d.Src, d.Dst)
		b.Run(name+"/template", func(b *testing.B) {
			for b.Loop() {
				m.Put(mem, 0, 16, 0, 100)
			}
		})
	}
}
