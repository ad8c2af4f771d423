package impair

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/wire/eth"
	"pgregory.net/rapid"
)

// bench is an impaired link to a port in memory, under a clock that the test moves.
type bench struct {
	t     testing.TB
	now   clock.Time
	link  *Link
	to    *memlink.Port
	route *frame.Route
	sent  int
}

func newBench(t testing.TB, settings string) *bench {
	t.Helper()
	set, err := Impairment{}.Parse(settings)
	if err != nil {
		t.Fatal(err)
	}
	a, b, err := memlink.Pair(
		memlink.PortConfig{Addr: netip.MustParseAddr("10.0.0.1")},
		memlink.PortConfig{Addr: netip.MustParseAddr("10.0.0.2"), Queue: 1 << 13})
	if err != nil {
		t.Fatal(err)
	}
	s := &bench{t: t, now: 1000, to: b, route: &frame.Route{Dst: netip.MustParseAddr("10.0.0.2")}}
	s.link = New(a, set, func() clock.Time { return s.now })
	if err := s.link.Prepare(s.route); err != nil {
		t.Fatal(err)
	}
	return s
}

// numbered returns n packets that carry ascending numbers over all calls.
func (s *bench) numbered(n, length int) []frame.Out {
	frames := make([]frame.Out, n)
	for i := range frames {
		o := &frames[i]
		o.Reset(s.route)
		o.HeadEnd += 12
		binary.BigEndian.PutUint32(o.Head[frame.HeadRoom+8:], uint32(s.sent))
		o.Payload = bytes.Repeat([]byte{byte(s.sent)}, length)
		o.TailLen = 4
		s.sent++
	}
	return frames
}

// send sends n packets of 112 bytes.
func (s *bench) send(n int) {
	s.t.Helper()
	if got, err := s.link.Send(s.numbered(n, 96)); got != n || err != nil {
		s.t.Fatalf("sent %d of %d: %v", got, n, err)
	}
}

// received returns the numbers of the packets that have arrived.
func (s *bench) received() []int {
	s.t.Helper()
	var all []int
	in := make([]frame.In, 64)
	for {
		n, err := s.to.Receive(in)
		if err != nil {
			s.t.Fatal(err)
		}
		if n == 0 {
			return all
		}
		for _, p := range in[:n] {
			all = append(all, int(binary.BigEndian.Uint32(p.Data[8:])))
		}
	}
}

// finish moves the clock from deadline to deadline until no packet is held.
func (s *bench) finish() {
	s.t.Helper()
	for range 100000 {
		d := s.link.Deadline()
		if d == clock.Never {
			if s.link.held() != 0 {
				s.t.Fatalf("%d packets are held without a deadline", s.link.held())
			}
			return
		}
		s.now = max(s.now, d)
		if err := s.link.Flush(s.now); err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Fatal("packets are held for ever")
}

func count(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestOffPassesStraightThrough(t *testing.T) {
	s := newBench(t, "none")
	s.send(100)
	if d := cmp.Diff(count(100), s.received()); d != "" {
		t.Error("(-want +got):\n", d)
	}
	if s.link.Deadline() != clock.Never || s.link.held() != 0 {
		t.Error("packets are held without an impairment")
	}
	frames := s.numbered(8, 64)
	in := make([]frame.In, 64)
	if n := testing.AllocsPerRun(100, func() {
		s.link.Send(frames)
		s.to.Receive(in)
	}); n != 0 {
		t.Errorf("%v allocations per batch, want none", n)
	}
}

func TestLossIsOfItsProbability(t *testing.T) {
	for _, c := range []struct {
		set      string
		min, max int
	}{{"loss=0", 0, 0}, {"loss=5% seed=1", 150, 250}, {"loss=50% seed=2", 1850, 2150}, {"loss=100%", 4000, 4000}} {
		s := newBench(t, c.set)
		s.send(4000)
		got := s.received()
		lost := 4000 - len(got)
		if lost < c.min || lost > c.max || s.link.Stats().ImpairedLost != uint64(lost) {
			t.Errorf("%s: lost %d of 4000, want %d to %d; counted %d", c.set, lost, c.min, c.max, s.link.Stats().ImpairedLost)
		}
		if !slices.IsSorted(got) {
			t.Errorf("%s: order changed", c.set)
		}
	}
}

// TestSeedRepeats: the same seed makes the same choices, another seed makes others.
func TestSeedRepeats(t *testing.T) {
	run := func(set string) []int {
		s := newBench(t, "loss=5 reorder=5 duplicate=5 delay=1ms jitter=1ms "+set)
		for range 20 {
			s.send(50)
			s.now = s.now.Add(100 * time.Microsecond)
		}
		s.finish()
		return s.received()
	}
	one, again, other := run("seed=1"), run("seed=1"), run("seed=2")
	if d := cmp.Diff(one, again); d != "" {
		t.Errorf("the same seed: %s", d)
	}
	if slices.Equal(one, other) {
		t.Error("another seed made the same choices")
	}
}

func TestDelay(t *testing.T) {
	s := newBench(t, "delay=3ms")
	s.send(5)
	start := s.now
	if s.link.Deadline() != start.Add(3*time.Millisecond) {
		t.Errorf("the deadline is %v after sending, want 3 ms", s.link.Deadline().Sub(start))
	}
	s.now = s.link.Deadline() - 1
	s.link.Flush(s.now)
	if got := s.received(); len(got) != 0 {
		t.Errorf("%v arrived early", got)
	}
	s.now++
	if _, err := s.link.Receive(make([]frame.In, 1)); err != nil { // Receive flushes too
		t.Fatal(err)
	}
	if d := cmp.Diff(count(5), s.received()); d != "" {
		t.Error("(-want +got):\n", d)
	}
	if s.link.Stats().ImpairedDelayed != 5 {
		t.Errorf("%d packets are counted as delayed, want 5", s.link.Stats().ImpairedDelayed)
	}
}

func TestJitterKeepsOrderAndBounds(t *testing.T) {
	s := newBench(t, "delay=2ms jitter=1ms seed=5")
	times := map[clock.Time]bool{}
	var got []int
	for i := range 200 {
		s.send(1)
		sent := s.now
		d := s.link.model.Due(s.now, 96).Sub(sent) // draws one delay more, within the bounds too
		if d < time.Millisecond || d > 3*time.Millisecond+time.Duration(i)*time.Millisecond {
			t.Fatalf("a delay of %v is outside of the bounds", d)
		}
		s.finish()
		times[clock.Time(s.now.Sub(sent))] = true
		got = append(got, s.received()...)
	}
	if d := cmp.Diff(count(200), got); d != "" {
		t.Error("(-want +got):\n", d)
	}
	if len(times) < 100 {
		t.Errorf("only %d different delays", len(times))
	}
}

func TestReorder(t *testing.T) {
	s := newBench(t, "reorder=10% seed=3")
	s.send(2000)
	s.finish()
	got := s.received()
	if slices.IsSorted(got) {
		t.Error("nothing was reordered")
	}
	for at, number := range got {
		if at-number > lateMost+lateSlots {
			t.Fatalf("packet %d came %d places late, more than allowed", number, at-number)
		}
	}
	if n := s.link.Stats().ImpairedReordered; n < 150 || n > 250 {
		t.Errorf("%d of 2000 were reordered, want 150 to 250", n)
	}
	slices.Sort(got)
	if d := cmp.Diff(count(2000), got); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestReorderBy_HeldForAsLongAsAsked: with ReorderBy a reordered packet leaves within that time, whatever overtakes it.
func TestReorderBy_HeldForAsLongAsAsked(t *testing.T) {
	s := newBench(t, "reorder=10% reorder-by=5ms seed=3")
	var late time.Duration
	for range 200 {
		sent := s.now
		s.send(1)
		s.finish()
		late = max(late, s.now.Sub(sent))
		s.received()
	}
	if late < 3*time.Millisecond || late > 5*time.Millisecond {
		t.Errorf("the latest packet left after %v, want nearly 5 ms", late)
	}
	s.send(1000)
	s.finish()
	if got := s.received(); slices.IsSorted(got) || len(got) != 1000 {
		t.Errorf("%d packets arrived, in order: %v; want 1000 out of order", len(got), slices.IsSorted(got))
	}
}

// TestReorderedLastPacketLeaves: a packet held back to be overtaken leaves after a time if none follows.
func TestReorderedLastPacketLeaves(t *testing.T) {
	s := newBench(t, "reorder=100%")
	s.send(1)
	if s.link.held() != 1 || s.link.Deadline() != s.now.Add(lateWait) {
		t.Fatalf("%d packets held until %v, want 1 until %v", s.link.held(), s.link.Deadline(), s.now.Add(lateWait))
	}
	s.finish()
	if d := cmp.Diff([]int{0}, s.received()); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

func TestDuplicate(t *testing.T) {
	s := newBench(t, "duplicate=25% seed=1")
	s.send(1000)
	got := s.received()
	twice := len(got) - 1000
	if twice < 200 || twice > 300 || s.link.Stats().ImpairedDuplicated != uint64(twice) {
		t.Errorf("%d of 1000 came twice, want 200 to 300; counted %d", twice, s.link.Stats().ImpairedDuplicated)
	}
	if d := cmp.Diff(count(1000), slices.Compact(got)); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

// TestCorruptFlipsOneBit: a corrupted packet differs in one bit of a byte that the ICRC covers, and the sender's
// memory is unchanged.
func TestCorruptFlipsOneBit(t *testing.T) {
	s := newBench(t, "corrupt=100% seed=1")
	in := make([]frame.In, 1)
	places := map[int]bool{}
	for range 2000 {
		frames := s.numbered(1, 20)
		before := append([]byte{}, frames[0].Payload...)
		s.link.Send(frames)
		if n, err := s.to.Receive(in); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if !bytes.Equal(before, frames[0].Payload) {
			t.Fatal("the sender's payload changed")
		}
		want := append(append(append([]byte{}, frames[0].Head[frame.HeadRoom:frames[0].HeadEnd]...), before...), frames[0].Tail[:4]...)
		flipped := 0
		for i := range want {
			if d := want[i] ^ in[0].Data[i]; d != 0 {
				flipped += bits.OnesCount8(d)
				places[i] = true
			}
		}
		if flipped != 1 {
			t.Fatalf("%d bits differ, want 1", flipped)
		}
	}
	if places[bthCongestion] || len(places) != 12+20+4-1 {
		t.Errorf("bits were flipped in %d different bytes, want every byte that the ICRC covers: %d", len(places), 12+20+4-1)
	}
}

// On a link of whole frames the mark is in the frame, whose IP header is complete.
func TestECNMarks_Frames(t *testing.T) {
	var out frame.Out
	route := frame.Route{TrafficClass: 2}
	out.Reset(&route)
	h := eth.Ethernet{Type: eth.TypeIPv4}
	out.HeadStart -= uint16(h.Len() + eth.IPv4Len)
	h.Put(out.Head[out.HeadStart:])
	ip := eth.IPv4(out.Head[frame.HeadRoom-eth.IPv4Len:])
	ip.Encode(26<<2|2, eth.IPv4Len, 0, 9, eth.ProtocolUDP, [4]byte{}, [4]byte{})
	l := &Link{caps: link.Capabilities{Raw: true}}
	var payload []byte
	p := packet{&frame.Out{}, &frame.Route{}, &payload}
	l.fill(p, &out, Fate{Marked: true})
	if got := eth.IPv4(p.out.Head[frame.HeadRoom-eth.IPv4Len:]); got.ToS() != 26<<2|3 || !got.ChecksumOK() || l.stats.ImpairedMarked != 1 {
		t.Errorf("type of service %#x, checksum right: %v", got.ToS(), got.ChecksumOK())
	}
	if ip.ToS() != 26<<2|2 {
		t.Error("the sender's packet changed")
	}
}

func TestECNMarks(t *testing.T) {
	s := newBench(t, "ecn=50% seed=1")
	s.route.TrafficClass = 26<<2 | 2
	s.send(1000)
	marked := 0
	in := make([]frame.In, 1000)
	n, _ := s.to.Receive(in)
	for _, p := range in[:n] {
		switch p.TrafficClass {
		case 26<<2 | 3:
			marked++
		case 26<<2 | 2:
		default:
			t.Fatalf("traffic class %#x, want the sender's, perhaps with congestion experienced", p.TrafficClass)
		}
	}
	if n != 1000 || marked < 420 || marked > 580 || s.link.Stats().ImpairedMarked != uint64(marked) {
		t.Errorf("%d of %d marked, want 420 to 580; counted %d", marked, n, s.link.Stats().ImpairedMarked)
	}
	if s.route.TrafficClass != 26<<2|2 {
		t.Error("the sender's route changed")
	}
}

// TestRate: a limited rate loses nothing; the sender is told to wait.
func TestRate(t *testing.T) {
	s := newBench(t, "rate=100M")
	start := s.now
	frames := s.numbered(500, 1000-12-4)
	for left := frames; len(left) > 0; {
		n, err := s.link.Send(left)
		if err != nil {
			t.Fatal(err)
		}
		left = left[n:]
		if len(left) > 0 {
			s.now = max(s.now, s.link.Deadline())
		}
		if behind := s.link.model.Backlog(s.now); behind > rateBacklog+time.Millisecond {
			t.Fatalf("the backlog is %v, more than allowed", behind)
		}
	}
	s.finish()
	want := time.Duration(500 * (1000 + wireOverhead) * 8 * 10) // 10 ns per bit
	if took := s.now.Sub(start); took < want || took > want+want/100 {
		t.Errorf("500 packets took %v, want %v", took, want)
	}
	if d := cmp.Diff(count(500), s.received()); d != "" {
		t.Error("(-want +got):\n", d)
	}
	if s.link.Stats().SendBlocked == 0 {
		t.Error("the sender was not told to wait")
	}
}

// TestTurningOffKeepsWhatIsHeld: packets held when the impairment is switched off still leave at their time, in front
// of later ones.
func TestTurningOffKeepsWhatIsHeld(t *testing.T) {
	s := newBench(t, "delay=1ms")
	s.send(3)
	s.link.Set(Impairment{})
	s.send(2)
	s.finish()
	if d := cmp.Diff(count(5), s.received()); d != "" {
		t.Error("(-want +got):\n", d)
	}
	if s.link.on {
		t.Error("the link is still impaired after its held packets have left")
	}
}

// TestQueueIsBounded: the queue of held packets is bounded; a sender that sends more has to wait.
func TestQueueIsBounded(t *testing.T) {
	s := newBench(t, "delay=10s")
	n, err := s.link.Send(s.numbered(2*queueSlots, 8))
	if err != nil || n >= queueSlots || n < queueSlots-8 {
		t.Fatalf("took %d packets (%v), want nearly the queue's number", n, err)
	}
	s.finish()
	if d := cmp.Diff(count(n), s.received()); d != "" {
		t.Error("(-want +got):\n", d)
	}
}

func TestImpairedAllocatesNothing(t *testing.T) {
	s := newBench(t, "loss=5 reorder=5 duplicate=5 corrupt=5 ecn=5 delay=10us jitter=5us seed=1")
	frames := s.numbered(16, 1024)
	in := make([]frame.In, 64)
	batch := func() {
		s.now = s.now.Add(20 * time.Microsecond)
		if _, err := s.link.Send(frames); err != nil {
			t.Fatal(err)
		}
		s.to.Receive(in)
	}
	for range 2 * queueSlots { // after this every slot has held a packet of this length
		batch()
	}
	if n := testing.AllocsPerRun(200, batch); n != 0 {
		t.Errorf("%v allocations per batch, want none", n)
	}
}

// TestEveryPacketArrives: with any setting but loss, every packet arrives, and none that was not sent.
func TestEveryPacketArrives(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		s := newBench(outer, "none")
		percent := func(name string) float64 { return float64(rapid.IntRange(0, 5).Draw(t, name)) / 100 }
		s.link.Set(Impairment{
			Reorder: percent("reorder"), Duplicate: percent("duplicate"), ECN: percent("ecn"),
			Delay:  time.Duration(rapid.IntRange(0, 1e6).Draw(t, "delay")),
			Jitter: time.Duration(rapid.IntRange(0, 1e6).Draw(t, "jitter")),
			Seed:   rapid.Uint64().Draw(t, "seed"),
		})
		n := 0
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			k := rapid.IntRange(1, 40).Draw(t, "packets")
			if got, err := s.link.Send(s.numbered(k, 8)); got != k || err != nil {
				t.Fatal(got, err)
			}
			n += k
			s.now = s.now.Add(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "pause")))
		}
		for s.link.Deadline() != clock.Never {
			s.now = max(s.now, s.link.Deadline())
			s.link.Flush(s.now)
		}
		got := s.received()
		slices.Sort(got)
		if d := cmp.Diff(count(n), slices.Compact(got)); d != "" {
			t.Fatal("(-want +got):\n", d)
		}
	})
}
