package transport

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// disorder returns the faults of a network whose packets overtake each other all the time: 30 to 100 % of them are
// held back by up to 100 round trips, up to a fifth come twice, and some are lost.
func disorder(rng *rand.Rand) impair.Impairment {
	i := impair.Impairment{
		Delay:     time.Duration(1+rng.IntN(20)) * time.Microsecond,
		Reorder:   []float64{0.3, 0.6, 1}[rng.IntN(3)],
		Duplicate: []float64{0, 0.05, 0.2}[rng.IntN(3)],
		Loss:      []float64{0, 0, 0.02}[rng.IntN(3)],
	}
	i.ReorderBy = i.Delay * time.Duration(1+rng.IntN(100))
	return i
}

// TestDisorderPrograms runs random programs over a network that reorders, duplicates and loses packets, while somebody
// forges packets ahead of those sent. Requests may
// end with an error because they took too long. What completes with success was carried out once, with the right data
// and original value; what completes otherwise, once or not at all. Every request completes once, in order, and the
// peer's memory is what the executed requests, taken in order, leave there (IBA 9.7).
func TestDisorderPrograms(t *testing.T) {
	ended := 0
	count := *programCount
	*programCount = max(count/4, 1)
	defer func() { *programCount = count }()
	runPrograms(t, func(seed uint64) error {
		whole, err := disorderProgram(t, seed)
		if !whole {
			ended++
		}
		return err
	})
	t.Logf("%d of %d programs ended in error", ended, programs())
}

// stage is the content of the peer's memory after some number of requests, and the receives they have consumed.
type stage struct {
	target, words []byte
	receives      int
}

func (s *side) stage() stage {
	return stage{bytes.Clone(s.peer.wantTarget), bytes.Clone(s.peer.wantWords), len(s.peer.receives)}
}

// disorderProgram runs one program and reports whether every request completed with success.
func disorderProgram(t testing.TB, seed uint64) (whole bool, err error) {
	rng := rand.New(rand.NewPCG(seed, 3))
	n := sim.New(seed)
	n.Default = disorder(rng)
	a := newHost(t, n, "10.0.0.1", Config{}).qp(command.RC, QPConfig{Context: 1})
	b := newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100}).qp(command.RC, QPConfig{Context: 2})
	x, y := newSide(a, rng), newSide(b, rng)
	x.peer, y.peer = y, x
	c := defaultConnection()
	c.mtu = 256 << rng.IntN(5)
	c.psn = [2]uint32{rng.Uint32() & 0xffffff, 0xffffff - rng.Uint32N(64)}
	c.depth = uint8(1 + rng.IntN(MaxReadAtomic))
	c.timeout = uint8(6 + rng.IntN(9))
	c.flow = uint8(rng.IntN(2))
	c.bursts = seed%2 == 0
	c.retry = uint8(rng.IntN(8))
	connect(a, b, c)
	answers := &answers{t: map[*sim.Port]*track{a.port: {c: &c}, b.port: {c: &c}}}
	n.Filter = answers.sees
	sides := []*side{x, y}
	stages := map[*side][]stage{}
	for _, s := range sides {
		stages[s] = append(stages[s], s.stage())
		for range 1 + rng.IntN(24) {
			s.generate()
			stages[s] = append(stages[s], s.stage())
		}
	}
	x.seal()
	y.seal()
	over := func() bool { return a.q.state == command.Err || b.q.state == command.Err }
	for step := 0; !over() && !(x.done() && y.done()); step++ {
		x.feed()
		y.feed()
		x.copySome()
		y.copySome()
		for _, s := range sides {
			s.forge(n, rng, s.peer)
		}
		n.Pass(time.Duration(rng.IntN(500)) * time.Microsecond)
		if step > 200_000 {
			return false, fmt.Errorf("hangs at %v: %d/%d and %d/%d requests sent", n.Now(), x.sent, len(x.work), y.sent, len(y.work))
		}
	}
	whole = !over()
	if answers.err != nil {
		return whole, fmt.Errorf("mtu %d, depth %d, %+v: %w", c.mtu, c.depth, n.Default, answers.err)
	}
	if !whole {
		for _, s := range sides {
			s.modify(command.ModifyQP{Mask: command.MaskState, State: command.Err}, nil)
			s.port.Wake()
		}
	}
	for range 50 { // packets still under way must have no effect
		x.copySome()
		y.copySome()
		n.Pass(10 * time.Millisecond)
	}
	for i, s := range sides {
		if whole {
			err = s.verify()
		} else {
			err = s.verifyEnded(stages[s])
		}
		if err != nil {
			return whole, fmt.Errorf("%c (mtu %d, depth %d, %+v): %w", 'a'+i, c.mtu, c.depth, n.Default, err)
		}
	}
	return whole, nil
}

// forge delivers packets to the peer of s that s has not sent: of any kind, as far ahead of what it has sent as a
// responder keeps packets, but for those just ahead.
func (s *side) forge(n *sim.Network, rng *rand.Rand, to *side) {
	for range rng.IntN(4) {
		op := []ib.Opcode{ib.RCSendFirst, ib.RCSendMiddle, ib.RCSendLast, ib.RCSendOnly, ib.RCWriteFirst, ib.RCWriteMiddle, ib.RCWriteLast,
			ib.RCWriteOnly}[rng.IntN(8)]
		headers, _ := ib.HeaderLength(op)
		b := make([]byte, ib.BTHLen+headers+4*rng.IntN(64))
		psn := s.q.req.max.Add(earlyReach + 1 + rng.Uint32N(reorderSpan))
		ib.BTH(b[:ib.BTHLen]).Encode(op, false, rng.IntN(2) == 0, 0, ib.PKeyDefault, ib.QPN(to.q.num), psn)
		if op.HasRETH() {
			ib.RETH(b[ib.BTHLen:]).Encode(targetBase, to.targetMR.Key, uint32(len(b)-ib.BTHLen-headers))
		}
		n.Inject(to.port, netip.AddrPortFrom(s.addr, pairPort), n.Now(), b)
	}
}

// verifyEnded does what verify does, for a program that an error may have cut off. stages[i] is expected after i
// requests of s.
func (s *side) verifyEnded(stages []stage) error {
	first, err := s.endedSends()
	if err != nil {
		return fmt.Errorf("sends: %w", err)
	}
	taken, err := s.peer.endedReceives()
	if err != nil {
		return fmt.Errorf("the peer's receives: %w", err)
	}
	if err := s.happened(stages[first:s.sent+1], taken); err != nil {
		return fmt.Errorf("after %d of %d requests, %d receives: %w", first, s.sent, taken, err)
	}
	for i := range s.work[:first] {
		if err := s.placed(s.work[i].SGE[:s.work[i].NumSGE]); err != nil {
			return fmt.Errorf("request %d (%v): %w", i, s.work[i].Op, err)
		}
	}
	for i := range s.peer.receives[:taken] {
		if err := s.peer.placed(s.peer.receives[i].SGE[:s.peer.receives[i].NumSGE]); err != nil {
			return fmt.Errorf("receive %d of the peer: %w", i, err)
		}
	}
	return nil
}

// endedSends checks that the first requests completed with success and all behind them with errors. It returns the
// number of the former.
func (s *side) endedSends() (first int, err error) {
	var got []ring.CQE
	for _, c := range s.comps {
		if c.Flags&ring.ReceiveSide == 0 {
			c.Timestamp = 0
			got = append(got, c.CQE)
		}
	}
	good := 0
	for good < len(got) && got[good].Status == ring.Success {
		good++
	}
	if err := sameCompletions("successful", got[:good], s.wantSend[:min(good, len(s.wantSend))]); err != nil {
		return 0, err
	}
	first = s.sent - (len(got) - good)
	if first < 0 {
		return 0, fmt.Errorf("%d completions for %d requests", len(got), s.sent)
	}
	signaled := 0
	for i := range s.work[:first] {
		if s.work[i].Flags&ring.Signaled != 0 {
			signaled++
		}
	}
	if signaled != good {
		return 0, fmt.Errorf("%d successes where %d requests were signaled before the first error", good, signaled)
	}
	for i, c := range got[good:] {
		may := c.Status == ring.WRFlush || i == 0 && c.Status == ring.RetryExceeded
		if c.ID != s.work[first+i].ID || !may {
			return 0, fmt.Errorf("completion %d: %+v, want request %d flushed", good+i, c, s.work[first+i].ID)
		}
	}
	return first, nil
}

// endedReceives checks that the first receives completed in order as expected and that the others were flushed. It
// returns the number of the former.
func (s *side) endedReceives() (taken int, err error) {
	var got []ring.CQE
	for _, c := range s.comps {
		if c.Flags&ring.ReceiveSide != 0 {
			c.Timestamp = 0
			got = append(got, c.CQE)
		}
	}
	if len(got) != s.given {
		return 0, fmt.Errorf("%d completions for %d receives", len(got), s.given)
	}
	for taken < len(got) && got[taken].Status == ring.Success {
		taken++
	}
	if err := sameCompletions("receive", got[:taken], s.wantRecv[:taken]); err != nil {
		return 0, err
	}
	for i := taken; i < len(got); i++ {
		if got[i].Status != ring.WRFlush || got[i].ID != s.receives[i].ID {
			return 0, fmt.Errorf("completion %d: %+v, want receive %d flushed", i, got[i], s.receives[i].ID)
		}
	}
	return taken, nil
}

// happened checks that the peer's memory and receives are at one of the stages. A write may have been placed in part:
// it never completed, so the bytes of its remaining full packets may have any value (IBA 9.5).
func (s *side) happened(stages []stage, receives int) error {
	p := s.peer
	found := false
	for _, v := range stages {
		// A receive whose data waited for the memory's owner is flushed although its message was carried out.
		found = found || bytes.Equal(p.words, v.words) && (receives == v.receives || p.slow && receives < v.receives)
	}
	if !found {
		return fmt.Errorf("the peer's atomic words and %d receives are those of none of the %d stages", receives, len(stages))
	}
	from, to := 0, 0
	if w := p.q.resp.write; p.q.resp.msg == msgWrite {
		from = int(w.va - targetBase)
		to = from + int(p.q.fullPackets(w.left))
	}
next:
	for i, have := range p.target {
		if i >= from && i < to {
			continue
		}
		for _, v := range stages {
			if v.target[i] == have {
				continue next
			}
		}
		return fmt.Errorf("the peer's target differs at byte %d", i)
	}
	return nil
}

// placed checks the pieces of s's arena that sges name.
func (s *side) placed(sges []ring.SGE) error {
	for _, g := range sges {
		if g.Addr < arenaBase {
			continue
		}
		from, to := g.Addr-arenaBase, g.Addr-arenaBase+uint64(g.Length)
		if got, want := s.arena[from:to], s.wantArena[from:to]; !bytes.Equal(got, want) {
			return fmt.Errorf("%d bytes at %#x are %x, want %x", g.Length, g.Addr, got, want)
		}
	}
	return nil
}

// answers watches what each responder sends: an ACK without data must never cover the PSN of a read or atomic that is
// still to be answered, nor one before it, because a requester could take it for that answer (IBA 9.7.5.1.2).
type answers struct {
	t   map[*sim.Port]*track // by responder
	err error
}

// track is the reads and atomics that a responder has been asked for.
type track struct {
	c     *connection
	asked []asked
}

// outstanding returns the reads and atomics whose answers the requester may still wait for.
func (t *track) outstanding() []asked { return t.asked[max(len(t.asked)-int(t.c.depth), 0):] }

// asked is a read or atomic, named by the PSNs of its answers.
type asked struct {
	first, last ib.PSN
	answered    bool
}

func (a *answers) sees(from, to *sim.Port, b []byte) bool {
	p, err := ib.ParsePacket(b)
	if err != nil {
		a.err = err
		return true
	}
	op, psn := p.BTH.Opcode(), p.BTH.PSN()
	switch {
	case op == ib.RCReadRequest:
		mtu := a.t[to].c.mtu
		a.t[to].ask(psn, psn.Add(max((p.RETH.DMALen()+mtu-1)/mtu, 1)).Prev())
	case op.IsAtomic(), op.IsPlaced():
		a.t[to].ask(psn, psn)
	case op.IsReadResponse() && op.Ends(), op == ib.RCAtomicAcknowledge:
		a.t[from].answer(psn)
	case op == ib.RCAcknowledge && p.AETH.Syndrome().IsACK():
		for _, r := range a.t[from].outstanding() {
			if psn == r.last || psn.After(r.last) && !r.answered {
				a.err = fmt.Errorf("ACK of PSN %d, but %d belongs to a read or atomic (answered: %v)", psn, r.last, r.answered)
			}
		}
	}
	return true
}

// ask notes a read or atomic request, unless it repeats some of an earlier one.
func (t *track) ask(first, last ib.PSN) {
	for i := range t.asked {
		if r := &t.asked[i]; !first.Before(r.first) && !last.After(r.last) {
			return
		}
	}
	t.asked = append(t.asked, asked{first: first, last: last})
}

func (t *track) answer(psn ib.PSN) {
	for i := range t.asked {
		if t.asked[i].last == psn {
			t.asked[i].answered = true
		}
	}
}
