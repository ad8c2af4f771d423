package direct

import (
	"bytes"
	"testing"

	"github.com/softvpi/softvpi/internal/ring"
)

// heap is the memory of a peer's process, at the address heapAddress there. It records the calls.
type heap struct {
	mem   []byte
	fails bool
	calls int
	last  []Piece
}

const heapAddress = 0x5000_0000

func (h *heap) at(p Piece) []byte { return h.mem[p.Address-heapAddress:][:p.Length] }

func (h *heap) Write(far []Piece, near [][]byte) bool {
	h.calls, h.last = h.calls+1, append(h.last[:0], far...)
	all := bytes.Join(near, nil)
	for _, p := range far {
		all = all[copy(h.at(p), all[:p.Length]):]
	}
	return !h.fails && len(all) == 0
}

func (h *heap) Read(near [][]byte, far []Piece) bool {
	h.calls, h.last = h.calls+1, append(h.last[:0], far...)
	var all []byte
	for _, p := range far {
		all = append(all, h.at(p)...)
	}
	for _, b := range near {
		all = all[copy(b, all[:len(b)]):]
	}
	return !h.fails && len(all) == 0
}

// newHeapBench is a bench whose peer's process, number 3, has the memory of heapKey.
func newHeapBench(t *testing.T) (*bench, *heap) {
	h := &heap{mem: words(size)}
	b := newBench(t)
	b.peerKey.Remove(1, heapKey)
	b.peerKey.Add(Key{Key: heapKey, Adapter: 1, PD: peerPD, Access: uint32(allRights), Start: peerBase, Length: size, Address: heapAddress})
	b.i.env.Process = func(number uint32) (Process, bool) { return h, number != 3 }
	b.conf.PeerProcess = 3
	b.delegate()
	b.fill()
	return b, h
}

func heapPlace(off, n int) ring.SGE {
	return ring.SGE{Addr: peerBase + uint64(off), Length: uint32(n), LKey: heapKey}
}

// TestProcessCarriesEverything: to memory in no segment the initiator itself copies writes, reads and messages for
// receives, each with one call, in which the last bytes written are a piece of their own behind all others.
func TestProcessCarriesEverything(t *testing.T) {
	b, h := newHeapBench(t)
	for n := range 40 {
		b.fill()
		w := b.wr(ring.OpWriteImm, b.sge(0, n/2), b.sge(1000, n-n/2))
		w.RKey = heapKey
		want := append(bytes.Clone(b.own[:n/2]), b.own[1000:1000+n-n/2]...)
		b.receive(uint64(n))
		h.calls, h.last = 0, nil
		if !b.i.Execute(w) || !bytes.Equal(h.mem[:n], want) || h.calls != min(n, 1) {
			t.Fatalf("a write of %d bytes: reason %d, %d calls", n, b.way.Reason, h.calls)
		}
		if l := len(h.last); n > farTail && (l != 2 || h.last[1].Length != farTail) {
			t.Fatalf("a write of %d bytes went in pieces %v, want the last %d alone", n, h.last, farTail)
		}
		one(t, b.sendCQ)
		one(t, b.recvCQ)
		r := b.wr(ring.OpRead, b.sge(2000, n))
		r.RKey = heapKey
		if !b.i.Execute(r) || !bytes.Equal(b.own[2000:2000+n], want) {
			t.Fatalf("a read of %d bytes: reason %d", n, b.way.Reason)
		}
		one(t, b.sendCQ)
		b.receive(5, heapPlace(100, n/3), heapPlace(5000, n+1))
		h.calls = 0
		if !b.i.Execute(b.wr(ring.OpSend, b.sge(0, n))) || h.calls != min(n, 1) ||
			!bytes.Equal(append(bytes.Clone(h.mem[100:100+n/3]), h.mem[5000:5000+n-n/3]...), b.own[:n]) {
			t.Fatalf("a send of %d bytes: reason %d, %d calls", n, b.way.Reason, h.calls)
		}
		one(t, b.sendCQ)
		one(t, b.recvCQ)
	}
}

// TestProcessRefusals: what the initiator cannot copy in the peer's process, or not wholly, is the driver's, untouched
// but for bytes that the driver will write again: nothing completes, and no receive is taken.
func TestProcessRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		op   ring.WROp
		edit func(b *bench, h *heap)
		why  reason
	}{
		{"not offered", ring.OpWrite, func(b *bench, _ *heap) { b.conf.PeerProcess = 0; b.delegate() }, notShared},
		{"no access here", ring.OpWrite, func(b *bench, _ *heap) { b.i.env.Process = nil }, notShared},
		{"not yet told", ring.OpWrite, func(b *bench, _ *heap) { b.conf.PeerProcess = 4; b.delegate() }, notIntroduced},
		{"not permitted", ring.OpWrite, func(b *bench, _ *heap) {
			b.i.env.Process = func(uint32) (Process, bool) { return nil, false }
		}, notReached},
		{"partly copied write", ring.OpWrite, func(_ *bench, h *heap) { h.fails = true }, notCopied},
		{"partly copied read", ring.OpRead, func(_ *bench, h *heap) { h.fails = true }, notCopied},
		{"partly copied send", ring.OpSend, func(b *bench, h *heap) { h.fails = true; b.receive(1, heapPlace(0, 200)) }, notCopied},
		{"partly copied write with immediate", ring.OpWriteImm, func(b *bench, h *heap) { h.fails = true; b.receive(1) }, notCopied},
		{"receive partly in a segment", ring.OpSend, func(b *bench, _ *heap) { b.receive(1, heapPlace(0, 50), place(0, 50)) }, notShared},
		{"withdrawn", ring.OpWrite, func(b *bench, _ *heap) { b.peerKey.Remove(1, heapKey) }, remoteMemory},
		{"full send CQ", ring.OpWrite, func(b *bench, _ *heap) { b.exhaust(b.sendCQ) }, noCompletion},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, h := newHeapBench(t)
			c.edit(b, h)
			wr := b.wr(c.op, b.sge(0, 100))
			wr.RKey = heapKey
			waiting := b.post.Waiting()
			if b.i.Execute(wr) {
				t.Fatal("the operation was carried out")
			}
			if b.way.Delegated() == c.why.final() {
				t.Errorf("delegated is %v for reason %d", b.way.Delegated(), c.why)
			}
			if c.why.final() && (reason(b.way.Reason) != c.why || b.way.Returned() == "") {
				t.Errorf("reason %d (%q), want %d with a text", b.way.Reason, b.way.Returned(), c.why)
			}
			if b.post.Waiting() != waiting || b.way.LastTaken() != 0 {
				t.Error("a receive was taken")
			}
			var out [2 * entries]ring.CQE
			if b.recvCQ.Poll(out[:]) != 0 {
				t.Error("the receive completed")
			}
		})
	}
}

// TestAtomicsLeaveProcessesAlone: the kernel's copy is not atomic, so atomics on memory in no segment are the driver's.
func TestAtomicsLeaveProcessesAlone(t *testing.T) {
	b, h := newHeapBench(t)
	for _, op := range []ring.WROp{ring.OpFetchAdd, ring.OpCompareSwap} {
		b.delegate()
		wr := b.wr(op, b.sge(0, 8))
		wr.RKey = heapKey
		if b.i.Execute(wr) || h.calls != 0 || reason(b.way.Reason) != notShared {
			t.Errorf("%v: %d calls, reason %d; want it left to the driver", op, h.calls, b.way.Reason)
		}
	}
}
