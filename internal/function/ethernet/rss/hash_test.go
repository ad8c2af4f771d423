package rss

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/wire/eth"
)

// vectors are those of Microsoft's "Verifying the RSS Hash Calculation".
var vectors = []struct {
	dst, src string
	ip, tcp  uint32
}{
	{"161.142.100.80:1766", "66.9.149.187:2794", 0x323e8fc2, 0x51ccc178},
	{"65.69.140.83:4739", "199.92.111.2:14230", 0xd718262a, 0xc626b0ea},
	{"12.22.207.184:38024", "24.19.198.95:12898", 0xd2d0a5de, 0x5c2b394a},
	{"209.142.163.6:2217", "38.27.205.30:48228", 0x82989176, 0xafc7327f},
	{"202.188.127.2:1303", "153.39.163.191:44251", 0x5d1809c5, 0x10e828a2},
	{"[3ffe:2501:200:3::1]:1766", "[3ffe:2501:200:1fff::7]:2794", 0x2cc18cd5, 0x40207d3d},
	{"[ff02::1]:4739", "[3ffe:501:8::260:97ff:fe40:efab]:14230", 0x0f0c461c, 0xdde51bbf},
	{"[fe80::200:f8ff:fe21:67cf]:38024", "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251", 0x4b61e985, 0x02d1feef},
}

// packet returns a frame from src to dst; options are IPv6 extension headers, of which the first is next.
func packet(src, dst netip.AddrPort, protocol uint8, options []byte, next uint8) []byte {
	p := binary.BigEndian.AppendUint16(nil, src.Port())
	p = append(binary.BigEndian.AppendUint16(p, dst.Port()), make([]byte, 24)...)
	if protocol == eth.ProtocolUDP {
		eth.UDP(p).SetLength(len(p))
	} else {
		p[12] = 5 << 4
	}
	b := (&eth.Ethernet{Type: eth.TypeIPv6}).Append(nil)
	if src.Addr().Is4() {
		b = (&eth.Ethernet{Type: eth.TypeIPv4}).Append(nil)
		ip := make(eth.IPv4, eth.IPv4Len)
		ip.Encode(0, eth.IPv4Len+len(p), 0, 64, protocol, src.Addr().As4(), dst.Addr().As4())
		return append(append(b, ip...), p...)
	}
	if len(options) == 0 {
		next = protocol
	}
	ip := make(eth.IPv6, eth.IPv6Len)
	ip.Encode(0, 0, len(options)+len(p), next, 64, src.Addr().As16(), dst.Addr().As16())
	return slices.Concat(b, ip, options, p)
}

func headers(t interface{ Fatal(...any) }, frame []byte) *eth.Headers {
	h := new(eth.Headers)
	if !h.Parse(frame) || h.Version == 0 {
		t.Fatal("no packet")
	}
	return h
}

// TestOf_Vectors: all 16 of Microsoft's vectors, and the same for UDP, which is hashed as TCP is; a send has the hash of its
// flow's received frames.
func TestOf_Vectors(t *testing.T) {
	hash := NewToeplitz(&DefaultKey)
	for _, v := range vectors {
		src, dst := netip.MustParseAddrPort(v.src), netip.MustParseAddrPort(v.dst)
		address, tcp, udp := IPv4, TCPIPv4, UDPIPv4
		if src.Addr().Is6() {
			address, tcp, udp = IPv6, TCPIPv6, UDPIPv6
		}
		for _, c := range []struct {
			protocol  uint8
			use, kind Types
			want      uint32
		}{
			{eth.ProtocolTCP, All, tcp, v.tcp}, {eth.ProtocolTCP, address, address, v.ip}, {eth.ProtocolUDP, All, udp, v.tcp},
			{eth.ProtocolUDP, tcp | address, address, v.ip}, {eth.ProtocolUDP, tcp, 0, 0}, {eth.ProtocolICMP, All, address, v.ip},
		} {
			f := packet(src, dst, c.protocol, nil, 0)
			if got, kind := hash.Of(headers(t, f), f, c.use); got != c.want || kind != c.kind {
				t.Errorf("%s to %s, protocol %d, types %#x: %#08x of type %#x, want %#08x of %#x", v.src, v.dst, c.protocol, c.use, got, kind,
					c.want, c.kind)
			}
			back := packet(dst, src, c.protocol, nil, 0)
			if got, kind := hash.OfSent(headers(t, back), back, c.use); got != c.want || kind != c.kind {
				t.Errorf("%s to %s, sent: %#08x of type %#x", v.dst, v.src, got, kind)
			}
		}
	}
}

// TestOf_Fragments: fragments are hashed by addresses alone, the first included, and not at all where only ports count.
func TestOf_Fragments(t *testing.T) {
	hash := NewToeplitz(&DefaultKey)
	v := vectors[0]
	f := packet(netip.MustParseAddrPort(v.src), netip.MustParseAddrPort(v.dst), eth.ProtocolTCP, nil, 0)
	f[eth.EthernetLen+6] = 0x20 // more fragments
	if got, kind := hash.Of(headers(t, f), f, All); got != v.ip || kind != IPv4 {
		t.Errorf("%#x of type %#x, want %#x of %#x", got, kind, v.ip, IPv4)
	}
	if got, kind := hash.Of(headers(t, f), f, TCPIPv4); got != 0 || kind != 0 {
		t.Errorf("%#x of type %#x without IPv4, want none", got, kind)
	}
}

// TestOf_Mobile: the types with EX hash the home address of a mobile node in place of the source, and that of its routing
// header in place of the destination; the others hash the header's addresses.
func TestOf_Mobile(t *testing.T) {
	hash := NewToeplitz(&DefaultKey)
	v := vectors[5]
	src, dst := netip.MustParseAddrPort(v.src), netip.MustParseAddrPort(v.dst)
	care := netip.MustParseAddrPort("[2001:db8::1]:2794")
	home := src.Addr().As16()
	options := append([]byte{eth.ProtocolTCP, 2, 1, 2, 0, 0, 0xc9, 16}, home[:]...)
	f := packet(care, dst, eth.ProtocolTCP, options, 60)
	if got, kind := hash.Of(headers(t, f), f, All); got != v.tcp || kind != TCPIPv6Ex {
		t.Errorf("home address: %#x of type %#x, want %#x of %#x", got, kind, v.tcp, TCPIPv6Ex)
	}
	if got, kind := hash.Of(headers(t, f), f, IPv6Ex); got != v.ip || kind != IPv6Ex {
		t.Errorf("home address: %#x of type %#x, want %#x of %#x", got, kind, v.ip, IPv6Ex)
	}
	plain := packet(care, dst, eth.ProtocolTCP, nil, 0)
	want, _ := hash.Of(headers(t, plain), plain, All)
	if got, kind := hash.Of(headers(t, f), f, TCPIPv6); got != want || kind != TCPIPv6 {
		t.Errorf("home address without EX: %#x of type %#x, want %#x of %#x", got, kind, want, TCPIPv6)
	}
	if _, kind := hash.Of(headers(t, plain), plain, All); kind != TCPIPv6 {
		t.Errorf("a packet without extension headers is of type %#x, want %#x", kind, TCPIPv6)
	}
	if got, kind := hash.Of(headers(t, plain), plain, TCPIPv6Ex); got != want || kind != TCPIPv6Ex {
		t.Errorf("EX alone, without extension headers: %#x of type %#x, want %#x of %#x", got, kind, want, TCPIPv6Ex)
	}
	there := dst.Addr().As16()
	options = append([]byte{eth.ProtocolTCP, 2, 2, 1, 0, 0, 0, 0}, there[:]...)
	f = packet(src, netip.AddrPortFrom(care.Addr(), dst.Port()), eth.ProtocolTCP, options, 43)
	if got, kind := hash.Of(headers(t, f), f, All); got != v.tcp || kind != TCPIPv6Ex {
		t.Errorf("routing header: %#x of type %#x, want %#x of %#x", got, kind, v.tcp, TCPIPv6Ex)
	}
}

// TestToeplitz_Definition: the tables give what the definition says, bit by bit, for any key.
func TestToeplitz_Definition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := Key(rapid.SliceOfN(rapid.Byte(), KeyLen, KeyLen).Draw(t, "key"))
		in := rapid.SliceOfN(rapid.Byte(), mostInput, mostInput).Draw(t, "input")
		hash := NewToeplitz(&key)
		got := hash.IPv6((*[16]byte)(in), (*[16]byte)(in[16:])) ^ hash.ports(32, (*[2]byte)(in[32:]), (*[2]byte)(in[34:]))
		if want := definition(&key, in); got != want {
			t.Fatalf("%#x, want %#x", got, want)
		}
		got = hash.IPv4((*[4]byte)(in), (*[4]byte)(in[4:])) ^ hash.ports(8, (*[2]byte)(in[8:]), (*[2]byte)(in[10:]))
		if want := definition(&key, in[:12]); got != want {
			t.Fatalf("%#x, want %#x", got, want)
		}
	})
}

func definition(key *Key, in []byte) (h uint32) {
	bit := func(b []byte, i int) uint32 { return uint32(b[i/8]>>(7-i%8)) & 1 }
	for i := range 8 * len(in) {
		if bit(in, i) == 0 {
			continue
		}
		word := uint32(0)
		for j := range 32 {
			word = word<<1 | bit(key[:], i+j)
		}
		h ^= word
	}
	return h
}

func BenchmarkOf(b *testing.B) {
	hash := NewToeplitz(&DefaultKey)
	for name, v := range map[string]int{"TCPv4": 0, "TCPv6": 5} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			f := packet(netip.MustParseAddrPort(vectors[v].src), netip.MustParseAddrPort(vectors[v].dst), eth.ProtocolTCP, nil, 0)
			h := headers(b, f)
			for b.Loop() {
				sum, _ := hash.Of(h, f, All)
				sink ^= sum
			}
		})
	}
}

var sink uint32
