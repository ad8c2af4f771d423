package ring

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/softvpi/softvpi/internal/cpu/prefetch"
	"github.com/softvpi/softvpi/internal/cpu/release"
)

// The second ring of a CQ holds completions that programs push themselves on the direct path. Its memory
// follows that of the first ring. It begins with a header of 64 bytes whose first word is the tail, the
// index to be claimed next; then come entries of 64 bytes like those of the first ring, with the stamp
// (u32) at offset 48 and the state (u64) at offset 56.
//
// The state is the lap (index / entries) << 32 | owner << 2 | phase, so that zeroed memory is a ring whose
// first lap is free. A slot is claimed through its state, not through the tail, so that when a program
// dies its claims can be told apart from those that others are about to fill.
const (
	sharedHeader = 64
	// maxShared is the maximum number of entries of the second ring; it has as many as the first ring if
	// that has fewer.
	maxShared = 4096
	stampAt   = 48
	stateAt   = 56
)

const (
	slotFree uint64 = iota
	slotClaimed
	slotReady
	slotVoid
)

// SharedSize returns the bytes that the second ring of a CQ with this geometry takes.
func SharedSize(g Geometry) int { return sharedHeader + min(g.Entries, maxShared)*CQESize }

// Shared is the second ring of a CQ, with the words for events of the first.
type Shared struct {
	h     *header // of the first ring
	tail  *atomic.Uint32
	slots []byte
	count uint32
	head  uint32 // the consumer's
	// A producer's: the slot that it claimed last, and the distance from the one before.
	last, step uint32
}

// OpenShared opens the second ring behind the CQ ring in b.
func OpenShared(b []byte, g Geometry) (*Shared, error) {
	r, err := open(b, g, CQESize)
	if err != nil {
		return nil, err
	}
	if len(b) < g.Size()+SharedSize(g) {
		return nil, fmt.Errorf("%w: %d bytes, needs %d", errLayout, len(b), g.Size()+SharedSize(g))
	}
	m := b[g.Size() : g.Size()+SharedSize(g)]
	return &Shared{
		h: r.h, tail: (*atomic.Uint32)(unsafe.Pointer(&m[0])), slots: m[sharedHeader:],
		count: uint32(min(g.Entries, maxShared)),
	}, nil
}

func (s *Shared) slot(index uint32) []byte {
	i := (index & (s.count - 1)) * CQESize
	return s.slots[i : i+CQESize : i+CQESize]
}

func (s *Shared) state(index uint32) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.slot(index)[stateAt]))
}

// lap returns the part of the state that tells the rounds of the ring apart.
func (s *Shared) lap(index uint32) uint64 { return uint64(index/s.count) << 32 }

const lapMask = ^uint64(1<<32 - 1)

func claimed(owner uint32) uint64 { return uint64(owner)<<2 | slotClaimed }

// Claim claims a slot for owner; false if none is free. Any producer. All slots before the tail have been
// claimed, and perhaps some after it: Fill and Cancel store the tail without checking whether others have
// advanced it further, and whoever claims the next slot moves it on if nobody has. The state alone decides
// who owns a slot, and it is not read first: the consumer polls the slot constantly, and every read takes
// the cache line away from the producer.
func (s *Shared) Claim(owner uint32) (index uint32, ok bool) {
	for {
		t := s.tail.Load()
		lap, w := s.lap(t), s.state(t)
		if w.CompareAndSwap(lap, lap|claimed(owner)) {
			s.step, s.last = t-s.last, t
			return t, true
		}
		v := w.Load()
		switch ahead := s.ahead(v, t); {
		case ahead == -s.count:
			return 0, false // of the previous round, not taken yet
		case v == lap: // it was given back just now
		case ahead == 0:
			s.tail.CompareAndSwap(t, t+1)
		default: // of a later round, for which all slots before must have been claimed
			s.tail.CompareAndSwap(t, t+ahead-s.count+1)
		}
	}
}

// Expect prefetches the slot that is likely to be claimed next. Its cache line is with the consumer, which
// gave the slot back and polls it. The slot is extrapolated from the last two; the tail, which may be
// elsewhere too if producers take turns, is also prefetched. Expect reads no shared memory. Any producer,
// a little before Claim.
func (s *Shared) Expect() {
	prefetch.Write(unsafe.Pointer(s.tail))
	prefetch.Write(unsafe.Pointer(s.state(s.foreseen())))
}

// foreseen returns the slot that is likely to be claimed next.
func (s *Shared) foreseen() uint32 { return s.last + s.step }

// ahead returns by how many entries the round of a state is ahead of that of an index.
func (s *Shared) ahead(state uint64, index uint32) uint32 {
	return uint32(state>>32)*s.count - index&^(s.count-1)
}

// passed advances the tail past a slot.
func (s *Shared) passed(index uint32) {
	if s.tail.Load() == index {
		release.Store32((*uint32)(unsafe.Pointer(s.tail)), index+1)
	}
}

// Fill publishes a completion in a slot that owner claimed. The consumer takes it only after the entries
// of the first ring up to index stamp. false: the claim was revoked.
func (s *Shared) Fill(index, owner uint32, e *CQE, stamp uint32) bool {
	b := s.slot(index)
	e.Put(b)
	binary.LittleEndian.PutUint32(b[stampAt:], stamp)
	lap := s.lap(index)
	filled := s.state(index).CompareAndSwap(lap|claimed(owner), lap|slotReady)
	s.passed(index)
	return filled
}

// Cancel gives up a claimed slot; the consumer skips it.
func (s *Shared) Cancel(index, owner uint32) {
	lap := s.lap(index)
	s.state(index).CompareAndSwap(lap|claimed(owner), lap|slotVoid)
	s.passed(index)
}

// Void cancels the claims of an owner that died and returns their number.
func (s *Shared) Void(owner uint32) (n int) {
	for i := range s.count {
		w := s.state(i)
		v := w.Load()
		if v&^lapMask == claimed(owner) && w.CompareAndSwap(v, v&lapMask|slotVoid) {
			n++
		}
	}
	return n
}

// unpolled returns how many completions have not been taken. Any side.
func (s *Shared) unpolled() (n int) {
	for i := range s.count {
		if s.state(i).Load()&3 == slotReady {
			n++
		}
	}
	return n
}

// Raise raises the event that the CQ is armed for if it is due (Due), and reports whether waiters sleep on
// the sequence word. Call it after Fill or Cancel.
func (s *Shared) Raise(index uint32, e *CQE) (wake bool) {
	if !s.Due(index, e) || s.h.arm.Swap(uint32(ArmNone)) == uint32(ArmNone) {
		return false
	}
	s.h.sequence.Add(1)
	return s.h.sleepers.Load() != 0
}

// Due reports whether the event that the CQ is armed for must be raised because slot index was filled with e,
// or, if e is nil, given up. Call it after Fill or Cancel.
//
// A claimed slot hides what is behind it, also in the first ring. So whoever fills it raises the event for
// that too, whatever it is; and a completion behind a claimed slot raises none, which the consumer would
// take for a completion and find nothing. Each side stores its own slot before it looks at the other's, so
// at least one of them sees the other.
func (s *Shared) Due(index uint32, e *CQE) bool {
	arm := Arm(s.h.arm.Load())
	if arm == ArmNone || (e == nil || !e.raises(arm)) && !s.hides(index) {
		return false
	}
	return !s.hidden(index)
}

// hides reports whether something may have waited behind a slot.
func (s *Shared) hides(index uint32) bool {
	if s.h.producer.Load() != s.h.consumer.Load() {
		return true
	}
	v := s.state(index + 1).Load()
	return s.count > 1 && v&lapMask == s.lap(index+1) && (v&3 == slotReady || v&3 == slotVoid)
}

// hidden reports whether a slot before this one, that the consumer has not passed, is claimed but not filled.
func (s *Shared) hidden(index uint32) bool {
	for n := uint32(1); n < s.count; n++ {
		v := s.state(index - n).Load()
		if v&lapMask != s.lap(index-n) {
			return false
		}
		if v&3 == slotClaimed {
			return true
		}
	}
	return false
}

// SequenceWord returns the futex word of the CQ's events.
func (s *Shared) SequenceWord() *uint32 { return word(&s.h.sequence) }

// peek returns the phase of the oldest slot, skipping void ones.
func (s *Shared) peek() (phase uint64) {
	for {
		w := s.state(s.head)
		v := w.Load()
		if v&lapMask != s.lap(s.head) {
			return slotFree
		}
		if v&3 != slotVoid {
			return v & 3
		}
		s.free()
	}
}

// free gives back the oldest slot.
func (s *Shared) free() {
	release.Store64((*uint64)(unsafe.Pointer(s.state(s.head))), s.lap(s.head+s.count))
	s.head++
}

func (s *Shared) stamp() uint32 { return binary.LittleEndian.Uint32(s.slot(s.head)[stampAt:]) }

func (s *Shared) take(e *CQE) {
	e.Get(s.slot(s.head))
	s.free()
}

// walk passes the completions waiting in the second ring to visit until it returns false.
func (s *Shared) walk(visit func(CQE) bool) {
	var e CQE
	for i, n := s.head, uint32(0); n < s.count; i, n = i+1, n+1 {
		v := s.state(i).Load()
		if v&lapMask != s.lap(i) || v&3 == slotFree || v&3 == slotClaimed {
			return
		}
		if v&3 == slotVoid {
			continue
		}
		if e.Get(s.slot(i)); !visit(e) {
			return
		}
	}
}
