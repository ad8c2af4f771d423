package tunnel

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

var (
	macA, macB = eth.MAC{2, 0, 0, 0, 0, 1}, eth.MAC{2, 0, 0, 0, 0, 2}
	v4A, v4B   = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	v6A, v6B   = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	any        = Recognition{VXLANPort: Port, NVGRE: true}
)

// arp is a frame that goes into tunnels.
func arp() []byte {
	h := eth.Ethernet{Dst: eth.Broadcast, Src: macB, Type: eth.TypeARP}
	return append(h.Append(nil), make([]byte, 28)...)
}

// outer is what the tests put before it.
func outer(v6, sum bool) Outer {
	o := Outer{Ethernet: eth.Ethernet{Dst: macB, Src: macA}, Src: v4A, Dst: v4B, TTL: 64, ID: 7, SrcPort: FirstSource, DstPort: Port,
		Sum: sum}
	if v6 {
		o.Src, o.Dst = v6A, v6B
	}
	return o
}

// golden are frames as they are on a wire.
var golden = []struct {
	name string
	v6   bool
	sum  bool
	h    Header
	want string
}{
	{"NVGRE", false, false, Header{NVGRE, 0x123456, 0x5a}, "020000000002020000000001080045000046000740004" +
		"02f26800a0000010a00000220006558" + "1234565a"},
	{"VXLAN", false, false, Header{VXLAN, 0x001234, 0}, "02000000000202000000000108004500004e000740004011" +
		"26960a0000010a000002" + "c00012b5003a0000" + "0800000000123400"},
	{"VXLAN with a checksum", false, true, Header{VXLAN, 0x001234, 0}, "02000000000202000000000108004500004e0007" +
		"4000401126960a0000010a000002" + "c00012b5003a" + "d2a7" + "0800000000123400"},
	{"VXLAN over IPv6", true, false, Header{VXLAN, MostID, 0}, "02000000000202000000000186dd60000000003a1140" +
		"fd000000000000000000000000000001fd000000000000000000000000000002" + "c00012b5003a0000" + "08000000ffffff00"},
}

// TestAppend_Golden: frames in tunnels, byte by byte, and what is found in them.
func TestAppend_Golden(t *testing.T) {
	for _, c := range golden {
		o := outer(c.v6, c.sum)
		b := o.Append(nil, c.h, arp())
		want := c.want + hex.EncodeToString(arp())
		if got := hex.EncodeToString(b); got != want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, want)
		}
		var h eth.Headers
		var f Frame
		if !h.Parse(b) || !f.Find(&h, b, any) || f.Header != c.h || !bytes.Equal(b[f.At:], arp()) {
			t.Errorf("%s: found %+v", c.name, f)
		}
	}
}

// TestFind_Not: what only looks like a tunnel is none.
func TestFind_Not(t *testing.T) {
	vx, nv := outer(false, false), outer(false, false)
	v := vx.Append(nil, Header{Kind: VXLAN, ID: 1}, arp())
	g := nv.Append(nil, Header{Kind: NVGRE, ID: 1}, arp())
	with := func(b []byte, at int, c ...byte) []byte { b = bytes.Clone(b); copy(b[at:], c); return b }
	const ip, udp, gre = 14, 34, 34
	for name, c := range map[string]struct {
		b []byte
		r Recognition
	}{
		"VXLAN that is not looked for":  {v, Recognition{NVGRE: true}},
		"NVGRE that is not looked for":  {g, Recognition{VXLANPort: Port}},
		"another port":                  {v, Recognition{VXLANPort: 8472}},
		"VXLAN without an identifier":   {with(v, udp+8, 0), any},
		"a checksum in GRE":             {with(g, gre, 0xa0), any},
		"a sequence number in GRE":      {with(g, gre, 0x30), any},
		"no key in GRE":                 {with(g, gre, 0), any},
		"another version of GRE":        {with(g, gre+1, 1), any},
		"another protocol in GRE":       {with(g, gre+2, 8, 0), any},
		"a fragment":                    {with(v, ip+6, 0x20), any},
		"a datagram of the header only": {with(v, udp+4, 0, 16), any},
		"a datagram that is too short":  {with(v, udp+4, 0, 15), any},
	} {
		var h eth.Headers
		var f Frame
		if !h.Parse(c.b) || f.Find(&h, c.b, c.r) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	var h eth.Headers
	var f Frame
	if h.Parse(with(g, gre, 0x23, 0xf8)); !f.Find(&h, with(g, gre, 0x23, 0xf8), any) {
		t.Error("reserved bits of GRE are not ignored")
	}
	if h.Parse(v); !f.Find(&h, with(v, udp+9, 1, 2, 3), any) {
		t.Error("reserved bits of VXLAN are not ignored")
	}
}

// TestParse_Errors: what is wrong is named.
func TestParse_Errors(t *testing.T) {
	var short *eth.LengthError
	var field *eth.FieldError
	if _, _, err := ParseVXLAN(make([]byte, 7)); !errors.As(err, &short) {
		t.Errorf("short VXLAN: %v", err)
	}
	if _, _, err := ParseNVGRE(make([]byte, 7)); !errors.As(err, &short) {
		t.Errorf("short NVGRE: %v", err)
	}
	if _, _, err := ParseVXLAN(make([]byte, 8)); !errors.As(err, &field) || field.Field != "vxlan flags" {
		t.Errorf("no flags: %v", err)
	}
	if _, _, err := ParseNVGRE([]byte{0x20, 0, 8, 0, 0, 0, 0, 0}); !errors.As(err, &field) || field.Field != "gre protocol" {
		t.Errorf("IPv4 in GRE: %v", err)
	}
	if VXLAN.String() != "VXLAN" || NVGRE.String() != "NVGRE" || Kind(7).String() != "tunnel 7" {
		t.Error("other names")
	}
}

// TestRoundTrip: what goes into a tunnel comes out, with its identifier, over each IP version, behind tags or not.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Header{Kind: rapid.SampledFrom([]Kind{VXLAN, NVGRE}).Draw(t, "kind"), ID: rapid.Uint32Range(0, MostID).Draw(t, "id")}
		if want.Kind == NVGRE {
			want.Flow = rapid.Uint8().Draw(t, "flow")
		}
		o := outer(rapid.Bool().Draw(t, "v6"), rapid.Bool().Draw(t, "sum"))
		o.Ethernet.Tagged = rapid.Bool().Draw(t, "tagged")
		o.SrcPort = SourcePort(rapid.Uint32().Draw(t, "hash"))
		o.DstPort = rapid.Uint16Min(1).Draw(t, "port")
		inner := append(arp(), rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "payload")...)
		b := o.Append(nil, want, inner)
		var h eth.Headers
		var f Frame
		if !h.Parse(b) || !f.Find(&h, b, Recognition{VXLANPort: o.DstPort, NVGRE: true}) {
			t.Fatalf("nothing found in %x", b)
		}
		if f.Header != want || !bytes.Equal(b[f.At:], inner) || f.Inner.Network != f.At+14 || o.SrcPort < FirstSource {
			t.Fatalf("%+v", f)
		}
		if c := eth.UDPChecksum(o.Src, o.Dst, b[h.Transport:h.End]); want.Kind == VXLAN && o.Sum && c != 0xffff {
			t.Fatalf("the checksum is wrong: %04x", c)
		}
	})
}

// recorded returns the frames of a recording.
func recorded(t testing.TB, name string) (list [][]byte) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcapgo.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, _, err := r.ReadPacketData()
		if err != nil {
			return list
		}
		list = append(list, b)
	}
}

// TestFind_Linux: frames that Linux sent through gretap and vxlan devices are found with the identifiers that these had.
func TestFind_Linux(t *testing.T) {
	for name, want := range map[string]map[Header]bool{
		"nvgre-vxlan-guest.pcap": {{NVGRE, 0x123456, 0x5a}: true, {VXLAN, 0x001234, 0}: true},
		"vxlan-host.pcap":        {{VXLAN, 0x001234, 0}: true},
	} {
		seen := map[Header]bool{}
		for _, b := range recorded(t, name) {
			var h eth.Headers
			var f Frame
			if !h.Parse(b) || !f.Find(&h, b, any) {
				continue
			}
			if seen[f.Header] = true; f.Inner.Type != eth.TypeARP && f.Inner.Version == 0 {
				t.Errorf("%s: a frame of type %04x inside", name, f.Inner.Type)
			}
		}
		if len(seen) != len(want) {
			t.Errorf("%s: %v, want %v", name, seen, want)
		}
		for h := range want {
			if !seen[h] {
				t.Errorf("%s: %+v is not found", name, h)
			}
		}
	}
}

// FuzzFind: whatever the bytes are, places are within them, and what is found can be written again.
func FuzzFind(f *testing.F) {
	for _, name := range []string{"nvgre-vxlan-guest.pcap", "vxlan-host.pcap"} {
		for _, b := range recorded(f, name) {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h eth.Headers
		var x Frame
		if !h.Parse(b) || !x.Find(&h, b, any) {
			return
		}
		i := &x.Inner
		if x.At+eth.EthernetLen > len(b) || x.ID > MostID || i.Network > len(b) || i.End > x.Outer.End || i.Data > i.End {
			t.Fatalf("%+v in %d bytes", x, len(b))
		}
		again := append(x.Header.Append(nil), b[x.At:]...)
		parse := ParseVXLAN
		if x.Kind == NVGRE {
			parse = ParseNVGRE
		}
		if g, rest, err := parse(again); err != nil || g != x.Header || !bytes.Equal(rest, b[x.At:]) {
			t.Fatalf("%+v comes back as %+v: %v", x.Header, g, err)
		}
	})
}
