package direct

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestWritesAndReads: writes and reads of every shape move the bytes and complete.
func TestWritesAndReads(t *testing.T) {
	b := newBench(t)
	for _, n := range []int{0, 1, 3, 7, 8, 9, 64, 1000, 4096, 60000} {
		for _, key := range []uint32{peerKey, zeroKey} {
			b.fill()
			third := n / 3
			wr := b.wr(ring.OpWrite, b.sge(1, third), b.sge(2000, 0), b.sge(2+third, n-third))
			if wr.RKey = key; key == zeroKey {
				wr.RemoteAddr = 0
			}
			wr.RemoteAddr += 5
			want := append(bytes.Clone(b.own[1:1+third]), b.own[2+third:2+n]...)
			if !b.i.Execute(wr) || !bytes.Equal(b.remote()[5:5+n], want) {
				t.Fatalf("a write of %d bytes was not carried out, or moved other bytes", n)
			}
			c := one(t, b.sendCQ)
			if c.ID != 5 || c.Op != ring.CQWrite || c.ByteLen != uint32(n) || c.Context != 111 || c.QPN != 11 || c.Timestamp != 77 {
				t.Errorf("completion %+v of the write", c)
			}
			rd := b.wr(ring.OpRead, b.sge(100, third), b.sge(100+third, n-third))
			rd.RKey, rd.RemoteAddr = key, wr.RemoteAddr
			if !b.i.Execute(rd) || !bytes.Equal(b.own[100:100+n], want) {
				t.Fatalf("a read of %d bytes was not carried out, or moved other bytes", n)
			}
			if c := one(t, b.sendCQ); c.Op != ring.CQRead || c.ByteLen != uint32(n) {
				t.Errorf("completion %+v, want a read of %d bytes", c, n)
			}
		}
	}
}

// TestSendsLandInReceives: sends arrive in the receives in order, however both are cut into pieces.
func TestSendsLandInReceives(t *testing.T) {
	b := newBench(t)
	for _, n := range []int{0, 1, 5, 8, 64, 1001} {
		b.fill()
		b.receive(31, place(10, n/2), place(5000, n+1))
		wr := b.wr(ring.OpSendImm, b.sge(0, n/4), b.sge(8000, n-n/4))
		wr.Imm, wr.Flags = 99, ring.Signaled|ring.Solicited
		want := append(bytes.Clone(b.own[:n/4]), b.own[8000:8000+n-n/4]...)
		if !b.i.Execute(wr) {
			t.Fatalf("send of %d bytes: reason %d", n, b.way.Reason)
		}
		got := append(bytes.Clone(b.remote()[10:10+n/2]), b.remote()[5000:5000+n-n/2]...)
		if !bytes.Equal(got, want) {
			t.Fatalf("a send of %d bytes arrived with other bytes", n)
		}
		if c := one(t, b.sendCQ); c.Op != ring.CQSend || c.ByteLen != uint32(n) {
			t.Errorf("completion %+v, want a send of %d bytes", c, n)
		}
		c := one(t, b.recvCQ)
		if c.ID != 31 || c.Op != ring.CQRecv || c.ByteLen != uint32(n) || c.Imm != 99 || c.Context != 222 || c.QPN != 22 ||
			c.Flags != ring.HasImm|ring.IsSolicited|ring.ReceiveSide {
			t.Errorf("completion %+v of the receive", c)
		}
	}
	if b.way.LastTaken() != 6 {
		t.Errorf("%d receives taken, want 6", b.way.LastTaken())
	}
	b.receive(32)
	wr := b.wr(ring.OpWriteImm, b.sge(0, 100))
	if !b.i.Execute(wr) || !bytes.Equal(b.remote()[:100], b.own[:100]) {
		t.Fatal("a write with immediate data was not carried out, or moved other bytes")
	}
	if c := one(t, b.recvCQ); c.ID != 32 || c.Op != ring.CQRecvWrite || c.ByteLen != 100 {
		t.Errorf("completion %+v, want a write of 100 bytes in receive 32", c)
	}
}

// TestReceiveMemoryIsCheckedWhereBytesLand: what is behind the end of a message in its receive need not be usable, and
// none of it needs to be for a write with immediate data (adapters check an L_Key when they access what it names, IBA
// 10.6.4).
func TestReceiveMemoryIsCheckedWhereBytesLand(t *testing.T) {
	bad := ring.SGE{Addr: peerBase, Length: 200, LKey: 0x999}
	b := newBench(t)
	b.receive(1, bad)
	b.receive(2, place(0, 100), bad)
	b.receive(3, bad)
	for i, wr := range []*ring.SendWR{b.wr(ring.OpSend, b.sge(0, 0)), b.wr(ring.OpSend, b.sge(0, 100)),
		b.wr(ring.OpWriteImm, b.sge(0, 100))} {
		if !b.i.Execute(wr) {
			t.Fatalf("request %d was not carried out", i)
		}
		if c := one(t, b.recvCQ); c.ID != uint64(i+1) || c.Status != ring.Success {
			t.Errorf("completion %+v, want receive %d", c, i+1)
		}
		one(t, b.sendCQ)
	}
	b.receive(4, place(0, 99), bad)
	if b.i.Execute(b.wr(ring.OpSend, b.sge(0, 100))) {
		t.Error("a message was carried out that reaches memory that cannot be used")
	}
}

// TestAtomics: atomics return the previous value and act on the peer's memory.
func TestAtomics(t *testing.T) {
	b := newBench(t)
	ne := binary.NativeEndian
	ne.PutUint64(b.remote(), 40)
	add := b.wr(ring.OpFetchAdd, b.sge(8, 8))
	add.CompareAdd = 2
	if !b.i.Execute(add) || ne.Uint64(b.own[8:]) != 40 || ne.Uint64(b.remote()) != 42 {
		t.Error("fetch and add was not carried out, or with another result")
	}
	swap := b.wr(ring.OpCompareSwap, b.sge(16, 8))
	swap.CompareAdd, swap.Swap = 41, 1
	if !b.i.Execute(swap) || ne.Uint64(b.own[16:]) != 42 || ne.Uint64(b.remote()) != 42 {
		t.Error("a compare and swap that does not match was not carried out, or changed the memory")
	}
	swap.CompareAdd = 42
	if !b.i.Execute(swap) || ne.Uint64(b.remote()) != 1 {
		t.Error("a compare and swap that matches was not carried out, or did not change the memory")
	}
}

// TestRefusals: an operation that does not plainly succeed is left to the driver: nothing is moved, completed or
// taken, and the direction is given back, or kept if waiting may help.
func TestRefusals(t *testing.T) {
	sgeOf := func(key uint32) func(b *bench, wr *ring.SendWR) {
		return func(b *bench, wr *ring.SendWR) { wr.SGE[0].LKey = key }
	}
	receiveOf := func(s ring.SGE) func(b *bench, wr *ring.SendWR) {
		return func(b *bench, _ *ring.SendWR) { b.receive(1, s) }
	}
	for _, c := range []struct {
		name string
		op   ring.WROp
		edit func(b *bench, wr *ring.SendWR)
		why  reason
	}{
		{"bind", ring.OpBind, nil, otherRequest},
		{"invalidate", ring.OpLocalInvalidate, nil, otherRequest},
		{"send with invalidate", ring.OpSendInv, nil, otherRequest},
		{"too long", ring.OpWrite, func(b *bench, wr *ring.SendWR) {
			b.ownKeys.Remove(0, ownKey)
			b.ownKeys.Add(Key{Key: ownKey, PD: ownPD, Length: 1 << 32})
			wr.SGE[0] = ring.SGE{Length: maxMessage + 1, LKey: ownKey}
		}, otherRequest},
		{"unknown lkey", ring.OpWrite, sgeOf(0x999), localMemory},
		{"lkey 0", ring.OpWrite, sgeOf(0), localMemory},
		{"end of local region", ring.OpWrite, func(b *bench, wr *ring.SendWR) { wr.SGE[0].Addr += size - 99 }, localMemory},
		{"local address wraps", ring.OpWrite, func(b *bench, wr *ring.SendWR) { wr.SGE[0].Addr = ^uint64(0) - 5 }, localMemory},
		{"local domain", ring.OpWrite, func(b *bench, _ *ring.SendWR) { b.conf.OwnPD++; b.delegate() }, localMemory},
		{"read without local write", ring.OpRead, sgeOf(plainKey), localMemory},
		{"unknown rkey", ring.OpWrite, func(_ *bench, wr *ring.SendWR) { wr.RKey++ }, remoteMemory},
		{"withdrawn rkey", ring.OpWrite, func(b *bench, _ *ring.SendWR) { b.peerKey.Remove(1, peerKey) }, remoteMemory},
		{"other adapter", ring.OpWrite, func(b *bench, _ *ring.SendWR) { b.conf.PeerAdapter = 2; b.delegate() }, remoteMemory},
		{"end of region", ring.OpWrite, func(_ *bench, wr *ring.SendWR) { wr.RemoteAddr += size - 99 }, remoteMemory},
		{"before region", ring.OpWrite, func(_ *bench, wr *ring.SendWR) { wr.RemoteAddr-- }, remoteMemory},
		{"rights of the region", ring.OpWrite, func(_ *bench, wr *ring.SendWR) { wr.RKey = plainKey }, remoteMemory},
		{"rights of the QP to write", ring.OpWrite, func(b *bench,
			_ *ring.SendWR) {
			b.conf.Access = uint32(memory.RemoteRead)
			b.delegate()
		}, remoteMemory},
		{"rights of the QP to read", ring.OpRead, func(b *bench,
			_ *ring.SendWR) {
			b.conf.Access = uint32(memory.RemoteWrite)
			b.delegate()
		}, remoteMemory},
		{"remote domain", ring.OpRead, func(_ *bench, wr *ring.SendWR) { wr.RKey = otherKey }, remoteMemory},
		{"no reads", ring.OpRead, func(b *bench, _ *ring.SendWR) { b.conf.Flags &^= Answers; b.delegate() }, otherRequest},
		{"misaligned atomic", ring.OpFetchAdd, func(b *bench, wr *ring.SendWR) { wr.RemoteAddr += 4; wr.SGE[0].Length = 8 }, otherRequest},
		{"length of atomic", ring.OpFetchAdd, nil, otherRequest},
		{"memory of its own", ring.OpWrite, func(_ *bench, wr *ring.SendWR) { wr.RKey = heapKey }, notShared},
		{"segment that comes", ring.OpWrite, func(_ *bench, wr *ring.SendWR) { wr.RKey = laterKey }, notMapped},
		{"arena that comes", ring.OpWrite, func(b *bench, _ *ring.SendWR) { b.conf.RecvCQ.Arena = 1; b.delegate() }, notIntroduced},
		{"full send CQ", ring.OpWrite, func(b *bench, _ *ring.SendWR) { b.exhaust(b.sendCQ) }, noCompletion},
		{"SRQ", ring.OpSend, func(b *bench, _ *ring.SendWR) { b.conf.Flags &^= Receives; b.delegate() }, otherRequest},
		{"no receive", ring.OpSend, nil, noReceive},
		{"short receive", ring.OpSend, receiveOf(place(0, 99)), tooShort},
		{"receive with a bad lkey", ring.OpSend, receiveOf(ring.SGE{Addr: peerBase, Length: 200, LKey: 0x999}), remoteMemory},
		{"receive without local write", ring.OpSend, receiveOf(ring.SGE{Addr: peerBase, Length: 200, LKey: plainKey}), remoteMemory},
		{"receive in other memory", ring.OpSend, receiveOf(ring.SGE{Addr: peerBase, Length: 200, LKey: heapKey}), notShared},
		{"full receive CQ", ring.OpSend, func(b *bench, _ *ring.SendWR) { b.receive(1, place(0, 200)); b.exhaust(b.recvCQ) }, noCompletion},
		{"write with immediate and no receive", ring.OpWriteImm, nil, noReceive},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			wr := b.wr(c.op, b.sge(0, 100))
			if c.edit != nil {
				c.edit(b, wr)
			}
			waiting := b.post.Waiting()
			if b.i.Execute(wr) {
				t.Fatal("the operation was carried out")
			}
			if _, inside := b.way.Inside(); inside {
				t.Error("the record still shows an operation in progress")
			}
			if delegated := !c.why.final(); b.way.Delegated() != delegated {
				t.Errorf("delegated is %v, want %v", b.way.Delegated(), delegated)
			}
			if c.why.final() && reason(b.way.Reason) != c.why {
				t.Errorf("reason %d, want %d", b.way.Reason, c.why)
			}
			if b.post.Waiting() != waiting {
				t.Error("a receive was taken")
			}
			for n, q := range []*ring.CQ{b.sendCQ, b.recvCQ} {
				var out [2 * entries]ring.CQE
				for _, e := range out[:q.Poll(out[:])] {
					if e.ID != 1000 {
						t.Errorf("completion in queue %d: %+v", n, e)
					}
				}
			}
			if b.way.Count(countWrite).Messages+b.way.Count(countSend).Messages != 0 {
				t.Error("the refused operation was counted")
			}
		})
	}
}

// exhaust fills the second ring of a CQ.
func (b *bench) exhaust(q *ring.CQ) {
	for {
		slot, ok := q.Shared().Claim(1)
		if !ok {
			return
		}
		q.Shared().Fill(slot, 1, &ring.CQE{ID: 1000}, 0)
	}
}

// TestNothingIsDoneWithoutALease: without a lease nothing is done, and the record is not touched.
func TestNothingIsDoneWithoutALease(t *testing.T) {
	b := newBench(t)
	b.way.Recall()
	if b.i.Execute(b.wr(ring.OpWrite, b.sge(0, 8))) || b.i.Delegated() {
		t.Error("an operation was carried out after a recall")
	}
	if op, _ := b.way.Inside(); op != 0 {
		t.Error("the record shows an operation though there was no lease")
	}
	b.delegate()
	b.i.Stop()
	if b.i.Execute(b.wr(ring.OpWrite, b.sge(0, 8))) {
		t.Error("an operation was carried out after Stop")
	}
}

// TestCatchUp: requests that wait in the send queue are carried out in order as soon as possible, and each is
// released when it is done.
func TestCatchUp(t *testing.T) {
	b := newBench(t)
	for id := range uint64(3) {
		wr := b.wr(ring.OpSend, b.sge(int(id)*8, 8))
		wr.ID = id
		if err := b.send.Post(wr); err != nil {
			t.Fatal(err)
		}
	}
	b.fill()
	if b.i.CatchUp(b.send) || !b.way.Delegated() {
		t.Fatal("sends without receives were carried out, or the direction given back")
	}
	b.receive(50, place(0, 8))
	if b.i.CatchUp(b.send) || b.send.Room() != entries-2 {
		t.Fatalf("room for %d after one of three, want %d", b.send.Room(), entries-2)
	}
	b.receive(51, place(8, 8))
	b.receive(52, place(16, 8))
	if !b.i.CatchUp(b.send) || !b.send.Idle() {
		t.Fatal("requests are left")
	}
	if !bytes.Equal(b.remote()[:24], b.own[:24]) {
		t.Error("the receives hold other bytes than were sent")
	}
	var out [8]ring.CQE
	if n := b.sendCQ.Poll(out[:]); n != 3 || out[0].ID != 0 || out[2].ID != 2 {
		t.Errorf("%d completions: %+v", n, out[:n])
	}
	if err := b.send.Post(b.wr(ring.OpBind)); err != nil {
		t.Fatal(err)
	}
	if b.i.CatchUp(b.send) || b.way.Delegated() || b.send.Idle() {
		t.Error("a bind was carried out, or the direction kept")
	}
}

// TestTermsAreTakenOverWhole: a delegation whose terms could not all be used leaves nothing of them to the next.
func TestTermsAreTakenOverWhole(t *testing.T) {
	b := newBench(t)
	write := func() bool { return b.i.Execute(b.wr(ring.OpWrite, b.sge(0, 8))) }
	if !write() {
		t.Fatal("a write was not carried out")
	}
	one(t, b.sendCQ)
	good := b.conf
	b.conf.SendCQ.Offset, b.conf.RecvCQ.Arena = 1<<15, 1 // the second is not mapped
	b.delegate()
	if write() {
		t.Fatal("a write was carried out without the peer's CQ")
	}
	b.conf = good
	b.delegate()
	if !write() {
		t.Fatal("a write under the next delegation was not carried out")
	}
	one(t, b.sendCQ)
}

// TestTable: keys can be added and removed; a key without a free row near its index is not added.
func TestTable(t *testing.T) {
	table, err := OpenTable(words(TableSize))
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint32(tableProbes) {
		if !table.Add(Key{Key: (7+i*tableKeys)<<8 | i}) {
			t.Fatalf("key %d has no row", i)
		}
	}
	if table.Add(Key{Key: 7 + tableProbes*tableKeys<<8}) && table.Find(0, 7<<8) == nil {
		t.Error("a row was used twice")
	}
	table.Remove(0, (7+2*tableKeys)<<8|2)
	if table.Find(0, (7+2*tableKeys)<<8|2) != nil || table.Find(0, (7+3*tableKeys)<<8|3) == nil || table.Find(1, 7<<8) != nil {
		t.Error("keys are confused")
	}
}
