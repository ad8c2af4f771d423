package transport

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

var (
	programCount = flag.Int("programs", 1000, "random work-request programs to run")
	programSeed  = flag.Uint64("program", 0, "run only the program with this seed")
)

const (
	sourceBase, sourceLen = 0x10000, 1 << 17 // what is sent and read: never written
	targetBase, targetLen = 0x40000, 1 << 16 // what the peer writes
	wordBase, wordCount   = 0x80000, 16      // what the peer does atomics on
	arenaBase             = 0x100000         // what receives and reads place into
)

func sameCompletions(what string, got, want []ring.CQE) error {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("%s completion %d:\n got %+v\nwant %+v", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d %s completions, want %d", len(got), what, len(want))
	}
	return nil
}

// impairments returns the network's faults for a program: one kind alone, all kinds together, or none.
func impairments(rng *rand.Rand) impair.Impairment {
	p := func() float64 { return float64(1+rng.IntN(50)) / 1000 }
	i := impair.Impairment{Delay: time.Duration(1+rng.IntN(20)) * time.Microsecond}
	switch rng.IntN(8) {
	case 0:
		i.Loss = p()
	case 1:
		i.Duplicate = p()
	case 2:
		i.Reorder = p()
	case 3:
		i.Corrupt = p()
	case 4:
		i.Jitter = time.Duration(rng.IntN(50)) * time.Microsecond
	case 5, 6:
		i.Loss, i.Duplicate, i.Reorder, i.Corrupt, i.Jitter = p(), p(), p(), p(), time.Duration(rng.IntN(20))*time.Microsecond
	}
	return i
}

// TestRCPrograms runs random programs on a reliable connection: whatever the network does, with up to 5 % of each
// kind of fault, every message arrives once, in order and intact, and every completion is what a model of the
// specification says (IBA 9.7).
func TestRCPrograms(t *testing.T) {
	placedPackets = 0
	runPrograms(t, func(seed uint64) error { return runProgram(t, seed, command.RC, false) })
	if placedPackets == 0 && *programSeed == 0 {
		t.Error("no packet was received in place")
	}
}

// TestLocalPrograms runs the same programs with the pair on the local path, off it, or changing between the two at
// any time: the results must be the same.
func TestLocalPrograms(t *testing.T) {
	movedLocally, movedByWire = 0, 0
	runPrograms(t, func(seed uint64) error { return runProgram(t, seed, command.RC, true) })
	if movedLocally == 0 || movedByWire == 0 {
		t.Fatalf("%d local messages, %d packets: want some of both", movedLocally, movedByWire)
	}
}

// movedLocally and movedByWire count what TestLocalPrograms saw on either path.
var movedLocally, movedByWire uint64

// programs is how many random programs a test runs: with -short two of five.
func programs() int {
	if testing.Short() {
		return *programCount * 2 / 5
	}
	return *programCount
}

func runPrograms(t *testing.T, run func(seed uint64) error) {
	if *programSeed != 0 {
		if err := run(*programSeed); err != nil {
			t.Fatal(err)
		}
		return
	}
	for seed := range uint64(programs()) {
		if err := run(seed + 1); err != nil {
			t.Fatalf("program %d: %v", seed+1, err)
		}
	}
}

func runProgram(t testing.TB, seed uint64, typ command.QPType, local bool) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := sim.New(seed)
	n.Default = impairments(rng)
	a := newHost(t, n, "10.0.0.1", Config{}).qp(typ, QPConfig{Context: 1, SignalAll: rng.IntN(4) == 0})
	b := newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100}).qp(typ.Counterpart(), QPConfig{Context: 2})
	a.port.Batch, b.port.Batch = 1+rng.IntN(32), 1+rng.IntN(32)
	c := defaultConnection()
	c.mtu = 256 << rng.IntN(5)
	c.psn = [2]uint32{rng.Uint32() & 0xffffff, 0xffffff - rng.Uint32N(64)}
	c.depth = uint8(1 + rng.IntN(MaxReadAtomic))
	c.timeout = uint8(6 + rng.IntN(5))
	c.flow = uint8(rng.IntN(2))
	c.bursts = seed%2 == 0
	c.rnrTimer = uint8(1 + rng.IntN(10))
	x, y := newSide(a, rng), newSide(b, rng)
	x.peer, y.peer = y, x
	if x.slow || y.slow {
		c.timeout = 14 // copies that end later take their time
	}
	connect(a, b, c)
	if throughEncap != nil {
		throughEncap(a, b)
	}
	if local {
		if err := a.e.Join(0, a.q, b.q); err != nil {
			return err
		}
	}
	for range 1 + rng.IntN(12) {
		x.generate()
	}
	for range rng.IntN(12) {
		if typ == command.RC {
			y.generate()
		}
	}
	for _, s := range []*side{x, y} {
		if s.q.signalAll {
			s.wantSend = nil
			for _, wr := range s.work {
				s.wantSend = append(s.wantSend, ring.CQE{ID: wr.ID, QPN: s.q.num, Context: s.q.context, Op: wr.Op.CQOp(),
					ByteLen: lengthOf(&wr)})
			}
		}
		s.seal()
	}
	for step := 0; ; step++ {
		x.feed()
		y.feed()
		x.copySome()
		y.copySome()
		if local && rng.IntN(20) == 0 {
			toggleLocal(rng, n, x, y)
		}
		n.Pass(time.Duration(rng.IntN(200)) * time.Microsecond)
		if x.done() && y.done() {
			break
		}
		if step > 5000 {
			for range 10000 {
				x.copySome()
				y.copySome()
				n.Pass(time.Second / 100)
			}
			if x.done() && y.done() {
				break
			}
			return fmt.Errorf("hangs at %v: states %s %s, sent %d/%d %d/%d, completions %d/%d %d/%d\n%+v\n%+v", n.Now(),
				stateName(x.q.state), stateName(y.q.state), x.sent, len(x.work), y.sent, len(y.work),
				len(x.comps), len(x.wantSend)+len(x.wantRecv), len(y.comps), len(y.wantSend)+len(y.wantRecv), x.comps, y.comps)
		}
	}
	if err := x.verify(); err != nil {
		return fmt.Errorf("a: %w", err)
	}
	if err := y.verify(); err != nil {
		return fmt.Errorf("b: %w", err)
	}
	for _, s := range []*side{x, y} {
		movedLocally += s.e.counters.LocalMessages
		movedByWire += s.e.counters.OutboundPackets
	}
	corruptedSeen = n.Stats.Corrupted
	return noLeak(x, y)
}

func toggleLocal(rng *rand.Rand, n *sim.Network, x, y *side) {
	if x.q.Local() && (!x.q.Parting() || rng.IntN(2) == 0) {
		x.e.Split(x.q)
	} else {
		_ = x.e.Join(n.Now(), x.q, y.q) // refused while a message is in progress
	}
	x.port.Wake()
	y.port.Wake()
}

// noLeak checks that nothing is left in flight or in use.
func noLeak(sides ...*side) error {
	for _, s := range sides {
		w := s.q.win
		if w.inFlight != 0 || s.q.req.counted != 0 || s.q.req.outstanding != 0 || s.q.req.reads != 0 || s.q.req.slotCount != 0 ||
			s.q.resp.recv != nil {
			return fmt.Errorf("left over: %d in flight, %d requests, %d reads, %d slots", w.inFlight, s.q.req.outstanding, s.q.req.reads,
				s.q.req.slotCount)
		}
	}
	return nil
}

func lengthOf(wr *ring.SendWR) (n uint32) {
	if wr.Flags&ring.Inline != 0 {
		return uint32(len(wr.Inline))
	}
	for _, g := range wr.SGE[:wr.NumSGE] {
		n += g.Length
	}
	return n
}
