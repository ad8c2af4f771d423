package ring

import (
	"math/rand/v2"
	"testing"
)

func newBoth(t *testing.T, entries int) (loop, program *CQ, push *Shared) {
	t.Helper()
	g := CQGeometry(entries)
	mem := mem(t, Geometry{Entries: (g.Size() + SharedSize(g)) / 64, Stride: 64})
	var err error
	if loop, err = OpenCQ(mem, g); err != nil {
		t.Fatal(err)
	}
	if program, err = OpenCQ(mem, g); err != nil {
		t.Fatal(err)
	}
	if push, err = OpenShared(mem, g); err != nil {
		t.Fatal(err)
	}
	return loop, program, push
}

// pushed pushes a completion as a program does.
func pushed(t *testing.T, s *Shared, owner uint32, id uint64, stamp uint32) {
	t.Helper()
	slot, ok := s.Claim(owner)
	if !ok || !s.Fill(slot, owner, &CQE{ID: id}, stamp) {
		t.Fatalf("completion %d: no slot", id)
	}
}

func ids(q *CQ, most int) (list []uint64) {
	out := make([]CQE, most)
	for {
		n := q.Poll(out)
		if n == 0 {
			return list
		}
		for i := range n {
			list = append(list, out[i].ID)
		}
	}
}

func same(t *testing.T, got []uint64, want ...uint64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("completions %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("completions %v, want %v", got, want)
		}
	}
}

// TestCompletionsOfBothRingsKeepTheirOrder: completions of the second ring come after those of the first up to their
// stamp, and before those that the loop pushed later.
func TestCompletionsOfBothRingsKeepTheirOrder(t *testing.T) {
	for most := 1; most < 8; most++ {
		loop, program, s := newBoth(t, 8)
		push := func(id uint64) {
			if _, err := loop.Push(&CQE{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		push(1)
		push(2)
		stamp := loop.Produced()
		pushed(t, s, 7, 3, stamp)
		pushed(t, s, 7, 4, stamp)
		push(5) // after a recall
		pushed(t, s, 7, 6, loop.Produced())
		same(t, ids(program, most), 1, 2, 3, 4, 5, 6)
		if !program.Empty() {
			t.Error("the CQ is not empty after all completions were taken")
		}
	}
}

// TestClaimedSlotHoldsLaterCompletionsBack: a completion of the first ring waits for a slot of the second that was
// claimed before.
func TestClaimedSlotHoldsLaterCompletionsBack(t *testing.T) {
	loop, program, s := newBoth(t, 4)
	slot, _ := s.Claim(1)
	pushed(t, s, 2, 20, 0)
	if _, err := loop.Push(&CQE{ID: 30}); err != nil {
		t.Fatal(err)
	}
	same(t, ids(program, 4))
	if !s.Fill(slot, 1, &CQE{ID: 10}, 0) {
		t.Error("the claimed slot could not be filled")
	}
	same(t, ids(program, 4), 10, 20, 30)
}

// TestClaimsOfTheDeadAreVoid: slots claimed by a program that died are skipped, and no others, also if it died before
// it moved the tail; what it fills later does not count.
func TestClaimsOfTheDeadAreVoid(t *testing.T) {
	_, program, s := newBoth(t, 4)
	dead, _ := s.Claim(1)
	alive, _ := s.Claim(2)
	s.tail.Store(0) // neither has moved it yet
	pushed(t, s, 3, 30, 0)
	if n := s.Void(1); n != 1 {
		t.Errorf("%d claims void, want 1", n)
	}
	if s.Fill(dead, 1, &CQE{ID: 10}, 0) {
		t.Error("a void slot was filled")
	}
	same(t, ids(program, 4))
	s.Fill(alive, 2, &CQE{ID: 20}, 0)
	same(t, ids(program, 4), 20, 30)
	for id := uint64(100); id < 110; id++ { // the ring goes on turning
		pushed(t, s, 1, id, 0)
		same(t, ids(program, 4), id)
	}
}

// TestSharedRingFull: a full ring accepts nothing, and no entry of a later round is taken for one of an earlier.
func TestSharedRingFull(t *testing.T) {
	for _, entries := range []int{1, 2, 8} {
		_, program, s := newBoth(t, entries)
		for round := range uint64(5) {
			var want []uint64
			for i := range uint64(entries) {
				pushed(t, s, 1, round*100+i, 0)
				want = append(want, round*100+i)
			}
			if _, ok := s.Claim(1); ok {
				t.Fatalf("%d entries: a slot of a full ring was claimed", entries)
			}
			same(t, ids(program, 3), want...)
		}
	}
}

// TestSharedRingRaises: an event is raised for completions of the armed kind, once.
func TestSharedRingRaises(t *testing.T) {
	_, program, s := newBoth(t, 4)
	solicited, plain := &CQE{Flags: IsSolicited}, &CQE{}
	if s.Raise(0, plain) || program.Sequence() != 0 {
		t.Error("an event was raised though the CQ is not armed")
	}
	program.Arm(ArmSolicited)
	if s.Raise(0, plain); program.Sequence() != 0 {
		t.Error("an unsolicited completion raised an event")
	}
	program.Sleep()
	if !s.Raise(0, solicited) || program.Sequence() != 1 {
		t.Error("no event for a solicited completion, or nobody to wake")
	}
	if s.Raise(0, solicited) || program.Sequence() != 1 {
		t.Error("a second event from one arming")
	}
	pushed(t, s, 1, 1, 0)
	if !program.Raises(ArmAny) || program.Raises(ArmSolicited) {
		t.Error("a completion that waits in the second ring was not seen")
	}
}

// TestSharedRingInterleavings runs the atomic steps of two producers, of which the first may die at any step, of the
// driver that voids its claims then, and of a consumer, in every interleaving. The second producer's three
// completions arrive in order, those of the first in order until it dies, and nothing is left behind.
func TestSharedRingInterleavings(t *testing.T) {
	type producer struct {
		pc       int
		t, s, to uint32
		left     int
	}
	type node struct {
		state [2]uint64 // of the slots
		id    [2]uint8
		tail  uint32
		head  uint32
		p     [2]producer
		dead  bool
		void  int // next slot that the driver looks at; -1: not yet
		got   [5]uint8
		n     int
	}
	const count = 2
	full := func(n *node, t uint32) bool { return t-n.head == count }
	lap := func(i uint32) uint64 { return uint64(i/count) << 32 }
	owner := func(i int) uint64 { return uint64(i+1)<<2 | slotClaimed }
	step := func(n node, i int) (node, bool) {
		p := &n.p[i]
		switch p.pc {
		case 0:
			if p.left == 0 {
				return n, false
			}
			p.t = n.tail
			p.pc = 1
		case 1:
			if v := &n.state[p.t%count]; *v == lap(p.t) {
				*v = lap(p.t) | owner(i)
				p.s, p.pc = p.t, 4
			} else {
				p.pc = 2
			}
		case 2:
			v := n.state[p.t%count]
			switch ahead := uint32(v>>32)*count - p.t&^(count-1); {
			case ahead == ^uint32(count-1):
				if !full(&n, p.t) {
					t.Fatal("a ring that is not full was taken for full")
				}
				return n, false // it waits
			case v == lap(p.t):
				p.pc = 0
			case ahead == 0:
				p.to, p.pc = p.t+1, 3
			default:
				p.to, p.pc = p.t+ahead-count+1, 3
			}
		case 3:
			if n.tail == p.t {
				n.tail = p.to
			}
			p.pc = 0
		case 4:
			n.id[p.s%count] = uint8(10*(i+1) + 4 - p.left)
			p.pc = 5
		case 5:
			if n.state[p.s%count] == lap(p.s)|owner(i) {
				n.state[p.s%count] = lap(p.s) | slotReady
			}
			p.pc = 6
		case 6:
			p.left--
			if p.pc = 0; n.tail == p.s {
				p.pc = 7
			}
		case 7: // whatever the tail is by now
			n.tail = p.s + 1
			p.pc = 0
		}
		return n, true
	}
	start := node{void: -1}
	start.p[0].left, start.p[1].left = 2, 3
	seen := map[node]bool{start: true}
	work := []node{start}
	add := func(n node) {
		if !seen[n] {
			seen[n] = true
			work = append(work, n)
		}
	}
	ends := 0
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		moved := false
		try := func(m node, ok bool) {
			if ok {
				moved = true
				add(m)
			}
		}
		if !n.dead {
			try(step(n, 0))
			d := n
			d.dead, d.void = true, 0
			try(d, true)
		} else if n.void < count {
			d := n
			if v := n.state[n.void]; v&^lapMask == owner(0) {
				d.state[n.void] = v&lapMask | slotVoid
			}
			d.void++
			try(d, true)
		}
		try(step(n, 1))
		if v := n.state[n.head%count]; v&lapMask == lap(n.head) && (v&3 == slotReady || v&3 == slotVoid) {
			c := n
			if v&3 == slotReady {
				if c.n == len(c.got) {
					t.Fatalf("more completions than were made: %v", c.got)
				}
				c.got[c.n] = c.id[n.head%count]
				c.n++
			}
			c.state[n.head%count] = lap(n.head + count)
			c.head++
			try(c, true)
		}
		if moved {
			continue
		}
		ends++
		var second, first int
		for _, id := range n.got[:n.n] {
			switch {
			case id == uint8(12+first):
				first++
			case id == uint8(21+second):
				second++
			default:
				t.Fatalf("completions %v", n.got)
			}
		}
		if second != 3 || first != 2 && !n.dead {
			t.Fatalf("completions %v, dead %v", n.got, n.dead)
		}
	}
	t.Logf("%d states, %d ends", len(seen), ends)
}

// TestSharedRingRandom does random work on both rings and compares with the order in which each owner pushed.
func TestSharedRingRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	loop, program, s := newBoth(t, 8)
	var next, want uint64
	stamp := loop.Produced()
	direct := false
	for range 20000 {
		switch r.IntN(4) {
		case 0: // a delegation or a recall
			if direct = !direct; direct {
				stamp = loop.Produced()
			}
		case 1, 2:
			if next-want >= 8 {
				continue
			}
			next++
			if direct {
				pushed(t, s, 1, next, stamp)
			} else if _, err := loop.Push(&CQE{ID: next}); err != nil {
				t.Fatal(err)
			}
		case 3:
			out := make([]CQE, 1+r.IntN(4))
			for i := range program.Poll(out) {
				if want++; out[i].ID != want {
					t.Fatalf("completion %d, want %d", out[i].ID, want)
				}
			}
		}
	}
}

// TestForeseen: a producer foresees its next slot, whether it pushes alone or takes turns with others.
func TestForeseen(t *testing.T) {
	for producers := 1; producers <= 3; producers++ {
		_, q, first := newBoth(t, 16)
		all := []*Shared{first}
		for len(all) < producers {
			other := *first
			all = append(all, &other)
		}
		for i := range 100 {
			s := all[i%producers]
			want := s.foreseen()
			slot, ok := s.Claim(uint32(i%producers + 1))
			if !ok || !s.Fill(slot, uint32(i%producers+1), &CQE{}, 0) {
				t.Fatalf("push %d: no slot", i)
			}
			if i >= 2*producers && slot != want {
				t.Fatalf("%d producers, push %d: slot %d, foreseen was %d", producers, i, slot, want)
			}
			ids(q, 4)
		}
	}
}
