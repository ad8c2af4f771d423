package packet

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

var (
	v4a = netip.MustParseAddr("192.0.2.1")
	v4b = netip.MustParseAddr("192.0.2.2")
	v6a = netip.MustParseAddr("2001:db8::1")
	v6b = netip.MustParseAddr("2001:db8::2")
)

// framed returns a frame with n bytes of UDP payload from src to the test port at dst.
func framed(src, dst netip.Addr, n int) []byte {
	r := &frame.Route{Src: src, Dst: dst, SrcPort: 0xc123, DstPort: 4791}
	o := &frame.Out{}
	o.Reset(r)
	o.HeadEnd += 12
	o.TailLen = 4
	o.Payload = make([]byte, n-16)
	b := make([]byte, mostHeaders+n)
	return b[:build(b, begins(r), 4791, o)]
}

// begins is the beginning of the frames of a route.
func begins(r *frame.Route) *eth.Template {
	g := new(eth.Template)
	g.Set(eth.MAC{2, 0, 0, 0, 0, 1}, eth.MAC{2, 0, 0, 0, 0, 2}, r.Src, r.Dst)
	return g
}

// parsed decodes what follows the Ethernet header of a frame into a value that holds something else already.
func parsed(b []byte, addr netip.Addr, port uint16) (d Datagram, ok bool) {
	d = Datagram{Data: []byte{1}, Src: v4a, SrcPort: 1, Segment: 1, TrafficClass: 1, HopLimit: 1, FlowLabel: 1, ID: 1}
	ok = d.parse(b[min(len(b), eth.EthernetLen):], addr, port)
	return d, ok
}

// TestFrameLayout: frames have the layout of RFC 791, 8200 and 768 behind an Ethernet header; each example is an
// acknowledgement with four arbitrary bytes as ICRC.
func TestFrameLayout(t *testing.T) {
	for _, c := range []struct {
		name string
		r    frame.Route
		want string
	}{
		{"IPv4", frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc001},
			"020000000001 020000000002 0800" +
				"4500 0030 0000 4000 1011 e6b9 c0000201 c0000202" +
				"c001 12b7 001c 0000" + "1100ffff000000110000002a 1f000001 aabbccdd"},
		{"IPv6, hop limit, flow label and port of its own", frame.Route{Src: v6a, Dst: v6b, SrcPort: 0xc001, DstPort: 53, HopLimit: 3,
			FlowLabel: 0xabcde},
			"020000000001 020000000002 86dd" +
				"600abcde 001c 11 03 20010db8000000000000000000000001 20010db8000000000000000000000002" +
				"c001 0035 001c 3c35" + "1100ffff000000110000002a 1f000001 aabbccdd"},
	} {
		o := &frame.Out{}
		o.Reset(&c.r)
		at := o.Head[frame.HeadRoom:]
		o.HeadEnd += uint16(copy(at, unhex(t, "1100ffff000000110000002a1f000001")))
		o.TailLen = uint8(copy(o.Tail[:], unhex(t, "aabbccdd")))
		var b [maxFrame]byte
		got := b[:build(b[:], begins(&c.r), 4791, o)]
		if want := unhex(t, c.want); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%x, want\n%x", c.name, got, want)
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(s), []byte(" "), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFramesReadBack: a frame that build made parses to the same packet, here and with the general parser, which
// checks the checksums.
func TestFramesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := frame.Route{Src: v4a, Dst: v4b, SrcPort: rapid.Uint16().Draw(t, "source port"),
			TrafficClass: rapid.Byte().Draw(t, "traffic class"), HopLimit: rapid.Byte().Draw(t, "hop limit")}
		if rapid.Bool().Draw(t, "IPv6") {
			r.Src, r.Dst, r.FlowLabel = v6a, v6b, rapid.Uint32Range(0, 0xfffff).Draw(t, "flow label")
		}
		o := &frame.Out{}
		o.Reset(&r)
		o.HeadEnd += 12
		copy(o.Head[frame.HeadRoom:], rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "bth"))
		o.Payload = rapid.SliceOfN(rapid.Byte(), 0, MostPayload-16).Draw(t, "payload")
		o.TailLen = 4
		var mem [maxFrame]byte
		b := mem[:build(mem[:], begins(&r), 4791, o)]
		d, ok := parsed(b, r.Dst, 4791)
		want := append(append(bytes.Clone(o.Head[frame.HeadRoom:o.HeadEnd]), o.Payload...), 0, 0, 0, 0)
		if !ok || d.Src != r.Src || d.SrcPort != r.SrcPort || d.TrafficClass != r.TrafficClass || d.HopLimit != frame.Hops(r.HopLimit) ||
			d.FlowLabel != r.FlowLabel || d.ID != 0 || !bytes.Equal(d.Data, want) {
			t.Fatalf("parsed as %+v, %v", d, ok)
		}
		udp := b[eth.EthernetLen+eth.IPv6Len:]
		if r.Dst.Is4() {
			if _, _, err := eth.ParseIPv4(b[eth.EthernetLen:]); err != nil ||
				eth.Checksum(b[eth.EthernetLen:eth.EthernetLen+eth.IPv4Len]) != 0 {
				t.Fatalf("IPv4 header: %v", err)
			}
			return
		}
		if eth.PseudoChecksum(r.Src, r.Dst, eth.ProtocolUDP, udp) != 0 {
			t.Fatal("the UDP checksum is wrong")
		}
	})
}

// TestParseRefuses: a frame whose lengths do not agree with its bytes, or for another port or address, is not a
// datagram.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		v6     bool
		change func(b []byte) []byte
	}{
		{"IPv4 of another version", false, func(b []byte) []byte { b[14] = 0x55; return b }},
		{"IPv4 with options", false, func(b []byte) []byte { b[14] = 0x46; return b }},
		{"IPv4 fragment", false, func(b []byte) []byte { b[20] = 0x20; return b }},
		{"IPv4 length below the UDP length", false, func(b []byte) []byte { b[17]--; return b }},
		{"IPv4, other protocol", false, func(b []byte) []byte { b[23] = 6; return b }},
		{"IPv4, other destination", false, func(b []byte) []byte { b[33]++; return b }},
		{"IPv4, other port", false, func(b []byte) []byte { b[37]++; return b }},
		{"IPv4, UDP length below its header", false, func(b []byte) []byte { b[39] = 7; return b }},
		{"IPv4, cut off", false, func(b []byte) []byte { return b[:len(b)-1] }},
		{"IPv4, no UDP header", false, func(b []byte) []byte { return b[:40] }},
		{"IPv6 of another version", true, func(b []byte) []byte { b[14] = 0x50; return b }},
		{"IPv6, other next header", true, func(b []byte) []byte { b[20] = 0; return b }},
		{"IPv6, other destination", true, func(b []byte) []byte { b[53]++; return b }},
		{"IPv6 length below the UDP length", true, func(b []byte) []byte { b[19]--; return b }},
		{"IPv6, cut off", true, func(b []byte) []byte { return b[:len(b)-1] }},
		{"nothing", true, func(b []byte) []byte { return nil }},
	} {
		src, dst := v4a, v4b
		if c.v6 {
			src, dst = v6a, v6b
		}
		b := framed(src, dst, 40)
		if _, ok := parsed(b, dst, 4791); !ok {
			t.Fatalf("%s: the whole frame is refused", c.name)
		}
		if d, ok := parsed(c.change(b), dst, 4791); ok {
			t.Errorf("%s: taken as %+v", c.name, d)
		}
	}
}

// FuzzParse: whatever the memory contains, parse reads no byte outside it, and returns as much data as the headers count.
func FuzzParse(f *testing.F) {
	f.Add(framed(v4a, v4b, 20))
	f.Add(framed(v6a, v6b, 200))
	f.Add(framed(v4a, v4b, 4096)[:42])
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, addr := range []netip.Addr{v4b, v6b} {
			d, ok := parsed(b, addr, 4791)
			if !ok {
				continue
			}
			udp := b[eth.EthernetLen+int(Rule{Addr: addr}.ipLen()):]
			if d.Src.Is4() != addr.Is4() || len(d.Data) != eth.UDP(udp).Length()-eth.UDPLen {
				t.Errorf("%x was parsed as %+v", b, d)
			}
		}
	})
}
