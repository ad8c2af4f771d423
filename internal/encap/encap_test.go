package encap

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

var (
	socket = link.Capabilities{MaxSegments: 64, MaxBurst: 65000, MTU: 9000, SegmentIDs: true}
	raw    = link.Capabilities{MaxSegments: 1, MTU: 9000, Raw: true}
	cable  = link.Capabilities{MaxSegments: 1, MTU: 4096, Raw: true, InfiniBand: true}
	v4a    = netip.MustParseAddr("192.0.2.1")
	v4b    = netip.MustParseAddr("192.0.2.2")
	v6a    = netip.MustParseAddr("2001:db8::1")
	v6b    = netip.MustParseAddr("2001:db8::2")
	llb    = netip.MustParseAddr("fe80::11:22ff:fe33:4455")
)

func open(t testing.TB, mode Mode, caps link.Capabilities, addrs ...netip.Addr) *Encap {
	t.Helper()
	e, err := New(mode, addrs, caps, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// packet returns a send of n bytes on a route.
func packet(route *frame.Route, n int) frame.Out {
	var o frame.Out
	fill(&o, route, make([]byte, n))
	return o
}

func fill(o *frame.Out, route *frame.Route, payload []byte) {
	o.Reset(route)
	o.HeadEnd += ib.BTHLen
	o.Payload, o.Pad = payload, uint8(-len(payload)&3)
	ib.BTH(o.Head[frame.HeadRoom:]).Encode(ib.RCSendOnly, false, true, int(o.Pad), ib.PKeyDefault, 0x11, 0x22)
}

// bytesOf returns the packet as the link sends it.
func bytesOf(o *frame.Out) []byte {
	b := bytes.Clone(o.Head[o.HeadStart:o.HeadEnd])
	b = append(b, o.Payload...)
	return append(b, o.Tail[:o.TailLen]...)
}

// datagram returns what a UDP socket at the other end reports of the packet; segment is its place in the burst on
// arrival.
func datagram(o *frame.Out, segment uint16) frame.In {
	return frame.In{Data: bytesOf(o), Src: o.Route.Src, Dst: o.Route.Dst, SrcPort: o.Route.SrcPort, Segment: segment}
}

func TestNewRefusesModes(t *testing.T) {
	for _, c := range []struct {
		mode Mode
		caps link.Capabilities
		want string
	}{
		{RoCEv1, socket, "RoCE v1 needs a link that carries whole Ethernet frames, a UDP socket carries RoCE v2 only"},
		{RoCEv125, socket, "RoCE v1.25 needs a link that carries whole Ethernet frames, a UDP socket carries RoCE v2 only"},
		{0, raw, "RoCE mode is 0, want 1 (v1), 2 (v1.25), 3 (v2) or 4 (InfiniBand)"},
		{5, socket, "RoCE mode is 5, want 1 (v1), 2 (v1.25), 3 (v2) or 4 (InfiniBand)"},
		{InfiniBand, raw, "InfiniBand and the link do not go together: one is InfiniBand and the other is not"},
		{RoCEv2, cable, "RoCE v2 and the link do not go together: one is InfiniBand and the other is not"},
	} {
		if _, err := New(c.mode, nil, c.caps, 0); err == nil || err.Error() != c.want {
			t.Errorf("mode %d: %v, want %q", c.mode, err, c.want)
		}
	}
}

// TestSealedPacketsOpen: what one side seals the other opens, over sockets and whole frames, in every mode.
func TestSealedPacketsOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom([]struct {
			mode     Mode
			caps     link.Capabilities
			src, dst netip.Addr
		}{
			{RoCEv2, socket, v4a, v4b}, {RoCEv2, socket, v6a, v6b}, {RoCEv2, raw, v4a, v4b}, {RoCEv2, raw, v6a, v6b},
			{RoCEv1, raw, llb, llb}, {RoCEv125, raw, v4a, v4b}, {RoCEv125, raw, v6a, v6b},
		}).Draw(t, "link")
		routes := make([]frame.Route, 2)
		for i := range routes {
			routes[i] = frame.Route{Src: c.src, Dst: c.dst, SrcPort: rapid.Uint16().Draw(t, "port"),
				TrafficClass: rapid.Byte().Draw(t, "class"),
				HopLimit:     rapid.Byte().Draw(t, "hops"), FlowLabel: rapid.Uint32Range(0, 1<<20-1).Draw(t, "label"),
				VLAN: rapid.Uint16().Draw(t, "vlan")}
		}
		out := make([]frame.Out, rapid.IntRange(1, 20).Draw(t, "packets"))
		for i := range out {
			n := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 60, 1024, 1024, 4096}).Draw(t, "length")
			fill(&out[i], &routes[rapid.IntRange(0, 1).Draw(t, "route")], bytes.Repeat([]byte{byte(i)}, n))
		}
		a, err := New(c.mode, []netip.Addr{c.src}, c.caps, 0)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(c.mode, []netip.Addr{c.dst}, c.caps, 0)
		if err != nil {
			t.Fatal(err)
		}
		a.Seal(out)
		in := make([]frame.In, len(out))
		for i := range out {
			if c.caps.Raw {
				in[i] = frame.In{Data: bytesOf(&out[i]), Raw: true}
			} else {
				in[i] = datagram(&out[i], out[i].Segment)
			}
		}
		if n := b.Open(in); n != len(in) {
			t.Fatalf("%d of %d packets opened: %+v", n, len(in), b.Counters())
		}
		if got := b.Counters(); got != (Counters{}) {
			t.Fatalf("counters %+v", got)
		}
		for i := range in {
			o := &out[i]
			want := append(bytes.Clone(o.Head[frame.HeadRoom:o.HeadEnd]), o.Payload...)
			want = append(want, make([]byte, o.Pad)...)
			if !bytes.Equal(in[i].Data, want) {
				t.Fatalf("packet %d: % x, want % x", i, in[i].Data, want)
			}
			if in[i].Src != o.Route.Src || in[i].Dst != o.Route.Dst || in[i].Raw {
				t.Fatalf("packet %d: from %v to %v, raw %v", i, in[i].Src, in[i].Dst, in[i].Raw)
			}
			if hops := in[i].HopLimit; c.caps.Raw && hops != o.Route.HopLimit && (o.Route.HopLimit != 0 || hops != frame.DefaultHopLimit) {
				t.Fatalf("packet %d: hop limit %d, want %d", i, hops, o.Route.HopLimit)
			}
			if c.caps.Raw && in[i].TrafficClass != o.Route.TrafficClass {
				t.Fatalf("packet %d: traffic class %d, want %d", i, in[i].TrafficClass, o.Route.TrafficClass)
			}
		}
	})
}

// TestBursts: a burst has one route and one packet length, except for its last packet, and keeps within the link's
// limits.
func TestBursts(t *testing.T) {
	r1, r2 := &frame.Route{Src: v4a, Dst: v4b}, &frame.Route{Src: v4a, Dst: v4b}
	type p struct {
		route *frame.Route
		n     int
	}
	small, five := link.Capabilities{MaxSegments: 3, MaxBurst: 3000}, link.Capabilities{MaxSegments: 5, MaxBurst: 8000}
	for _, c := range []struct {
		name    string
		caps    link.Capabilities
		packets []p
		want    []uint16
	}{
		{"equal lengths join", socket, []p{{r1, 1024}, {r1, 1024}, {r1, 1024}}, []uint16{0, 1, 2}},
		{"the last may be shorter", socket, []p{{r1, 1024}, {r1, 1024}, {r1, 4}, {r1, 4}}, []uint16{0, 1, 2, 0}},
		{"a longer one starts anew", socket, []p{{r1, 4}, {r1, 1024}, {r1, 1024}}, []uint16{0, 0, 1}},
		{"another route starts anew", socket, []p{{r1, 8}, {r2, 8}, {r2, 8}, {r1, 8}}, []uint16{0, 0, 1, 0}},
		{"the pad counts in the length", socket, []p{{r1, 5}, {r1, 8}, {r1, 6}}, []uint16{0, 1, 2}},
		{"no more packets than the link takes", small, []p{{r1, 8}, {r1, 8}, {r1, 8}, {r1, 8}}, []uint16{0, 1, 2, 0}},
		{"no more bytes than the link takes", small, []p{{r1, 1400}, {r1, 1400}, {r1, 1400}}, []uint16{0, 1, 0}},
		{"a longer one leaves alone before half a burst", five, []p{{r1, 1040}, {r1, 1024}, {r1, 1024}, {r1, 1024}}, []uint16{0, 0, 1, 2}},
		{"and not before less", five, []p{{r1, 1040}, {r1, 1024}, {r1, 1024}}, []uint16{0, 1, 0}},
		{"nor before more than a burst", five, []p{{r1, 1040}, {r1, 1024}, {r1, 1024}, {r1, 1024}, {r1, 1024}, {r1, 1024}, {r1, 1024}},
			[]uint16{0, 1, 0, 1, 2, 3, 4}},
		{"nor before another route", five, []p{{r1, 1040}, {r1, 1024}, {r2, 1024}, {r2, 1024}, {r2, 1024}}, []uint16{0, 1, 0, 1, 2}},
		{"links without bursts", link.Capabilities{MaxSegments: 1}, []p{{r1, 8}, {r1, 8}}, []uint16{0, 0}},
		{"capabilities left zero", link.Capabilities{}, []p{{r1, 8}, {r1, 8}}, []uint16{0, 0}},
	} {
		out := make([]frame.Out, len(c.packets))
		for i, p := range c.packets {
			out[i] = packet(p.route, p.n)
		}
		open(t, RoCEv2, c.caps, v4a).Seal(out)
		for i := range out {
			if out[i].Segment != c.want[i] {
				t.Errorf("%s: packet %d is segment %d, want %d", c.name, i, out[i].Segment, c.want[i])
			}
		}
	}
}

// stager is a link's memory that counts the packets copied there.
type stager struct{ n int }

func (s *stager) Stage(_ *frame.Out, n int) []byte {
	s.n++
	return make([]byte, n)
}

// TestStaged: packets that are sent alone or in pairs are not staged, because the link copies them anyway.
func TestStaged(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b}
	const first, middle = 4112, 4096 // the first packet of a write is longer by its RETH
	for _, c := range []struct {
		name    string
		lengths []int
		staged  []bool
	}{
		{"the first packet of a write of 64 KB", append([]int{first}, slices.Repeat([]int{middle}, 15)...),
			append([]bool{false}, slices.Repeat([]bool{true}, 15)...)},
		{"the first two of a longer one", append([]int{first}, slices.Repeat([]int{middle}, 31)...),
			append([]bool{false, false}, slices.Repeat([]bool{true}, 30)...)},
		{"packets of one length", slices.Repeat([]int{middle}, 15), slices.Repeat([]bool{true}, 15)},
	} {
		caps, s := socket, &stager{}
		caps.Stager = s
		out := make([]frame.Out, len(c.lengths))
		want := 0
		for i, n := range c.lengths {
			out[i] = packet(r, n)
			out[i].Windowed = true
			if c.staged[i] {
				want++
			}
		}
		open(t, RoCEv2, caps, v4a).Seal(out)
		for i := range out {
			if (out[i].Staged != nil) != c.staged[i] {
				t.Errorf("%s: packet %d is staged: %v", c.name, i, out[i].Staged != nil)
			}
		}
		if s.n != want {
			t.Errorf("%s: %d packets are staged, want %d", c.name, s.n, want)
		}
	}
}

// TestIdentifications: because the kernel may join bursts on arrival and peers number their packets, an ICRC is
// accepted for identification 0, for the place in the burst, and for any other, which is counted.
func TestIdentifications(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	out := []frame.Out{packet(r, 64), packet(r, 64), packet(r, 64)}
	open(t, RoCEv2, socket, v4a).Seal(out)
	for _, c := range []struct {
		name    string
		sent    int    // which packet, and so its identification
		arrived uint16 // its place on arrival
		counted uint64
	}{
		{"single", 0, 0, 0}, {"in its place", 2, 2, 0}, {"single, joined by the receiver", 0, 7, 0}, {"in another place", 2, 0, 1},
		{"between others", 1, 5, 1},
	} {
		e := open(t, RoCEv2, socket, v4b)
		in := []frame.In{datagram(&out[c.sent], c.arrived)}
		if n := e.Open(in); n != 1 || e.Counters() != (Counters{ICRCIDInferred: c.counted}) {
			t.Errorf("%s: %d opened, %+v", c.name, n, e.Counters())
		}
		if in[0] = datagram(&out[c.sent], 0); true {
			in[0].IDKnown, in[0].ID = true, uint16(c.sent)+1
		}
		if n := e.Open(in); n != 0 || e.Counters().ICRCErrors != 1 {
			t.Errorf("%s: the packet was accepted although its identification is known to differ", c.name)
		}
	}
}

// TestLinksThatDoNotNumber: without SegmentIDs all packets of the link are sent with identification 0.
func TestLinksThatDoNotNumber(t *testing.T) {
	caps := socket
	caps.SegmentIDs = false
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	out := []frame.Out{packet(r, 64), packet(r, 64)}
	open(t, RoCEv2, caps, v4a).Seal(out)
	if out[1].Segment != 1 {
		t.Fatalf("the second packet is segment %d, want 1", out[1].Segment)
	}
	in := []frame.In{datagram(&out[1], 0)}
	in[0].IDKnown = true
	if n := open(t, RoCEv2, socket, v4b).Open(in); n != 1 {
		t.Error("the second packet's ICRC is not right with identification 0")
	}
}

// TestEveryCoveredBitIsChecked: a change of any bit that the ICRC covers is detected, in every mode with whole
// frames.
func TestEveryCoveredBitIsChecked(t *testing.T) {
	for _, c := range []struct {
		mode     Mode
		src, dst netip.Addr
		header   int // bytes from the Ethernet header's end to the BTH
	}{{RoCEv2, v4a, v4b, 28}, {RoCEv2, v6a, v6b, 48}, {RoCEv1, llb, llb, 40}} {
		r := &frame.Route{Src: c.src, Dst: c.dst, SrcPort: 0xc000}
		out := []frame.Out{packet(r, 13)}
		open(t, c.mode, raw, c.src).Seal(out)
		good := bytesOf(&out[0])
		e := open(t, c.mode, raw, c.dst)
		for at := eth.EthernetLen; at < len(good); at++ {
			for bit := byte(1); bit != 0; bit <<= 1 {
				b := bytes.Clone(good)
				b[at] ^= bit
				if c.dst.Is4() { // so that the IP header's own checksum does not detect it
					ip := eth.IPv4(b[eth.EthernetLen:])
					if n := ip.HeaderLen(); n >= eth.IPv4Len && n <= len(ip) && at != eth.EthernetLen+10 && at != eth.EthernetLen+11 {
						ip.SetChecksum()
					}
				}
				taken := e.Open([]frame.In{{Data: b, Raw: true}}) == 1
				if taken != masked(c.mode, c.dst.Is4(), at-eth.EthernetLen, c.header, bit) {
					t.Errorf("%v over %v: byte %d bit %#02x changed, packet accepted: %v", c.mode, c.dst, at, bit, taken)
				}
			}
		}
	}
}

// masked reports whether the ICRC leaves a bit out; at counts from the IP header or GRH.
func masked(mode Mode, v4 bool, at, header int, bit byte) bool {
	switch {
	case at == header+4: // BTH: FECN, BECN and reserved bits
		return true
	case mode == RoCEv2 && (at == header-1 || at == header-2): // UDP checksum
		return true
	case v4: // ToS and TTL; the header checksum is checked by itself
		return at == 1 || at == 8
	}
	return at == 0 && bit < 0x10 || at >= 1 && at <= 3 || at == 7
}

func TestOpenDrops(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	other := &frame.Route{Src: v4a, Dst: v4a, SrcPort: 0xc000}
	out := []frame.Out{packet(r, 8), packet(other, 8)}
	open(t, RoCEv2, socket, v4a).Seal(out)
	good, foreign := datagram(&out[0], 0), datagram(&out[1], 0)
	with := func(f func(p *frame.In)) frame.In {
		p := good
		p.Data = bytes.Clone(good.Data)
		f(&p)
		return p
	}
	for _, c := range []struct {
		name string
		in   frame.In
		want Counters
	}{
		{"good", good, Counters{}},
		{"to us without saying so", with(func(p *frame.In) { p.Dst = netip.Addr{} }), Counters{}},
		{"mapped addresses", with(func(p *frame.In) { p.Src, p.Dst = netip.AddrFrom16(p.Src.As16()), netip.AddrFrom16(p.Dst.As16()) }),
			Counters{}},
		{"to another address", foreign, Counters{NotForUs: 1}},
		{"addresses of two families", with(func(p *frame.In) { p.Src = v6a }), Counters{NotForUs: 1}},
		{"empty", with(func(p *frame.In) { p.Data = nil }), Counters{Malformed: 1}},
		{"no room for an ICRC", with(func(p *frame.In) { p.Data = p.Data[:12] }), Counters{Malformed: 1}},
		{"not a multiple of four", with(func(p *frame.In) { p.Data = append(p.Data, 0) }), Counters{Malformed: 1}},
		{"longer than UDP carries", with(func(p *frame.In) { p.Data = make([]byte, 65536) }), Counters{Malformed: 1}},
		{"payload changed", with(func(p *frame.In) { p.Data[13] ^= 0x55 }), Counters{ICRCErrors: 1}},
		{"ICRC changed", with(func(p *frame.In) { p.Data[len(p.Data)-1] ^= 1 }), Counters{ICRCErrors: 1}},
		{"another source port", with(func(p *frame.In) { p.SrcPort++ }), Counters{ICRCErrors: 1}},
		{"another source", with(func(p *frame.In) { p.Src = netip.MustParseAddr("192.0.2.9") }), Counters{ICRCErrors: 1}},
		{"cut short", with(func(p *frame.In) { p.Data = p.Data[:len(p.Data)-4] }), Counters{ICRCErrors: 1}},
	} {
		e := open(t, RoCEv2, socket, v6b, v4b)
		n := e.Open([]frame.In{c.in})
		if taken := c.want == (Counters{}); (n == 1) != taken || e.Counters() != c.want {
			t.Errorf("%s: %d taken, %+v, want %+v", c.name, n, e.Counters(), c.want)
		}
	}
}

// TestOpenKeepsOrder: good packets keep their order when bad ones between them are dropped.
func TestOpenKeepsOrder(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	out := make([]frame.Out, 6)
	for i := range out {
		fill(&out[i], r, []byte{byte(i), 0, 0, 0})
	}
	open(t, RoCEv2, socket, v4a).Seal(out)
	in := make([]frame.In, len(out))
	for i := range in {
		in[i] = datagram(&out[i], out[i].Segment)
	}
	in[0].SrcPort++
	in[3].SrcPort++
	if n := open(t, RoCEv2, socket, v4b).Open(in); n != 4 {
		t.Fatalf("%d taken, want 4", n)
	}
	for i, want := range []byte{1, 2, 4, 5} {
		if got := in[i].Data[ib.BTHLen]; got != want {
			t.Errorf("place %d holds packet %d, want %d", i, got, want)
		}
	}
}

func TestAddressesFollow(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	out := []frame.Out{packet(r, 8)}
	open(t, RoCEv2, socket, v4a).Seal(out)
	e := open(t, RoCEv2, socket, v4a)
	if e.Open([]frame.In{datagram(&out[0], 0)}) != 0 {
		t.Error("the packet was accepted before the address was set")
	}
	e.SetAddrs([]netip.Addr{v4b})
	if e.Open([]frame.In{datagram(&out[0], 0)}) != 1 {
		t.Error("the packet was dropped after the address was set")
	}
}

func TestGroupsAreTaken(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: netip.MustParseAddr("239.1.2.3"), SrcPort: 0xc000}
	out := []frame.Out{packet(r, 8)}
	open(t, RoCEv2, socket, v4a).Seal(out)
	if open(t, RoCEv2, socket, v4b).Open([]frame.In{datagram(&out[0], 0)}) != 1 {
		t.Error("a datagram to a group was dropped")
	}
}

// FuzzOpen: no input makes Open panic, in any mode, and every packet is accounted for.
func FuzzOpen(f *testing.F) {
	for _, mode := range []Mode{RoCEv1, RoCEv2} {
		for _, a := range []netip.Addr{v4b, v6b} {
			out := []frame.Out{packet(&frame.Route{Src: a, Dst: a, VLAN: uint16(mode)}, 5)}
			open(f, mode, raw, a).Seal(out)
			b := bytesOf(&out[0])
			f.Add(b)
			f.Add(b[len(b)-24:])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, mode := range []Mode{RoCEv1, RoCEv125, RoCEv2} {
			e := open(t, mode, raw, v4b, v6b)
			in := []frame.In{{Data: b, Raw: true}, {Data: b, Src: v4a, Dst: v4b}, {Data: b, Src: v6a, Dst: v6b}}
			n := e.Open(in)
			for _, p := range in[:n] {
				if len(p.Data) < ib.BTHLen || len(p.Data)%4 != 0 {
					t.Fatalf("a packet of %d bytes was accepted", len(p.Data))
				}
			}
			c := e.Counters()
			if got := uint64(n) + c.ICRCErrors + c.Malformed + c.NotForUs; got != 3 {
				t.Fatalf("%d of 3 packets are accounted for: %d taken, %+v", got, n, c)
			}
		}
	})
}

// TestIdentificationsOfCutBursts: however bursts are cut, lost in part and joined on the way, among packets sent
// singly, every packet that arrives is accepted, and counted by the same rule as the first.
func TestIdentificationsOfCutBursts(t *testing.T) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	from := open(t, RoCEv2, socket, v4a)
	rapid.Check(t, func(t *rapid.T) {
		e, err := New(RoCEv2, []netip.Addr{v4b}, socket, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := Counters{}
		for range rapid.IntRange(1, 8).Draw(t, "bursts") {
			out := make([]frame.Out, rapid.IntRange(1, 62).Draw(t, "packets"))
			for i := range out {
				out[i] = packet(r, 64)
			}
			from.Seal(out)
			joined := rapid.IntRange(1, 8).Draw(t, "joined")
			for i := 0; i < len(out); i++ {
				if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
					continue
				}
				place := uint16(i % joined)
				if place != out[i].Segment && out[i].Segment != 0 {
					want.ICRCIDInferred++
				}
				if n := e.Open([]frame.In{datagram(&out[i], place)}); n != 1 || e.Counters() != want {
					t.Fatalf("packet %d of %d in place %d: %d opened, %+v, want %+v", i, len(out), place, n, e.Counters(), want)
				}
			}
		}
	})
}

// BenchmarkOpenCutBurst measures the receiver of a burst that was cut into single packets on the way.
func BenchmarkOpenCutBurst(b *testing.B) {
	r := &frame.Route{Src: v4a, Dst: v4b, SrcPort: 0xc000}
	out := make([]frame.Out, 62)
	for i := range out {
		out[i] = packet(r, 1024)
	}
	open(b, RoCEv2, socket, v4a).Seal(out)
	e := open(b, RoCEv2, socket, v4b)
	kept := make([]frame.In, len(out))
	for i := range out {
		kept[i] = datagram(&out[i], 0)
	}
	in := make([]frame.In, len(kept))
	for b.Loop() {
		copy(in, kept)
		if e.Open(in) != len(in) {
			b.Fatal(e.Counters())
		}
	}
}
