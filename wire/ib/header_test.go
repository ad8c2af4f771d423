package ib

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// Each setter changes its own bits and no others: all of them over random old bytes, in a
// random order, must give the same header as the values demand.
func TestBTHSettersKeepTheirBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := BTH(rapid.SliceOfN(rapid.Byte(), BTHLen, BTHLen).Draw(t, "old"))
		resv8a, resv7 := h[4]&0x3f, h[8]&0x7f
		op, pkey := Opcode(rapid.Byte().Draw(t, "op")), PKey(rapid.Uint16().Draw(t, "pkey"))
		qp, psn := QPN(rapid.Uint32Range(0, 1<<24-1).Draw(t, "qp")), drawPSN(t, "psn")
		pad, tver := rapid.IntRange(0, 3).Draw(t, "pad"), rapid.Uint8Range(0, 15).Draw(t, "tver")
		b := rapid.SliceOfN(rapid.Bool(), 5, 5).Draw(t, "bits")
		set := []func(){
			func() { h.SetOpcode(op) }, func() { h.SetPKey(pkey) }, func() { h.SetDestQP(qp) }, func() { h.SetPSN(psn) },
			func() { h.SetPadCount(pad) }, func() { h.SetTVer(tver) }, func() { h.SetSolicited(b[0]) }, func() { h.SetMigReq(b[1]) },
			func() { h.SetFECN(b[2]) }, func() { h.SetBECN(b[3]) }, func() { h.SetAckReq(b[4]) },
		}
		for _, f := range rapid.Permutation(set).Draw(t, "order") {
			f()
		}
		if h.Opcode() != op || h.PKey() != pkey || h.DestQP() != qp || h.PSN() != psn || h.PadCount() != pad || h.TVer() != tver ||
			h.Solicited() != b[0] || h.MigReq() != b[1] || h.FECN() != b[2] || h.BECN() != b[3] || h.AckReq() != b[4] {
			t.Fatalf("% x does not read back", []byte(h))
		}
		if h[4]&0x3f != resv8a || h[8]&0x7f != resv7 {
			t.Fatalf("% x: reserved bits changed", []byte(h))
		}
	})
}

func TestBTHEncodeIsItsSetters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op, se, ack := Opcode(rapid.Byte().Draw(t, "op")), rapid.Bool().Draw(t, "se"), rapid.Bool().Draw(t, "ack")
		pad, key := rapid.IntRange(0, 3).Draw(t, "pad"), PKey(rapid.Uint16().Draw(t, "pkey"))
		qp, psn := QPN(rapid.Uint32().Draw(t, "qp")), PSN(rapid.Uint32().Draw(t, "psn"))
		got, want := BTH(bytes.Repeat([]byte{0xa5}, BTHLen)), make(BTH, BTHLen)
		got.Encode(op, se, ack, pad, key, qp, psn)
		want.SetOpcode(op)
		want.SetSolicited(se)
		want.SetAckReq(ack)
		want.SetPadCount(pad)
		want.SetPKey(key)
		want.SetDestQP(qp)
		want.SetPSN(psn)
		if !bytes.Equal(got, want) {
			t.Fatalf("% x, want % x", []byte(got), []byte(want))
		}
	})
}

// Every bit of a BTH belongs to a field that is in its place (IBA figure "BTH").
func TestBTHLayout(t *testing.T) {
	h := BTH{0x04, 0xb0, 0x80, 0x01, 0x40, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef}
	if h.Opcode() != RCSendOnly || !h.Solicited() || h.MigReq() || h.PadCount() != 3 || h.TVer() != 0 || h.PKey() != 0x8001 ||
		h.FECN() || !h.BECN() || h.DestQP() != 0x123456 || !h.AckReq() || h.PSN() != 0xabcdef {
		t.Errorf("% x is read wrongly", []byte(h))
	}
}

func TestExtendedHeaderLayouts(t *testing.T) {
	b := make([]byte, 64)
	for i := range b {
		b[i] = byte(i + 1)
	}
	for _, c := range []struct {
		field     string
		got, want uint64
	}{
		{"FETH placement", uint64(FETH(b[0x20-1:]).Placement()), 0x3},
		{"FETH selectivity", uint64(FETH(b[0x20-4:]).Selectivity()), 0x2},
		{"RETH VA", RETH(b).VA(), 0x0102030405060708},
		{"RETH rkey", uint64(RETH(b).RKey()), 0x090a0b0c},
		{"RETH length", uint64(RETH(b).DMALen()), 0x0d0e0f10},
		{"AETH syndrome", uint64(AETH(b).Syndrome()), 0x01},
		{"AETH MSN", uint64(AETH(b).MSN()), 0x020304},
		{"AtomicETH VA", AtomicETH(b).VA(), 0x0102030405060708},
		{"AtomicETH rkey", uint64(AtomicETH(b).RKey()), 0x090a0b0c},
		{"AtomicETH swap", AtomicETH(b).SwapAdd(), 0x0d0e0f1011121314},
		{"AtomicETH compare", AtomicETH(b).Compare(), 0x15161718191a1b1c},
		{"AtomicAckETH", AtomicAckETH(b).Original(), 0x0102030405060708},
		{"ImmDt", uint64(ImmDt(b).Value()), 0x01020304},
		{"IETH", uint64(IETH(b).RKey()), 0x01020304},
		{"DETH qkey", uint64(DETH(b).QKey()), 0x01020304},
		{"DETH source", uint64(DETH(b).SrcQP()), 0x060708},
		{"GRH version", uint64(GRH(b).Version()), 0x0},
		{"GRH class", uint64(GRH(b).TrafficClass()), 0x10},
		{"GRH label", uint64(GRH(b).FlowLabel()), 0x20304},
		{"GRH length", uint64(GRH(b).PayLen()), 0x0506},
		{"GRH next", uint64(GRH(b).NextHeader()), 0x07},
		{"GRH hops", uint64(GRH(b).HopLimit()), 0x08},
		{"GRH SGID", uint64(GRH(b).SGID()[0]), 0x09},
		{"GRH DGID", uint64(GRH(b).DGID()[15]), 0x28},
		{"LRH VL", uint64(LRH(b).VL()), 0x0},
		{"LRH version", uint64(LRH(b).Version()), 0x1},
		{"LRH SL", uint64(LRH(b).SL()), 0x0},
		{"LRH next", uint64(LRH(b).NextHeader()), 0x2},
		{"LRH DLID", uint64(LRH(b).DLID()), 0x0304},
		{"LRH length", uint64(LRH(b).PktLen()), 0x0506},
		{"LRH SLID", uint64(LRH(b).SLID()), 0x0708},
	} {
		if c.got != c.want {
			t.Errorf("%s is %#x, want %#x", c.field, c.got, c.want)
		}
	}
}

func TestExtendedHeadersReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := rapid.SliceOfN(rapid.Byte(), GRHLen, GRHLen).Draw(t, "old")
		u64, v64, w64 := rapid.Uint64().Draw(t, "u"), rapid.Uint64().Draw(t, "v"), rapid.Uint64().Draw(t, "w")
		u32, v32 := uint32(v64), uint32(w64)
		b := func() []byte { return bytes.Clone(old) }
		same := func(what string, ok bool) {
			if !ok {
				t.Fatalf("%s does not read back", what)
			}
		}
		r := RETH(b())
		r.Encode(u64, u32, v32)
		f := FETH(b())
		f.Encode(Placement(u32), Selectivity(v32))
		same("FETH", f.Placement() == Placement(u32&0xf) && f.Selectivity() == Selectivity(v32&3))
		same("RETH", r.VA() == u64 && r.RKey() == u32 && r.DMALen() == v32)
		a := AtomicETH(b())
		a.Encode(u64, u32, v64, w64)
		same("AtomicETH", a.VA() == u64 && a.RKey() == u32 && a.SwapAdd() == v64 && a.Compare() == w64)
		k := AtomicAckETH(b())
		k.SetOriginal(u64)
		same("AtomicAckETH", k.Original() == u64)
		e := AETH(b())
		e.Encode(Syndrome(u64), u32)
		same("AETH", e.Syndrome() == Syndrome(u64) && e.MSN() == u32&0xffffff)
		e.SetSyndrome(NAKSequence)
		e.SetMSN(v32)
		same("AETH set", e.Syndrome() == NAKSequence && e.MSN() == v32&0xffffff)
		i, n := ImmDt(b()), IETH(b())
		i.SetValue(u32)
		n.SetRKey(v32)
		same("ImmDt and IETH", i.Value() == u32 && n.RKey() == v32)
		d := DETH(b())
		d.SetQKey(u32)
		d.SetSrcQP(QPN(v32))
		same("DETH", d.QKey() == u32 && d.SrcQP() == QPN(v32)&QPNMask && d[4] == old[4])
		d.Encode(v32, QPN(u32))
		same("DETH encode", d.QKey() == v32 && d.SrcQP() == QPN(u32)&QPNMask && d[4] == 0)
	})
}

func TestRouteHeadersReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := rapid.SliceOfN(rapid.Byte(), GRHLen, GRHLen).Draw(t, "old")
		src := GID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "src"))
		dst := GID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "dst"))
		tc, hops := rapid.Byte().Draw(t, "tc"), rapid.Byte().Draw(t, "hops")
		label, n := rapid.Uint32Range(0, 1<<20-1).Draw(t, "label"), int(rapid.Uint16().Draw(t, "len"))
		g, want := GRH(bytes.Clone(old)), make(GRH, GRHLen)
		set := []func(){
			func() { g.SetVersion(6) }, func() { g.SetTrafficClass(tc) }, func() { g.SetFlowLabel(label) }, func() { g.SetPayLen(n) },
			func() { g.SetNextHeader(GRHNextHeader) }, func() { g.SetHopLimit(hops) }, func() { g.SetSGID(src) }, func() { g.SetDGID(dst) },
		}
		for _, f := range rapid.Permutation(set).Draw(t, "order") {
			f()
		}
		want.Encode(tc, label, n, hops, src, dst)
		if !bytes.Equal(g, want) {
			t.Fatalf("setters give % x, Encode % x", []byte(g), []byte(want))
		}
		if g.Version() != 6 || g.TrafficClass() != tc || g.FlowLabel() != label || g.PayLen() != n || g.HopLimit() != hops ||
			g.SGID() != src || g.DGID() != dst {
			t.Fatalf("% x does not read back", []byte(g))
		}
		l := LRH(bytes.Clone(old[:LRHLen]))
		vl, sl, words := tc&15, tc>>4, n&0x7ff
		lset := []func(){
			func() { l.SetVL(vl) }, func() { l.SetVersion(hops & 15) }, func() { l.SetSL(sl) }, func() { l.SetNextHeader(hops & 3) },
			func() { l.SetDLID(LID(n)) }, func() { l.SetPktLen(words) }, func() { l.SetSLID(LID(label)) },
		}
		for _, f := range rapid.Permutation(lset).Draw(t, "lrh order") {
			f()
		}
		if l.VL() != vl || l.Version() != hops&15 || l.SL() != sl || l.NextHeader() != hops&3 || l.DLID() != LID(n) ||
			l.PktLen() != words || l.SLID() != LID(label) {
			t.Fatalf("LRH % x does not read back", []byte(l))
		}
	})
}

// Annex A14.4: eight reserved bits, then the number.
func TestXRCETH(t *testing.T) {
	h := XRCETH{0xff, 0xff, 0xff, 0xff}
	if h.SRQ() != 0xffffff {
		t.Errorf("number %#x, want 0xffffff: the first byte is reserved", h.SRQ())
	}
	if h.SetSRQ(0xaa123456); !bytes.Equal(h, []byte{0, 0x12, 0x34, 0x56}) {
		t.Errorf("0x123456 is % x", []byte(h))
	}
	op := XRCWriteFirst
	b := make([]byte, BTHLen+XRCETHLen+RETHLen)
	BTH(b).Encode(op, false, false, 0, PKeyDefault, 2, 3)
	XRCETH(b[BTHLen:]).SetSRQ(0x123456)
	RETH(b[BTHLen+XRCETHLen:]).Encode(0x1000, 7, 64)
	if p, err := ParsePacket(b); err != nil || p.XRCETH.SRQ() != 0x123456 || p.RETH.VA() != 0x1000 || p.RETH.DMALen() != 64 {
		t.Errorf("%v: parsed as %+v, %v", op, p, err)
	}
}
