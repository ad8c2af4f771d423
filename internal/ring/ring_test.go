package ring

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// private is a Backing of ordinary memory, for rings with both sides in this process.
func private(_ uint32, size int) ([]byte, error) {
	b := make([]byte, size+arenaAlign)
	pad := -uintptr(unsafe.Pointer(&b[0])) % arenaAlign
	return b[pad : int(pad)+size : int(pad)+size], nil
}

// taken returns how many entries were taken and not given back.
func (s *Send) taken() int { return int(s.c.next - s.c.done) }

// room returns how many receives can be posted.
func (q *Recv) room() int {
	q.p.seen = q.h.consumer.Load()
	return int(max(0, int64(q.count)-int64(q.p.next-q.p.seen)))
}

func mem(t testing.TB, g Geometry) []byte {
	t.Helper()
	b, err := private(0, g.Size())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sendPair returns both sides of a send ring and its memory.
func sendPair(t testing.TB, g Geometry) (prod, cons *Send, b []byte) {
	t.Helper()
	b = mem(t, g)
	return must(OpenSend(b, g))(t), must(OpenSend(b, g))(t), b
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestSendCarriesEveryField(t *testing.T) {
	p, c, _ := sendPair(t, SendGeometry(4, 3, 0))
	in := SendWR{Op: OpCompareSwap, Flags: Signaled | Fence, NumSGE: 3, Imm: 1, ID: 2, RemoteAddr: 3, RKey: 4,
		CompareAdd: 5, Swap: 6, AH: 7, RemoteQPN: 8, QKey: 9, Access: 10}
	for i := range 3 {
		in.SGE[i] = SGE{Addr: uint64(i) << 40, Length: uint32(i), LKey: ^uint32(i)}
	}
	if err := p.Post(&in); err != nil {
		t.Fatal(err)
	}
	var w Work
	if ok, err := c.Next(&w); !ok || err != nil {
		t.Fatal(ok, err)
	}
	var out SendWR
	out.set(&w)
	c.Elements(&w, out.SGE[:w.NumSGE])
	if d := cmp.Diff(in, out); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestSendSlotsAreHeldUntilReleased: a slot, with the inline data in it, belongs to the loop until it is released.
func TestSendSlotsAreHeldUntilReleased(t *testing.T) {
	p, c, _ := sendPair(t, SendGeometry(2, 1, 100))
	var out Work
	for i := range 2 {
		if err := p.Post(&SendWR{Op: OpSend, Flags: Inline, ID: uint64(i), Inline: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2 {
		ok, err := c.Next(&out)
		if !ok || err != nil || out.ID != uint64(i) || len(out.Inline) != 1 || out.Inline[0] != byte(i) {
			t.Fatalf("request %d: taken %v, error %v, %+v", i, ok, err, out)
		}
		if err := p.Post(&SendWR{Op: OpSend}); !errors.Is(err, ErrFull) {
			t.Fatalf("posting into a held slot: error %v, want %v", err, ErrFull)
		}
	}
	c.Release(1)
	if p.Room() != 1 {
		t.Errorf("room %d after one release, want 1", p.Room())
	}
	if err := p.Post(&SendWR{Op: OpSend}); err != nil {
		t.Error(err)
	}
	c.Release(10) // more than were taken
	if c.taken() != 0 || p.Room() != 1 {
		t.Errorf("taken %d, room %d; want 0 and 1", c.taken(), p.Room())
	}
}

func TestPostRefusesWhatDoesNotFit(t *testing.T) {
	p, _, _ := sendPair(t, SendGeometry(2, 1, 64))
	if err := p.Post(&SendWR{Op: OpSend, NumSGE: 5}); !errors.Is(err, errLayout) {
		t.Errorf("too many SGEs: error %v, want %v", err, errLayout)
	}
	if err := p.Post(&SendWR{Op: OpSend, Flags: Inline, Inline: make([]byte, 65)}); !errors.Is(err, errLayout) {
		t.Errorf("too much inline data: error %v, want %v", err, errLayout)
	}
}

func TestRecvSlotIsFreeOnceTaken(t *testing.T) {
	g := RecvGeometry(1, 2)
	b := mem(t, g)
	p, c := must(OpenRecv(b, g))(t), must(OpenRecv(b, g))(t)
	for i := range 10 {
		in := RecvWR{ID: uint64(i), NumSGE: 2, SGE: [MaxSGE]SGE{{1, 2, 3}, {4, 5, uint32(i)}}}
		if err := p.Post(&in); err != nil {
			t.Fatal(err)
		}
		if err := p.Post(&in); !errors.Is(err, ErrFull) {
			t.Fatalf("second post: error %v, want %v", err, ErrFull)
		}
		if n, err := c.Pending(); n != 1 || err != nil {
			t.Fatalf("%d receives pending (%v), want 1", n, err)
		}
		var out RecvWR
		if ok, err := c.Next(&out); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if d := cmp.Diff(in, out); d != "" {
			t.Fatal("(-want +got):\n", d)
		}
	}
}

func cqPair(t testing.TB, depth int) (loop, prog *CQ, b []byte) {
	g := CQGeometry(depth)
	b = mem(t, g)
	return must(OpenCQ(b, g))(t), must(OpenCQ(b, g))(t), b
}

func TestCQCarriesEveryField(t *testing.T) {
	l, p, _ := cqPair(t, 4)
	in := CQE{1, 2, 3, 4, 5, 6, RemoteAccess, CQRead, HasImm | HasGRH, 7, 8, 9, 10, 11, 12}
	if _, err := l.Push(&in); err != nil {
		t.Fatal(err)
	}
	var out [2]CQE
	if n := p.Poll(out[:]); n != 1 {
		t.Fatalf("%d completions, want 1", n)
	}
	if d := cmp.Diff(in, out[0]); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestCQEvents: an event is raised for any completion, for solicited and failed ones, or for failed ones only, as
// armed (IBA 11.4.2.2). Each arming raises one event, and arming again never narrows it.
func TestCQEvents(t *testing.T) {
	good, sol, bad := CQE{}, CQE{Flags: IsSolicited}, CQE{Status: WRFlush}
	tests := []struct {
		arm            []Arm
		good, sol, bad bool
	}{
		{nil, false, false, false},
		{[]Arm{ArmErrors}, false, false, true},
		{[]Arm{ArmSolicited}, false, true, true},
		{[]Arm{ArmAny}, true, true, true},
		{[]Arm{ArmAny, ArmSolicited}, true, true, true},
		{[]Arm{ArmErrors, ArmSolicited}, false, true, true},
	}
	for _, tt := range tests {
		for i, e := range []CQE{good, sol, bad} {
			l, p, _ := cqPair(t, 4)
			for _, a := range tt.arm {
				p.Arm(a)
			}
			want := []bool{tt.good, tt.sol, tt.bad}[i]
			got, err := l.Push(&e)
			if err != nil || got != want {
				t.Errorf("armed %v, completion %d: event %v %v, want %v", tt.arm, i, got, err, want)
			}
			if !got {
				continue
			}
			seq := p.Sequence()
			p.Sleep()
			if fired, wake := l.Fire(); !fired || !wake || p.Sequence() != seq+1 {
				t.Errorf("fire: %v %v, sequence %d", fired, wake, p.Sequence()-seq)
			}
			p.Awake()
			if again, _ := l.Push(&e); again {
				t.Error("a second event from one arming")
			}
			if fired, _ := l.Fire(); fired {
				t.Error("fired unarmed")
			}
		}
	}
}

func TestCQOverflowIsReported(t *testing.T) {
	l, p, _ := cqPair(t, 2)
	for range 2 {
		if _, err := l.Push(&CQE{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Push(&CQE{}); !errors.Is(err, errOverflow) {
		t.Errorf("a third completion in a ring of two: error %v, want %v", err, errOverflow)
	}
	if p.Flags()&FlagError == 0 {
		t.Error("the ring does not tell the program of the overflow")
	}
	p.Poll(make([]CQE, 2))
	if _, err := l.Push(&CQE{}); !errors.Is(err, errOverflow) {
		t.Errorf("a CQ in error took a completion: error %v", err)
	}
}

// TestCQMove: when a CQ is resized the old ring is finished first, the arming moves to the new one, and waiters look
// again.
func TestCQMove(t *testing.T) {
	old, oldP, _ := cqPair(t, 2)
	next, nextP, _ := cqPair(t, 8)
	oldP.Arm(ArmSolicited)
	if _, err := old.Push(&CQE{ID: 1}); err != nil {
		t.Fatal(err)
	}
	seq := oldP.Sequence()
	oldP.Sleep()
	if !old.Move(next) || oldP.Sequence() == seq {
		t.Error("a waiter on the old ring was not woken")
	}
	if ev, _ := next.Push(&CQE{ID: 2, Flags: IsSolicited}); !ev {
		t.Error("the arming did not move")
	}
	var out [4]CQE
	if n := oldP.Poll(out[:]); n != 1 || out[0].ID != 1 || oldP.Flags()&FlagMoved == 0 {
		t.Errorf("old ring: %d completions, first %+v, flags %d; want request 1 and the moved flag", n, out[0], oldP.Flags())
	}
	if n := nextP.Poll(out[:]); n != 1 || out[0].ID != 2 {
		t.Errorf("new ring: %d completions, first %+v; want request 2", n, out[0])
	}
}

func TestDoorbells(t *testing.T) {
	g := DoorbellGeometry(4)
	b := mem(t, g)
	p, l := must(OpenDoorbells(b, g))(t), must(OpenDoorbells(b, g))(t)
	if p.Ring(0) {
		t.Error("a doorbell woke a loop that does not sleep")
	}
	if l.Sleep() {
		t.Error("the loop may sleep although a doorbell waits")
	}
	var out [8]uint32
	if n, scan, err := l.Drain(out[:]); n != 1 || scan || err != nil || out[0] != 0 {
		t.Fatalf("%d doorbells (scan %v, %v): %v; want one of 0", n, scan, err, out)
	}
	if !l.Sleep() || !p.Ring(maxDoorbell) || p.Ring(2) {
		t.Error("exactly the first doorbell must wake")
	}
	for i := range 9 {
		p.Ring(uint32(i))
	}
	n, scan, err := l.Drain(out[:])
	if n != 4 || !scan || err != nil || out[0] != maxDoorbell {
		t.Errorf("overflow: %d scan %v %v %v", n, scan, err, out)
	}
	if n, scan, _ := l.Drain(out[:]); n != 0 || scan {
		t.Errorf("after all were taken: %d doorbells, scan %v; want none", n, scan)
	}
}

func TestOpenRefuses(t *testing.T) {
	b, _ := private(0, 1<<16)
	for _, tt := range []struct {
		name string
		b    []byte
		g    Geometry
	}{
		{"not a power of two", b, Geometry{3, 64}},
		{"none", b, Geometry{0, 64}},
		{"too many", b, Geometry{MaxEntries * 2, 64}},
		{"short stride", b, Geometry{2, 32}},
		{"odd stride", b, Geometry{2, 65}},
		{"huge stride", b, Geometry{2, 1 << 30}},
		{"memory too short", b[:300], Geometry{2, 64}},
		{"unaligned", b[8:], Geometry{2, 64}},
	} {
		if _, err := OpenSend(tt.b, tt.g); !errors.Is(err, errLayout) {
			t.Errorf("%s: error %v, want %v", tt.name, err, errLayout)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		OpFetchAdd.String(): "fetch and add", WROp(99).String(): "operation 99", CQRecv.String(): "receive",
		RNRRetryExceeded.String(): "RNR retry counter exceeded", General.String(): "general error",
		Status(77).String(): "status 77", ArmAny.String(): "any", OpSendInv.CQOp().String(): "send",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDataPathDoesNotAllocate(t *testing.T) {
	p, c, _ := sendPair(t, SendGeometry(4, 2, 64))
	cl, cp, _ := cqPair(t, 4)
	in, out := SendWR{Op: OpSend, NumSGE: 2}, Work{}
	var cqe [4]CQE
	if n := testing.AllocsPerRun(100, func() {
		_ = p.Post(&in)
		_, _ = c.Next(&out)
		c.Elements(&out, in.SGE[:2])
		c.Release(1)
		_, _ = cl.Push(&cqe[0])
		cp.Poll(cqe[:])
		cp.Arm(ArmAny)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestRecvMove: when an SRQ is resized, waiting receives continue in the new ring in order, whatever the indices are.
// A ring that is too small or has another stride changes nothing.
func TestRecvMove(t *testing.T) {
	open := func(depth, sge int) (b []byte, g Geometry, q *Recv) {
		g = RecvGeometry(depth, sge)
		b, _ = private(0, g.Size())
		q, err := OpenRecv(b, g)
		if err != nil {
			t.Fatal(err)
		}
		return b, g, q
	}
	b, g, loop := open(4, 1)
	program, _ := OpenRecv(b, g)
	wr := RecvWR{NumSGE: 1}
	for id := range uint64(6) { // 0 and 1 are taken: the indices have wrapped
		wr.ID, wr.SGE[0].Addr = id, 100+id
		if err := program.Post(&wr); err != nil {
			t.Fatal(err)
		}
		if id < 2 {
			if ok, err := loop.Next(&wr); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
	}
	_, _, small := open(2, 1)
	if err := loop.Move(small); !errors.Is(err, ErrFull) {
		t.Fatalf("moving to 2 entries: error %v, want %v", err, ErrFull)
	}
	_, _, wide := open(8, 9)
	if err := loop.Move(wide); !errors.Is(err, errLayout) {
		t.Fatalf("moving to another stride: error %v, want %v", err, errLayout)
	}
	nb, ng, next := open(8, 1)
	if err := loop.Move(next); err != nil {
		t.Fatal(err)
	}
	resumed, err := ResumeRecv(nb, ng)
	if err != nil {
		t.Fatal(err)
	}
	if n := resumed.room(); n != 4 {
		t.Errorf("room for %d, want 4", n)
	}
	wr.ID, wr.SGE[0].Addr = 6, 106
	if err := resumed.Post(&wr); err != nil {
		t.Fatal(err)
	}
	for id := uint64(2); id < 7; id++ {
		if ok, err := next.Next(&wr); !ok || err != nil || wr.ID != id || wr.SGE[0].Addr != 100+id {
			t.Fatalf("took %d of %d (%v, %v), want %d", wr.ID, wr.SGE[0].Addr, ok, err, id)
		}
	}
	if ok, err := loop.Next(&wr); ok || !errors.Is(err, ErrCorrupt) {
		t.Errorf("the old ring still gives: %v, %v", ok, err)
	}
}
