package transport

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
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

// side is one end of a program: its memory, and the memory and completions that
// a model of the specification expects.
type side struct {
	*end
	peer *side
	rng  *rand.Rand

	source, target, words, arena, wantTarget, wantWords, wantArena []byte
	sourceMR, targetMR, wordsMR, arenaMR                           *memory.Region
	used                                                           int
	slow                                                           bool // some memory is not mapped
	copying                                                        []Copy

	work     []ring.SendWR
	receives []ring.RecvWR
	sent     int
	given    int
	wantSend []ring.CQE
	wantRecv []ring.CQE
	serial   uint64
}

func newSide(x *end, rng *rand.Rand) *side {
	s := &side{end: x, rng: rng, slow: rng.IntN(3) == 0}
	s.source = pattern(sourceLen, byte(rng.Uint32()))
	s.target, s.wantTarget = make([]byte, targetLen), make([]byte, targetLen)
	s.words, s.wantWords = make([]byte, 8*wordCount), make([]byte, 8*wordCount)
	s.sourceMR = s.reach(sourceBase, s.source, memory.LocalWrite|memory.RemoteRead)
	s.targetMR = s.reach(targetBase, s.target, memory.LocalWrite|memory.RemoteWrite|memory.RemoteRead)
	s.wordsMR = s.reach(wordBase, s.words, memory.LocalWrite|memory.RemoteAtomic)
	return s
}

// seal makes the arena, once the program's needs are known.
func (s *side) seal() {
	s.arena = bytes.Repeat([]byte{0xee}, s.used+64)
	want := bytes.Repeat([]byte{0xee}, s.used+64)
	copy(want, s.wantArena)
	s.wantArena = want
	s.arenaMR = s.reach(arenaBase, s.arena, memory.LocalWrite)
	for i := range s.work {
		s.fixKeys(s.work[i].SGE[:s.work[i].NumSGE])
	}
	for i := range s.receives {
		s.fixKeys(s.receives[i].SGE[:s.receives[i].NumSGE])
	}
}

func (s *side) fixKeys(sges []ring.SGE) {
	for i := range sges {
		if sges[i].LKey == 0 {
			sges[i].LKey = s.arenaMR.Key
		}
	}
}

func (s *side) size() int {
	switch s.rng.IntN(20) {
	case 0, 1:
		return 0
	case 2, 3, 4:
		return s.rng.IntN(65537)
	case 5, 6, 7, 8:
		return s.rng.IntN(8192)
	case 9:
		return int(s.q.mtu) * s.rng.IntN(4)
	}
	return s.rng.IntN(600)
}

// gatherFrom picks pieces of the source that make up n bytes.
func (s *side) gatherFrom(n int) (sges [ring.MaxSGE]ring.SGE, count int, data []byte) {
	count = 1 + s.rng.IntN(4)
	left := n
	for i := range count {
		piece := left
		if i < count-1 {
			piece = s.rng.IntN(left + 1)
		}
		off := s.rng.IntN(sourceLen - piece + 1)
		sges[i] = ring.SGE{Addr: sourceBase + uint64(off), Length: uint32(piece), LKey: s.sourceMR.Key}
		data = append(data, s.source[off:off+piece]...)
		left -= piece
	}
	return sges, count, data
}

// scatterTo lays n bytes out in the arena in pieces with gaps, and has the model
// expect data there.
func (s *side) scatterTo(n int, data []byte) (sges [ring.MaxSGE]ring.SGE, count int) {
	count = 1 + s.rng.IntN(4)
	left := n
	for i := range count {
		piece := left
		if i < count-1 {
			piece = s.rng.IntN(left + 1)
		}
		s.used += s.rng.IntN(5)
		sges[i] = ring.SGE{Addr: arenaBase + uint64(s.used), Length: uint32(piece)}
		k := min(piece, len(data))
		for len(s.wantArena) < s.used {
			s.wantArena = append(s.wantArena, 0xee)
		}
		s.wantArena = append(s.wantArena, data[:k]...)
		data = data[k:]
		s.used += piece
		left -= piece
	}
	return sges, count
}

// expectRecv has the peer's next receive expect a message.
func (s *side) expectRecv(c ring.CQE, data []byte, room int) {
	p := s.peer
	p.serial++
	c.ID, c.QPN, c.Context = p.serial, p.q.num, p.q.context
	c.Flags |= ring.ReceiveSide
	w := ring.RecvWR{ID: p.serial}
	sges, count := p.scatterTo(room, data)
	w.SGE, w.NumSGE = sges, uint32(count)
	p.receives = append(p.receives, w)
	p.wantRecv = append(p.wantRecv, c)
}

// generate adds a random request with what the model expects of it.
func (s *side) generate() {
	s.serial++
	wr := ring.SendWR{ID: s.serial, Op: ring.WROp(1 + s.rng.IntN(8))}
	if wr.Op == ring.OpSendInv {
		wr.Op = ring.OpSend
	}
	if s.rng.IntN(3) > 0 {
		wr.Flags |= ring.Signaled
	}
	if s.rng.IntN(8) == 0 {
		wr.Flags |= ring.Fence
	}
	n := s.size()
	recvFlags := ring.CQFlags(0)
	if s.rng.IntN(3) == 0 && (wr.Op <= ring.OpSendImm || wr.Op == ring.OpWriteImm) {
		wr.Flags |= ring.Solicited
		recvFlags |= ring.IsSolicited
	}
	switch wr.Op {
	case ring.OpRead:
		off := s.rng.IntN(sourceLen - n + 1)
		sges, count := s.scatterTo(n, s.peer.source[off:off+n])
		wr.SGE, wr.NumSGE = sges, uint8(count)
		wr.RemoteAddr, wr.RKey = sourceBase+uint64(off), s.peer.sourceMR.Key
	case ring.OpCompareSwap, ring.OpFetchAdd:
		n = 8
		s.generateAtomic(&wr)
	default:
		data := s.generateData(&wr, n)
		n = len(data)
		if wr.Op.HasImm() {
			wr.Imm = s.rng.Uint32()
			recvFlags |= ring.HasImm
		}
		op := ring.CQRecv
		if wr.Op == ring.OpWrite || wr.Op == ring.OpWriteImm {
			off := s.rng.IntN(targetLen - n + 1)
			wr.RemoteAddr, wr.RKey = targetBase+uint64(off), s.peer.targetMR.Key
			copy(s.peer.wantTarget[off:], data)
			op = ring.CQRecvWrite
		}
		switch {
		case wr.Op == ring.OpWriteImm:
			s.expectRecv(ring.CQE{Op: op, ByteLen: uint32(n), Imm: wr.Imm, Flags: recvFlags}, nil, 0)
		case wr.Op != ring.OpWrite:
			s.expectRecv(ring.CQE{Op: op, ByteLen: uint32(n), Imm: wr.Imm, Flags: recvFlags}, data, n+s.rng.IntN(2)*s.rng.IntN(100))
		}
	}
	s.work = append(s.work, wr)
	if wr.Flags&ring.Signaled != 0 {
		s.wantSend = append(s.wantSend, ring.CQE{ID: wr.ID, QPN: s.q.num, Context: s.q.context, Op: wr.Op.CQOp(), ByteLen: uint32(n)})
	}
}

func (s *side) generateData(wr *ring.SendWR, n int) []byte {
	if n <= 256 && s.rng.IntN(2) == 0 {
		wr.Flags |= ring.Inline
		wr.Inline = pattern(n, byte(s.rng.Uint32()))
		return wr.Inline
	}
	sges, count, data := s.gatherFrom(n)
	wr.SGE, wr.NumSGE = sges, uint8(count)
	return data
}

func (s *side) generateAtomic(wr *ring.SendWR) {
	w := s.rng.IntN(wordCount)
	b := s.peer.wantWords[8*w:]
	old := binary.NativeEndian.Uint64(b)
	wr.RemoteAddr, wr.RKey = wordBase+uint64(8*w), s.peer.wordsMR.Key
	result := binary.NativeEndian.AppendUint64(nil, old)
	wr.CompareAdd, wr.Swap = s.rng.Uint64(), s.rng.Uint64()
	if wr.Op == ring.OpFetchAdd {
		binary.NativeEndian.PutUint64(b, old+wr.CompareAdd)
	} else if s.rng.IntN(2) == 0 {
		wr.CompareAdd = old
		binary.NativeEndian.PutUint64(b, wr.Swap)
	}
	sges, count := s.scatterTo(8, result)
	wr.SGE, wr.NumSGE = sges, uint8(count)
}

// feed posts some more of the program.
func (s *side) feed() {
	for s.given < len(s.receives) && s.given < 200 && s.rng.IntN(4) > 0 {
		s.postRecv(s.receives[s.given])
		s.given++
	}
	for s.sent < len(s.work) && s.rng.IntN(3) > 0 {
		s.post(s.work[s.sent])
		s.sent++
	}
}

func (s *side) done() bool {
	return s.sent == len(s.work) && s.given == len(s.receives) && len(s.comps) >= len(s.wantSend)+len(s.wantRecv) &&
		s.q.req.head == nil
}

// verify compares completions, by queue and in order, and every byte.
func (s *side) verify() error {
	var sends, recvs []ring.CQE
	for _, c := range s.comps {
		c.Timestamp = 0
		if c.Flags&ring.ReceiveSide != 0 {
			recvs = append(recvs, c.CQE)
		} else {
			sends = append(sends, c.CQE)
		}
	}
	if err := sameCompletions("send", sends, s.wantSend); err != nil {
		return err
	}
	if err := sameCompletions("receive", recvs, s.wantRecv); err != nil {
		return err
	}
	for _, m := range []struct {
		name      string
		got, want []byte
	}{{"target", s.target, s.wantTarget}, {"words", s.words, s.wantWords}, {"arena", s.arena, s.wantArena}} {
		for i := range m.got {
			if m.got[i] != m.want[i] {
				return fmt.Errorf("%s differs at byte %d of %d", m.name, i, len(m.got))
			}
		}
	}
	return nil
}

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

// impairments are the faults of a program: one kind alone, all together, or none.
func impairments(rng *rand.Rand) sim.Impairment {
	p := func() float64 { return float64(1+rng.IntN(50)) / 1000 }
	i := sim.Impairment{Delay: time.Duration(1+rng.IntN(20)) * time.Microsecond}
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

// TestRCPrograms is the property of a reliable connection: whatever the network
// does to packets, up to 5 % of each kind of fault, every message arrives once,
// in order, intact, and every completion is what a model of the specification
// says (IBA 9.7).
func TestRCPrograms(t *testing.T) {
	placedPackets = 0
	runPrograms(t, func(seed uint64) error { return runProgram(t, seed, false) })
	if placedPackets == 0 && *programSeed == 0 {
		t.Error("no packet was received in place")
	}
}

// TestLocalPrograms runs the same programs with the pair on the local path, off
// it, or changing between the two at any time: nobody can tell.
func TestLocalPrograms(t *testing.T) {
	movedLocally, movedByWire = 0, 0
	runPrograms(t, func(seed uint64) error { return runProgram(t, seed, true) })
	if movedLocally == 0 || movedByWire == 0 {
		t.Fatalf("%d local messages, %d packets: want some of both", movedLocally, movedByWire)
	}
}

// What TestLocalPrograms saw on either path.
var movedLocally, movedByWire uint64

func runPrograms(t *testing.T, run func(seed uint64) error) {
	if *programSeed != 0 {
		if err := run(*programSeed); err != nil {
			t.Fatal(err)
		}
		return
	}
	for seed := range uint64(*programCount) {
		if err := run(seed + 1); err != nil {
			t.Fatalf("program %d: %v", seed+1, err)
		}
	}
}

func runProgram(t testing.TB, seed uint64, local bool) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	n := sim.New(seed)
	n.Default = impairments(rng)
	a := newHost(t, n, "10.0.0.1", Config{}).qp(command.RC, QPConfig{Context: 1, SignalAll: rng.IntN(4) == 0})
	b := newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100}).qp(command.RC, QPConfig{Context: 2})
	a.port.Batch, b.port.Batch = 1+rng.IntN(32), 1+rng.IntN(32)
	c := defaultConnection()
	c.mtu = 256 << rng.IntN(5)
	c.psn = [2]uint32{rng.Uint32() & 0xffffff, 0xffffff - rng.Uint32N(64)}
	c.depth = uint8(1 + rng.IntN(MaxReadAtomic))
	c.timeout = uint8(6 + rng.IntN(5))
	c.flow = uint8(rng.IntN(2))
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
		y.generate()
	}
	for _, s := range []*side{x, y} {
		if s.q.signalAll {
			s.wantSend = nil
			for _, wr := range s.work {
				s.wantSend = append(s.wantSend, ring.CQE{ID: wr.ID, QPN: s.q.num, Context: s.q.context, Op: wr.Op.CQOp(), ByteLen: lengthOf(&wr)})
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
	if x.q.Local() {
		x.e.Split(n.Now(), x.q)
	} else {
		_ = x.e.Join(n.Now(), x.q, y.q) // refused while a message is under way
	}
	x.port.Wake()
	y.port.Wake()
}

// noLeak checks that nothing is left in flight or in use.
func noLeak(sides ...*side) error {
	for _, s := range sides {
		w := s.q.win
		if w.InFlight != 0 || s.q.counted != 0 || s.q.req.outstanding != 0 || s.q.req.reads != 0 || s.q.req.slotCount != 0 || s.q.resp.recv != nil {
			return fmt.Errorf("left over: %d in flight, %d requests, %d reads, %d slots", w.InFlight, s.q.req.outstanding, s.q.req.reads, s.q.req.slotCount)
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
