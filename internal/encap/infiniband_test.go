package encap

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"pgregory.net/rapid"
)

var (
	gidA  = ib.GID{0xfe, 0x80, 15: 0xa}
	gidB  = ib.GID{0xfe, 0x80, 15: 0xb}
	mgid  = ib.GID{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 15: 1}
	lanes = [16]uint8{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 15}
)

// port returns the encapsulation of a port with a LID, LMC 2 and a GID.
func port(t testing.TB, lid ib.LID, gid ib.GID) *Encap {
	t.Helper()
	e := open(t, InfiniBand, cable, gid.Addr())
	e.SetPort(&link.Port{LID: lid, LMC: 2, SLtoVL: lanes})
	return e
}

// path returns the route from LID 4 to LID 8.
func path(global bool) *frame.Route {
	r := &frame.Route{Src: frame.LIDAddr(4), Dst: frame.LIDAddr(8), IB: frame.InfiniBand{DLID: 8, SL: 1, Global: global}}
	if global {
		r.IB.SGID, r.IB.DGID = gidA, gidB
	}
	return r
}

func sealed(t testing.TB, r *frame.Route, payload []byte) []byte {
	t.Helper()
	out := make([]frame.Out, 1)
	fill(&out[0], r, payload)
	port(t, 4, gidA).Seal(out)
	return bytesOf(&out[0])
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPacketsOfInfiniBand: local and global packets have the fields of IBA 7.7 (LRH), 8.3 (GRH) and 9.2 (BTH). The
// length counts words from the LRH to the ICRC. The ICRC masks the lane of the LRH, and with a GRH the whole LRH
// (7.8.1); here it is computed bit by bit by none of the code under test.
func TestPacketsOfInfiniBand(t *testing.T) {
	for _, c := range []struct {
		name  string
		route frame.Route
		want  string
	}{
		{"local", frame.Route{IB: frame.InfiniBand{DLID: 8, SL: 1}}, `10 12 0008 0007 0004
			0410ffff 00000011 80000022 49423100`},
		{"local, other lane and path bits", frame.Route{IB: frame.InfiniBand{DLID: 9, SL: 7, PathBits: 3}}, `30 72 0009 0007 0007
			0410ffff 00000011 80000022 49423100`},
		{"global", frame.Route{TrafficClass: 0x6a, FlowLabel: 0x12345, HopLimit: 3, IB: frame.InfiniBand{DLID: 8, Global: true, SGID: gidA,
			DGID: gidB}},
			`00 03 0008 0011 0004
			66a12345 0014 1b 03 fe80000000000000000000000000000a fe80000000000000000000000000000b
			0410ffff 00000011 80000022 49423100`},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.want)
			crc := invariant(want)
			want = append(want, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
			if got := sealed(t, &c.route, []byte("IB1")); !bytes.Equal(got, want) {
				t.Errorf("sealed\n%x, want\n%x", got, want)
			}
		})
	}
}

// invariant returns a packet's ICRC by IBA 7.8.1: what a switch or router may change counts as ones, then CRC-32 bit
// by bit.
func invariant(packet []byte) uint32 {
	b := bytes.Clone(packet)
	b[0] |= 0xf0
	bth := 8
	if b[1]&3 == ib.LNHGlobal {
		for i := range 8 {
			b[i] = 0xff
		}
		b[8] |= 0x0f
		b[9], b[10], b[11], b[15] = 0xff, 0xff, 0xff, 0xff
		bth = 48
	}
	b[bth+4] = 0xff
	crc := ^uint32(0)
	for _, v := range b {
		crc ^= uint32(v)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320&-(crc&1)
		}
	}
	return ^crc
}

// specPacket is the local packet of IBA 7.8.4 "Sample Packets" up to its ICRC.
const specPacket = "7012375c000e17d2 0a2024870087b1b3000dec2a 01710a1c015d400238f27a050000000e bb884d85fd5cfba4728bc0690ed40000 9625b75a"

// TestTheSpecificationsPacketOpens: the specification's packet, an RC write from LID 0x17d2 to 0x375c, opens.
func TestTheSpecificationsPacketOpens(t *testing.T) {
	b := unhex(t, specPacket)
	e := open(t, InfiniBand, cable)
	e.SetPort(&link.Port{LID: ib.LRH(b).DLID()})
	in := []frame.In{{Data: b, Raw: true}}
	if e.Open(in) != 1 {
		t.Fatalf("dropped: %+v", e.Counters())
	}
	p := in[0]
	if p.Src != frame.LIDAddr(ib.LRH(b).SLID()) || p.Dst != frame.LIDAddr(ib.LRH(b).DLID()) || p.SLID != ib.LRH(b).SLID() || p.GRH != nil ||
		p.Raw ||
		!bytes.Equal(p.Data, b[8:len(b)-4]) {
		t.Errorf("the packet opened as %+v", p)
	}
}

// TestWhatAPacketSays: an opened packet has its source, the LID of the port it came to, the SL and the GRH.
func TestWhatAPacketSays(t *testing.T) {
	r := path(true)
	r.IB.DLID, r.IB.PathBits, r.TrafficClass, r.FlowLabel = 10, 1, 5, 6
	in := []frame.In{{Data: sealed(t, r, nil), Raw: true}}
	if e := port(t, 8, gidB); e.Open(in) != 1 {
		t.Fatalf("dropped: %+v", e.Counters())
	}
	p := in[0]
	if p.SLID != 5 || p.Src != frame.LIDAddr(5) || p.Dst != frame.LIDAddr(10) || p.PathBits != 2 || p.SL != 1 || p.TrafficClass != 5 ||
		p.FlowLabel != 6 ||
		p.GRH == nil || ib.GRH(p.GRH[:]).SGID() != gidA {
		t.Errorf("the packet opened as %+v", p)
	}
	r = path(true)
	r.IB.DLID, r.IB.DGID = 0xc005, mgid
	in = []frame.In{{Data: sealed(t, r, nil), Raw: true}}
	if e := port(t, 8, gidB); e.Open(in) != 1 || in[0].Dst != mgid.Addr() {
		t.Errorf("a group's packet opened as %+v, counters %+v", in[0], e.Counters())
	}
}

// TestPacketsThatArePortsDoNotTake: a packet with an error anywhere outside its BTH is dropped and counted.
func TestPacketsThatArePortsDoNotTake(t *testing.T) {
	for _, c := range []struct {
		name   string
		global bool
		change func(b []byte) []byte
		want   Counters
	}{
		{"no LRH", false, func(b []byte) []byte { return b[:7] }, Counters{Malformed: 1}},
		{"link version 1", false, func(b []byte) []byte { b[0] |= 1; return b }, Counters{Malformed: 1}},
		{"packet length is not the length", false, func(b []byte) []byte { b[5]++; return b }, Counters{Malformed: 1}},
		{"longer than it says", false, func(b []byte) []byte { return append(b, 0, 0, 0, 0) }, Counters{Malformed: 1}},
		{"raw", false, func(b []byte) []byte { b[1] &^= 3; return b }, Counters{NotForUs: 1}},
		{"lane of management", false, func(b []byte) []byte { b[0] = 0xf0; return b }, Counters{NotForUs: 1}},
		{"another LID", false, func(b []byte) []byte { b[3] = 12; return b }, Counters{NotForUs: 1}},
		{"permissive LID", false, func(b []byte) []byte { b[2], b[3] = 0xff, 0xff; return b }, Counters{NotForUs: 1}},
		{"from LID 0", false, func(b []byte) []byte { b[6], b[7] = 0, 0; return b }, Counters{Malformed: 1}},
		{"from a multicast LID", false, func(b []byte) []byte { b[6] = 0xc0; return b }, Counters{Malformed: 1}},
		{"multicast without GRH", false, func(b []byte) []byte { b[2] = 0xc0; return b }, Counters{Malformed: 1}},
		{"no BTH", false, func(b []byte) []byte { b[5] = 4; return b[:16] }, Counters{Malformed: 1}},
		{"half a GRH", true, func(b []byte) []byte { b[5] = 8; return b[:32] }, Counters{Malformed: 1}},
		{"GRH of version 4", true, func(b []byte) []byte { b[8] = 0x40; return b }, Counters{Malformed: 1}},
		{"GRH with another next header", true, func(b []byte) []byte { b[14] = 17; return b }, Counters{Malformed: 1}},
		{"GRH with another length", true, func(b []byte) []byte { b[13] += 4; return b }, Counters{Malformed: 1}},
		{"multicast GID at a port's LID", true, func(b []byte) []byte { copy(b[32:], mgid[:]); return b }, Counters{Malformed: 1}},
		{"port's GID at a multicast LID", true, func(b []byte) []byte { b[2] = 0xc0; return b }, Counters{Malformed: 1}},
		{"another port's GID", true, func(b []byte) []byte { b[47]++; return b }, Counters{NotForUs: 1}},
		{"corrupt payload", false, func(b []byte) []byte { b[20] ^= 1; return b }, Counters{ICRCErrors: 1}},
		{"corrupt SL without GRH", false, func(b []byte) []byte { b[1] ^= 0x10; return b }, Counters{ICRCErrors: 1}},
		{"corrupt SGID", true, func(b []byte) []byte { b[31] ^= 1; return b }, Counters{ICRCErrors: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := port(t, 8, gidB)
			in := []frame.In{{Data: c.change(sealed(t, path(c.global), []byte("data"))), Raw: true}}
			if n := e.Open(in); n != 0 || e.Counters() != c.want {
				t.Errorf("%d opened, %+v, want %+v", n, e.Counters(), c.want)
			}
		})
	}
}

// TestWhatHopsChangePasses: what switches and routers change does not affect the ICRC: the lane and, with a GRH, the
// whole LRH, which names the next hop, the traffic class, flow label and hop limit.
func TestWhatHopsChangePasses(t *testing.T) {
	local, global := sealed(t, path(false), []byte("data")), sealed(t, path(true), []byte("data"))
	local[0], global[0] = 0xe0, 0x70
	global[1] ^= 0x50
	global[7] = 99
	global[15]--
	global[9] ^= 0xff
	e := port(t, 8, gidB)
	if n := e.Open([]frame.In{{Data: local, Raw: true}, {Data: global, Raw: true}}); n != 2 {
		t.Errorf("%d of 2 opened: %+v", n, e.Counters())
	}
}

// TestAPortWithoutALID: a port without a LID takes nothing but packets to groups, which no switch sends it.
func TestAPortWithoutALID(t *testing.T) {
	e := open(t, InfiniBand, cable, gidB.Addr())
	if n := e.Open([]frame.In{{Data: sealed(t, path(false), nil), Raw: true}}); n != 0 || e.Counters().NotForUs != 1 {
		t.Errorf("%d packets opened, counters %+v; want none, and one for others", n, e.Counters())
	}
}

// TestSealedInfiniBandOpens: what one port seals the other opens.
func TestSealedInfiniBandOpens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := open2(InfiniBand, gidA)
		b := open2(InfiniBand, gidB)
		lmc := rapid.Uint8Range(0, 7).Draw(t, "lmc")
		a.SetPort(&link.Port{LID: 0x100, LMC: lmc, SLtoVL: lanes})
		b.SetPort(&link.Port{LID: 0x200, LMC: lmc, SLtoVL: lanes})
		bits := ib.LID(1)<<lmc - 1
		out := make([]frame.Out, rapid.IntRange(1, 10).Draw(t, "packets"))
		in := make([]frame.In, len(out))
		for i := range out {
			r := path(rapid.Bool().Draw(t, "global"))
			r.IB.SL, r.IB.PathBits = rapid.Uint8Range(0, 14).Draw(t, "SL"), rapid.Byte().Draw(t, "path bits")
			r.IB.DLID = 0x200 | ib.LID(rapid.Uint16().Draw(t, "path"))&bits
			r.TrafficClass, r.FlowLabel = rapid.Byte().Draw(t, "class"), rapid.Uint32Range(0, 1<<20-1).Draw(t, "label")
			fill(&out[i], r, bytes.Repeat([]byte{byte(i)}, rapid.SampledFrom([]int{0, 1, 2, 3, 4, 60, 1024, 4096}).Draw(t, "length")))
		}
		a.Seal(out)
		for i := range out {
			in[i] = frame.In{Data: bytesOf(&out[i]), Raw: true}
		}
		if n := b.Open(in); n != len(in) || b.Counters() != (Counters{}) {
			t.Fatalf("%d of %d opened: %+v", n, len(in), b.Counters())
		}
		for i, p := range in {
			r := out[i].Route
			if p.SLID != 0x100|ib.LID(r.IB.PathBits)&bits || p.SL != r.IB.SL || ib.LID(p.PathBits) != r.IB.DLID&bits ||
				(p.GRH != nil) != r.IB.Global {
				t.Fatalf("packet %d of %+v opened as %+v", i, r.IB, p)
			}
		}
	})
}

func open2(mode Mode, gid ib.GID) *Encap {
	e, err := New(mode, nil, cable, 0)
	if err != nil {
		panic(err)
	}
	e.SetAddrs(append(e.addrs, gid.Addr()))
	return e
}

// FuzzOpenInfiniBand: no input makes Open panic, and every packet is accounted for.
func FuzzOpenInfiniBand(f *testing.F) {
	f.Add(sealed(f, path(false), []byte("local")))
	f.Add(sealed(f, path(true), []byte("global")))
	f.Add(unhex(f, specPacket))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := port(t, 8, gidB)
		in := []frame.In{{Data: b, Raw: true}}
		n := e.Open(in)
		if c := e.Counters(); uint64(n)+c.ICRCErrors+c.Malformed+c.NotForUs != 1 {
			t.Fatalf("%d taken, %+v", n, c)
		}
		if n == 1 && (len(in[0].Data) < ib.BTHLen || len(in[0].Data)%4 != 0 || in[0].SLID == 0) {
			t.Fatalf("accepted the packet %+v", in[0])
		}
	})
}

// TestInfiniBandAllocatesNothing: the data path of InfiniBand allocates nothing per packet.
func TestInfiniBandAllocatesNothing(t *testing.T) {
	for _, global := range []bool{false, true} {
		a, b, r := port(t, 4, gidA), port(t, 8, gidB), path(global)
		out, payload := make([]frame.Out, 8), make([]byte, 1021)
		in, data := make([]frame.In, len(out)), sealed(t, r, payload)
		if n := testing.AllocsPerRun(100, func() {
			for i := range out {
				fill(&out[i], r, payload)
				in[i] = frame.In{Data: data, Raw: true}
			}
			a.Seal(out)
			if b.Open(in) != len(in) {
				t.Error("a packet was dropped")
			}
		}); n != 0 {
			t.Errorf("global %v: %v allocations per batch, want none", global, n)
		}
	}
}

func BenchmarkInfiniBand(b *testing.B) {
	for _, n := range sizes {
		for _, global := range []bool{false, true} {
			form := map[bool]string{false: "local", true: "global"}[global]
			b.Run(fmt.Sprintf("seal/%s/%d", form, n), func(b *testing.B) {
				e, r, out, payload := port(b, 4, gidA), path(global), make([]frame.Out, 16), make([]byte, n)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for i := 0; i < b.N; i += len(out) {
					for j := range out {
						fill(&out[j], r, payload)
					}
					e.Seal(out)
				}
			})
			b.Run(fmt.Sprintf("open/%s/%d", form, n), func(b *testing.B) {
				e, data, in := port(b, 8, gidB), sealed(b, path(global), make([]byte, n)), make([]frame.In, 1)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					in[0] = frame.In{Data: data, Raw: true}
					if e.Open(in) != 1 {
						b.Fatal("dropped")
					}
				}
			})
		}
	}
}
