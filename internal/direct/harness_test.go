package direct

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
)

func words(n int) []byte {
	w := make([]uint64, n/8+8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), len(w)*8)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+n : skip+n]
}

const (
	allRights = memory.LocalWrite | memory.RemoteWrite | memory.RemoteRead | memory.RemoteAtomic
	ownKey    = 0x101
	peerKey   = 0x201 // in segment 5, from its byte 4096 on
	heapKey   = 0x301 // the peer's own memory
	laterKey  = 0x401 // in a segment that is being mapped
	plainKey  = 0x501 // no remote rights, no local write
	otherKey  = 0x601 // of another protection domain
	zeroKey   = 0x701 // zero-based
	ownPD     = 3
	peerPD    = 4
	peerBase  = 0x7000_0000
	size      = 64 << 10
	entries   = 8
)

// bench is one side; the test has the driver's view of both.
type bench struct {
	t                testing.TB
	i                *Initiator
	way              *Direction
	own, segment     []byte
	arenas           [2][]byte
	sendCQ, recvCQ   *ring.CQ
	post             *ring.Recv
	send             *ring.Send
	conf             Terms
	woken, rung      int
	lease            uint32
	ownKeys, peerKey Table
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, own: words(size), segment: words(size + 8192)}
	b.arenas = [2][]byte{words(1 << 16), words(1 << 16)}
	var err error
	check := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	b.ownKeys, err = OpenTable(words(TableSize))
	check()
	b.peerKey, err = OpenTable(words(TableSize))
	check()
	address := uint64(uintptr(unsafe.Pointer(&b.own[0])))
	b.ownKeys.Add(Key{Key: ownKey, PD: ownPD, Access: uint32(memory.LocalWrite), Start: address, Address: address, Length: size})
	b.ownKeys.Add(Key{Key: plainKey, PD: ownPD, Start: address, Address: address, Length: size})
	add := func(key, pd, segment uint32, access memory.Access, start uint64) {
		b.peerKey.Add(Key{Key: key, Adapter: 1, PD: pd, Access: uint32(access), Start: start, Length: size, Segment: segment, Offset: 4096})
	}
	add(peerKey, peerPD, 5, allRights, peerBase)
	add(heapKey, peerPD, 0, allRights, peerBase)
	add(laterKey, peerPD, 6, allRights, peerBase)
	add(plainKey, peerPD, 5, 0, peerBase)
	add(otherKey, peerPD+1, 5, allRights, peerBase)
	add(zeroKey, peerPD, 5, allRights, 0)

	cq, recv := ring.CQGeometry(entries), ring.RecvGeometry(entries, 4)
	n := cq.Size() + ring.SharedSize(cq)
	b.sendCQ, err = ring.OpenCQ(b.arenas[0][:n], cq)
	check()
	b.recvCQ, err = ring.OpenCQ(b.arenas[1][:n], cq)
	check()
	at := uint64(n+63) &^ 63
	b.post, err = ring.OpenRecv(b.arenas[1][at:], recv)
	check()
	b.send, err = ring.OpenSend(words(ring.SendGeometry(entries, 4, 64).Size()), ring.SendGeometry(entries, 4, 64))
	check()
	record, err := OpenRecord(words(RecordSize))
	check()
	b.way = &record.Way[0]
	b.i = NewInitiator(record, 0, Surroundings{
		Own: b.ownKeys, Peer: b.peerKey, Owner: 9,
		OwnArena: b.arena(0), PeerArena: b.arena(1),
		Segment: func(id uint32) ([]byte, bool) {
			if id == 5 {
				return b.segment, false
			}
			return nil, id == 6
		},
		Wake: func(*uint32) { b.woken++ },
		Ring: func() { b.rung++ },
		Now:  func() uint64 { return 77 },
	})
	b.conf = Terms{
		SendCQ: RingAt{Entries: entries, Stride: ring.CQESize}, RecvCQ: RingAt{Entries: entries, Stride: ring.CQESize},
		Receive: RingAt{Entries: uint32(recv.Entries), Stride: uint32(recv.Stride), Offset: at},
		OwnPD:   ownPD, PeerPD: peerPD, PeerAdapter: 1, OwnQPN: 11, PeerQPN: 22, OwnContext: 111, PeerContext: 222,
		Access: uint32(allRights), Flags: Receives | Answers | SendTimes | RecvTimes, MTU: 1024,
	}
	b.delegate()
	return b
}

func (b *bench) arena(n int) func(uint32) []byte {
	return func(id uint32) []byte {
		if id != 0 {
			return nil
		}
		return b.arenas[n]
	}
}

func (b *bench) delegate() {
	b.lease++
	b.way.Delegate(b.lease, &b.conf)
}

func (b *bench) sge(off, n int) ring.SGE {
	return ring.SGE{Addr: uint64(uintptr(unsafe.Pointer(&b.own[0]))) + uint64(off), Length: uint32(n), LKey: ownKey}
}

func (b *bench) wr(op ring.WROp, sges ...ring.SGE) *ring.SendWR {
	wr := &ring.SendWR{Op: op, Flags: ring.Signaled, ID: 5, RemoteAddr: peerBase, RKey: peerKey, NumSGE: uint8(len(sges))}
	copy(wr.SGE[:], sges)
	return wr
}

func (b *bench) receive(id uint64, sges ...ring.SGE) {
	b.t.Helper()
	wr := &ring.RecvWR{ID: id, NumSGE: uint32(len(sges))}
	copy(wr.SGE[:], sges)
	if err := b.post.Post(wr); err != nil {
		b.t.Fatal(err)
	}
}

func place(off, n int) ring.SGE {
	return ring.SGE{Addr: peerBase + uint64(off), Length: uint32(n), LKey: peerKey}
}

func one(t *testing.T, q *ring.CQ) ring.CQE {
	t.Helper()
	var out [2]ring.CQE
	if n := q.Poll(out[:]); n != 1 {
		t.Fatalf("%d completions, want 1", n)
	}
	return out[0]
}

func (b *bench) fill() {
	for i := range b.own {
		b.own[i] = byte(rand.Uint32())
	}
}

// remote returns the peer's region.
func (b *bench) remote() []byte { return b.segment[4096 : 4096+size] }
