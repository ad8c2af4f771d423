package ib

import (
	"bytes"
	"errors"
	"testing"
)

func TestParsePacketRefuses(t *testing.T) {
	bth := func(op Opcode, pad int, rest int) []byte {
		b := make([]byte, BTHLen+rest)
		BTH(b).Encode(op, false, false, pad, PKeyDefault, 2, 3)
		return b
	}
	badVersion := bth(RCSendOnly, 0, 0)
	BTH(badVersion).SetTVer(1)
	for _, c := range []struct {
		name, field string
		b           []byte
	}{
		{"nothing", "BTH length", nil},
		{"short BTH", "BTH length", bth(RCSendOnly, 0, 0)[:11]},
		{"unknown opcode", "opcode", bth(0x15, 0, 32)},
		{"transport version 1", "transport version", badVersion},
		{"RETH cut", "length after the BTH", bth(RCWriteOnly, 0, 15)},
		{"pad longer than the rest", "length after the BTH", bth(RCSendOnly, 3, 2)},
		{"acknowledgement with payload", "payload of RC Acknowledge", bth(RCAcknowledge, 0, 8)},
		{"short CNP", "CNP reserved length", bth(CNP, 0, 12)},
	} {
		_, err := ParsePacket(c.b)
		var pe *PacketError
		if !errors.As(err, &pe) || pe.Field != c.field {
			t.Errorf("%s: error %v, want one about %q", c.name, err, c.field)
		}
	}
}

func TestParsePacketFindsEveryHeader(t *testing.T) {
	for i := range 256 {
		op := Opcode(i)
		n, known := HeaderLength(op)
		if !known {
			continue
		}
		pad, payload := 0, 0
		switch {
		case op == CNP:
			payload = CNPReservedLen
		case op.HasPayload():
			pad, payload = 3, 5
		}
		b := make([]byte, BTHLen+n+payload+pad)
		for j := range b {
			b[j] = byte(j)
		}
		BTH(b).Encode(op, false, false, pad, PKeyDefault, 2, 3)
		p, err := ParsePacket(b)
		if err != nil {
			t.Errorf("%v: %v", op, err)
			continue
		}
		if (p.RETH != nil) != op.HasRETH() || (p.AETH != nil) != op.HasAETH() || (p.AtomicETH != nil) != op.HasAtomicETH() ||
			(p.AtomicAck != nil) != op.HasAtomicAck() || (p.DETH != nil) != op.HasDETH() || (p.ImmDt != nil) != op.HasImm() ||
			(p.IETH != nil) != op.HasIETH() || (p.XRCETH != nil) != op.HasXRCETH() || (p.FETH != nil) != op.HasFETH() {
			t.Errorf("%v: wrong headers", op)
		}
		if len(p.Payload) != payload || len(p.Pad) != pad {
			t.Errorf("%v: payload %d, pad %d, want %d, %d", op, len(p.Payload), len(p.Pad), payload, pad)
		}
		if !bytes.Equal(p.Append(nil), b) {
			t.Errorf("%v does not come back in order", op)
		}
	}
}

// reencode builds the packet again from the values of its fields. Reserved bits come out as zero.
func reencode(p Packet) []byte {
	h := make(BTH, BTHLen)
	h.Encode(p.BTH.Opcode(), p.BTH.Solicited(), p.BTH.AckReq(), p.BTH.PadCount(), p.BTH.PKey(), p.BTH.DestQP(), p.BTH.PSN())
	h.SetFECN(p.BTH.FECN())
	h.SetBECN(p.BTH.BECN())
	h.SetMigReq(p.BTH.MigReq())
	b := []byte(h)
	ext := func(n int) []byte {
		b = append(b, make([]byte, n)...)
		return b[len(b)-n:]
	}
	if x := p.XRCETH; x != nil {
		XRCETH(ext(XRCETHLen)).SetSRQ(x.SRQ())
	}
	if d := p.DETH; d != nil {
		DETH(ext(DETHLen)).Encode(d.QKey(), d.SrcQP())
	}
	if f := p.FETH; f != nil {
		FETH(ext(FETHLen)).Encode(f.Placement(), f.Selectivity())
	}
	if r := p.RETH; r != nil {
		RETH(ext(RETHLen)).Encode(r.VA(), r.RKey(), r.DMALen())
	}
	if a := p.AtomicETH; a != nil {
		AtomicETH(ext(AtomicETHLen)).Encode(a.VA(), a.RKey(), a.SwapAdd(), a.Compare())
	}
	if a := p.AETH; a != nil {
		AETH(ext(AETHLen)).Encode(a.Syndrome(), a.MSN())
	}
	if a := p.AtomicAck; a != nil {
		AtomicAckETH(ext(AtomicAckETHLen)).SetOriginal(a.Original())
	}
	if i := p.ImmDt; i != nil {
		ImmDt(ext(ImmDtLen)).SetValue(i.Value())
	}
	if i := p.IETH; i != nil {
		IETH(ext(IETHLen)).SetRKey(i.RKey())
	}
	b = append(b, p.Payload...)
	return append(b, p.Pad...)
}

// FuzzParsePacket: no bytes make it panic, and what it accepts is the same packet when
// encoded again from its fields, but for reserved bits.
func FuzzParsePacket(f *testing.F) {
	for i := range 256 {
		n, _ := HeaderLength(Opcode(i))
		b := make([]byte, BTHLen+n+16)
		BTH(b).Encode(Opcode(i), true, true, 1, PKeyDefault, 0x123456, 0xfffffe)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePacket(b)
		if err != nil {
			var pe *PacketError
			if !errors.As(err, &pe) {
				t.Fatalf("error %v is not a *PacketError", err)
			}
			return
		}
		if got := p.Append(nil); !bytes.Equal(got, b) {
			t.Fatalf("% x comes back as % x", b, got)
		}
		want := bytes.Clone(b)
		want[bthECN] &= bthFECN | bthBECN
		want[bthAckReq] &= bthAck
		if p.DETH != nil {
			want[BTHLen+4] = 0
		}
		if p.XRCETH != nil {
			want[BTHLen] = 0
		}
		if got := reencode(p); !bytes.Equal(got, want) {
			t.Fatalf("% x is encoded as % x", want, got)
		}
	})
}
