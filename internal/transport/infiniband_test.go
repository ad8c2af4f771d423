package transport

import (
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// ibDatagram is a datagram for q as an InfiniBand port receives it from LID 5 at its LID 10 with SL 3.
func ibDatagram(q *QP, key ib.PKey, qkey uint32, grh *[ib.GRHLen]byte) frame.In {
	b := make([]byte, ib.BTHLen+ib.DETHLen+8)
	ib.BTH(b).Encode(ib.UDSendOnly, false, false, 0, key, ib.QPN(q.num), 1)
	ib.DETH(b[ib.BTHLen:]).Encode(qkey, 0x77)
	return frame.In{Data: b, Src: frame.LIDAddr(5), Dst: frame.LIDAddr(10), SLID: 5, SL: 3, PathBits: 2, GRH: grh}
}

// TestInfiniBandDatagrams: the completion of a datagram on InfiniBand has the sender's LID, the path bits and the SL,
// and says that there is a GRH only if the packet had one (IBA 11.4.2.1).
func TestInfiniBandDatagrams(t *testing.T) {
	var routes []*frame.Route
	b, mem := datagramEnd(t, sim.New(1), "10.0.0.2", &routes)
	grh := &[ib.GRHLen]byte{0x60, 39: 7}
	for i, g := range []*[ib.GRHLen]byte{nil, grh} {
		b.postRecv(ring.RecvWR{ID: uint64(i), NumSGE: 1, SGE: b.sgeAt(0x2000, 200)})
		b.e.Receive(0, []frame.In{ibDatagram(b.q, ib.PKeyDefault, 0x11111111, g)})
		var out [4]Completion
		if n := b.e.Completions(out[:]); n != 1 {
			t.Fatalf("%d completions, want 1", n)
		}
		want := ring.CQE{ID: uint64(i), QPN: b.q.num, ByteLen: 48, SrcQP: 0x77, Op: ring.CQRecv, Flags: ring.ReceiveSide, SL: 3,
			PathBits: 2, SLID: 5}
		area := [ib.GRHLen]byte{}
		if g != nil {
			want.Flags |= ring.HasGRH
			area = *g
		}
		if out[0].CQE != want {
			t.Errorf("completion %+v, want %+v", out[0].CQE, want)
		}
		if [ib.GRHLen]byte(mem[0x1000:]) != area {
			t.Errorf("the 40 bytes in front of the payload are %x, want %x", mem[0x1000:0x1028], area)
		}
	}
}

// TestViolationsAreTold: packets with a wrong P_Key or Q_Key are counted, and a bounded number of them is kept with
// what a subnet manager is told (traps 257 and 258, IBA 14.2.5.1). On Ethernet, which has no subnet manager, none is
// kept.
func TestViolationsAreTold(t *testing.T) {
	var routes []*frame.Route
	b, _ := datagramEnd(t, sim.New(1), "10.0.0.2", &routes)
	grh := &[ib.GRHLen]byte{}
	ib.GRH(grh[:]).SetSGID(ib.GID{15: 1})
	ib.GRH(grh[:]).SetDGID(ib.GID{15: 2})
	b.e.Receive(0, []frame.In{ibDatagram(b.q, 0x8001, 0x11111111, nil), ibDatagram(b.q, ib.PKeyDefault, 0x222, grh)})
	var out [maxViolations + 1]link.Violation
	want := []link.Violation{
		{Kind: link.PKeyViolation, Key: 0x8001, SLID: 5, DLID: 10, SL: 3, SourceQP: 0x77, DestQP: ib.QPN(b.q.num)},
		{Kind: link.QKeyViolation, Key: 0x222, SLID: 5, DLID: 10, SL: 3, SourceQP: 0x77, DestQP: ib.QPN(b.q.num), SGID: ib.GID{15: 1},
			DGID: ib.GID{15: 2}},
	}
	if n := b.e.Violations(out[:]); n != 2 || out[0] != want[0] || out[1] != want[1] {
		t.Errorf("%d violations: %+v, want %+v", n, out[:n], want)
	}
	ethernet := ibDatagram(b.q, 0x8001, 0, nil)
	ethernet.SLID = 0
	b.e.Receive(0, []frame.In{ethernet})
	if n := b.e.Violations(out[:]); n != 0 {
		t.Errorf("%d violations are kept on Ethernet, want none", n)
	}
	for range 2 * maxViolations {
		b.e.Receive(0, []frame.In{ibDatagram(b.q, 0x8001, 0, nil)})
	}
	if n := b.e.Violations(out[:]); n != maxViolations || b.e.counters.PKeyViolations != 2*maxViolations+2 {
		t.Errorf("%d violations are kept and %d counted", n, b.e.counters.PKeyViolations)
	}
}
