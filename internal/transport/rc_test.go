package transport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

const second = clock.Time(1e9)

// TestRCOperations carries out each operation at each path MTU and each length that is at or beside a packet
// boundary, and compares bytes and completions at both ends.
func TestRCOperations(t *testing.T) {
	for _, mtu := range []uint32{256, 1024, 4096} {
		for _, size := range []int{0, 1, 255, 256, 257, 4096, 4097, 65536, 1 << 20} {
			t.Run(fmt.Sprintf("mtu%d/%d", mtu, size), func(t *testing.T) { operations(t, mtu, size) })
		}
	}
}

func operations(t *testing.T, mtu uint32, size int) {
	n, a, b := newPair(t, 1, command.RC)
	c := defaultConnection()
	c.mtu = mtu
	c.psn = [2]uint32{0xfffffe, 0xfffff0} // the PSNs wrap in every program
	connect(a, b, c)
	// A multiple of 8 bytes: the allocator puts other sizes at odd addresses, where the processor has no atomics.
	room := (size + 15) &^ 7
	src, dst, back := pattern(room, 3), make([]byte, room), make([]byte, room)
	ra, rback := a.region(0x1000, src, 0), a.region(0x900000, back, allowAll)
	rb := b.region(0x5000, dst, allowAll)
	sge := func(r uint64, key uint32, n int) [ring.MaxSGE]ring.SGE {
		return [ring.MaxSGE]ring.SGE{{Addr: r, Length: uint32(n), LKey: key}}
	}
	check := func(what string, wantA, wantB int) {
		t.Helper()
		n.Run(n.Now()+second, func() bool { return len(a.comps) >= wantA && len(b.comps) >= wantB })
		if len(a.comps) != wantA || len(b.comps) != wantB {
			t.Fatalf("%s: completions %d and %d, want %d and %d", what, len(a.comps), len(b.comps), wantA, wantB)
		}
		for _, c := range append(a.comps, b.comps...) {
			if c.Status != ring.Success {
				t.Fatalf("%s: completion %+v", what, c)
			}
		}
		a.comps, b.comps = nil, nil
	}
	for i, op := range []ring.WROp{ring.OpSend, ring.OpSendImm, ring.OpWrite, ring.OpWriteImm} {
		clear(dst)
		b.postRecv(ring.RecvWR{ID: 9, NumSGE: 1, SGE: sge(0x5000, rb.Key, size)})
		want := 1
		if op == ring.OpWrite {
			want = 0
		}
		a.post(ring.SendWR{Op: op, Flags: ring.Signaled, ID: uint64(i), NumSGE: 1, SGE: sge(0x1000, ra.Key, size), Imm: 77,
			RemoteAddr: 0x5000, RKey: rb.Key})
		n.Run(n.Now()+second, func() bool { return len(a.comps) >= 1 && len(b.comps) >= want })
		for _, c := range b.comps {
			if int(c.ByteLen) != size || op.HasImm() != (c.Flags&ring.HasImm != 0) || op.HasImm() && c.Imm != 77 {
				t.Fatalf("%s: completion %+v", op, c)
			}
		}
		check(op.String(), 1, want)
		if !bytes.Equal(dst[:size], src[:size]) {
			t.Fatalf("%s: bytes differ", op)
		}
	}
	a.post(ring.SendWR{Op: ring.OpRead, Flags: ring.Signaled, NumSGE: 1, SGE: sge(0x900000, rback.Key, size), RemoteAddr: 0x5000,
		RKey: rb.Key})
	check("read", 1, 0)
	if !bytes.Equal(back[:size], src[:size]) {
		t.Fatal("read: bytes differ")
	}
	binary.NativeEndian.PutUint64(dst, 40)
	a.post(ring.SendWR{Op: ring.OpFetchAdd, Flags: ring.Signaled, NumSGE: 1, SGE: sge(0x900000, rback.Key, 8), RemoteAddr: 0x5000,
		RKey: rb.Key, CompareAdd: 2})
	check("fetch and add", 1, 0)
	a.post(ring.SendWR{Op: ring.OpCompareSwap, Flags: ring.Signaled, NumSGE: 1, SGE: sge(0x900000, rback.Key, 8), RemoteAddr: 0x5000,
		RKey: rb.Key, CompareAdd: 42, Swap: 99})
	check("compare and swap", 1, 0)
	if got := binary.NativeEndian.Uint64(back); got != 42 {
		t.Fatalf("compare and swap returned %d as the original value", got)
	}
	if got := binary.NativeEndian.Uint64(dst); got != 99 {
		t.Fatalf("after the atomics the operand is %d", got)
	}
}
