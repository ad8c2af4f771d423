package transport

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/encap"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// TestFailingPrograms runs random programs in which one request must fail, on the wire and on the local path. The
// requests before it complete, it ends with the error that the specification gives it, and everything behind it is
// flushed, in order, and leaves no trace in memory (IBA 10.8.4, 11.6.2).
func TestFailingPrograms(t *testing.T) {
	runPrograms(t, func(seed uint64) error {
		if err := failingProgram(t, seed, false); err != nil {
			return fmt.Errorf("wire: %w", err)
		}
		if err := failingProgram(t, seed, true); err != nil {
			return fmt.Errorf("local: %w", err)
		}
		return nil
	})
}

// breakRequest makes x's last request fail. It returns the status of the request, the status of the receive it
// consumes (Success: the receive is flushed), and whether the peer ends in the error state too.
func breakRequest(rng *rand.Rand, x, y *side) (status, receive ring.Status, peerEnds bool) {
	wr := &x.work[len(x.work)-1]
	n := lengthOf(wr)
	takes := takesReceive(wr.Op)
	switch {
	case wr.Flags&ring.Inline == 0 && n > 0 && rng.IntN(3) == 0:
		for i := range wr.SGE[:wr.NumSGE] {
			wr.SGE[i].LKey = 0x77777700
		}
		return ring.LocalProtection, 0, false
	case wr.Op <= ring.OpSendInv && n > 0:
		y.receives[len(y.receives)-1].NumSGE = 0
		return ring.RemoteInvalidRequest, ring.LocalLength, true
	case !takes && n > 0 || wr.Op == ring.OpWriteImm && n > 0:
		wr.RKey ^= 0x5500
		return ring.RemoteAccess, 0, true
	}
	wr.Op, wr.NumSGE, wr.Flags = ring.OpFetchAdd, 0, wr.Flags&^ring.Inline
	if takes {
		y.receives = y.receives[:len(y.receives)-1]
		y.wantRecv = y.wantRecv[:len(y.wantRecv)-1]
	}
	return ring.LocalLength, 0, false
}

func failingProgram(t testing.TB, seed uint64, local bool) error {
	rng := rand.New(rand.NewPCG(seed, 2))
	n := sim.New(seed)
	n.Default = impairments(rng)
	a := newHost(t, n, "10.0.0.1", Config{}).qp(command.RC, QPConfig{Context: 1})
	b := newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x100}).qp(command.RC, QPConfig{Context: 2})
	x, y := newSide(a, rng), newSide(b, rng)
	x.peer, y.peer = y, x
	c := defaultConnection()
	c.mtu = 256 << rng.IntN(5)
	c.depth = uint8(1 + rng.IntN(MaxReadAtomic))
	if x.slow || y.slow {
		c.timeout = 14
	}
	connect(a, b, c)
	if local {
		if err := a.e.Join(0, a.q, b.q); err != nil {
			return err
		}
	}
	for range rng.IntN(6) {
		x.generate()
	}
	goodSends, goodRecvs := len(x.wantSend), len(y.wantRecv)
	target, words := bytes.Clone(y.wantTarget), bytes.Clone(y.wantWords)
	arenaX, arenaY := bytes.Clone(x.wantArena), bytes.Clone(y.wantArena)
	x.generate()
	status, receive, peerEnds := breakRequest(rng, x, y)
	bad := len(x.work) - 1
	badRecvs := len(y.wantRecv)
	for range rng.IntN(6) {
		x.generate()
	}
	x.wantSend = x.wantSend[:goodSends]
	for i := bad; i < len(x.work); i++ {
		wr := &x.work[i]
		e := ring.CQE{ID: wr.ID, QPN: a.q.num, Context: 1, Op: wr.Op.CQOp(), Status: ring.WRFlush}
		if i == bad {
			e.Status = status
		}
		x.wantSend = append(x.wantSend, e)
	}
	all := y.wantRecv
	y.wantRecv = y.wantRecv[:goodRecvs:goodRecvs]
	if peerEnds {
		for i := goodRecvs; i < len(all); i++ {
			e := ring.CQE{ID: all[i].ID, QPN: b.q.num, Context: 2, Op: ring.CQRecv, Flags: ring.ReceiveSide, Status: ring.WRFlush}
			if i < badRecvs && receive != ring.Success {
				e.Status = receive
			}
			y.wantRecv = append(y.wantRecv, e)
		}
	}
	y.wantTarget, y.wantWords, x.wantArena, y.wantArena = target, words, arenaX, arenaY
	x.seal()
	y.seal()
	for _, w := range y.receives {
		y.postRecv(w)
	}
	for x.sent < len(x.work) {
		x.post(x.work[x.sent])
		x.sent++
	}
	enough := func() bool { return len(x.comps) >= len(x.wantSend) && len(y.comps) >= len(y.wantRecv) }
	for range 50000 { // longer than all retries with the longest ACK timer
		x.copySome()
		y.copySome()
		n.Pass(50 * time.Microsecond)
		y.drain(n.Now())
		if enough() {
			break
		}
	}
	if n.Stats.Lost+n.Stats.Corrupted+n.Stats.Reordered > 0 && peerEnds && givenUp(x) {
		if err := silentPeer(x, goodSends); err != nil {
			return fmt.Errorf("a (%v at %d, peer silent): %w", status, bad, err)
		}
	} else if err := x.verify(); err != nil {
		return fmt.Errorf("a (%v at %d): %w", status, bad, err)
	}
	if err := y.verify(); err != nil {
		return fmt.Errorf("b (%v at %d): %w", status, bad, err)
	}
	return nil
}

// givenUp reports whether a request of x ran out of retries: a responder in the error state no longer answers, so
// that packets lost before, or its NAK, are never made good.
func givenUp(x *side) bool {
	for _, c := range x.comps {
		if c.Status == ring.RetryExceeded {
			return true
		}
	}
	return false
}

// silentPeer checks the completions of a program whose peer fell silent: successes as expected, one retry exceeded,
// and everything behind it flushed, in order.
func silentPeer(x *side, good int) error {
	i := 0
	for ; x.comps[i].Status == ring.Success; i++ {
		if i >= good || x.comps[i].ID != x.wantSend[i].ID {
			return fmt.Errorf("completion %d: %+v, want the success of request %d of %d", i, x.comps[i], i, good)
		}
	}
	last := x.comps[len(x.comps)-1].ID
	if x.comps[i].Status != ring.RetryExceeded || last != x.work[len(x.work)-1].ID {
		return fmt.Errorf("completion %d: %+v, want retry exceeded; last is request %d, want %d", i, x.comps[i], last,
			x.work[len(x.work)-1].ID)
	}
	for k := i + 1; k < len(x.comps); k++ {
		if c := x.comps[k]; c.Status != ring.WRFlush || c.ID != x.comps[k-1].ID+1 {
			return fmt.Errorf("completion %d: %+v, want request %d flushed", k, c, x.comps[k-1].ID+1)
		}
	}
	return nil
}

// codec puts the real encapsulation into the simulated path: packets carry their ICRC, and corrupted ones arrive and
// must be found.
type codec struct{ e *encap.Encap }

func newCodec(t testing.TB, addr netip.Addr) *codec {
	e, err := encap.New(encap.RoCEv2, []netip.Addr{addr}, link.Capabilities{MaxSegments: 1, MTU: 9000}, 4791)
	if err != nil {
		t.Fatal(err)
	}
	return &codec{e}
}

// Seal implements sim.Codec.
func (c *codec) Seal(b []byte, o *frame.Out) []byte {
	out := []frame.Out{*o}
	c.e.Seal(out)
	b = append(b, out[0].Head[out[0].HeadStart:out[0].HeadEnd]...)
	return append(append(b, o.Payload...), out[0].Tail[:out[0].TailLen]...)
}

// Open implements sim.Codec.
func (c *codec) Open(in *frame.In) bool {
	one := []frame.In{*in}
	one[0].IDKnown = true // the IPv4 identification is 0, as sent
	if c.e.Open(one) == 0 {
		return false
	}
	*in = one[0]
	return true
}

// TestEncapsulatedPrograms runs random programs with the encapsulation in the path: no corrupted packet passes the
// ICRC check.
func TestEncapsulatedPrograms(t *testing.T) {
	caught := uint64(0)
	for seed := range uint64(max(programs()/20, 10)) {
		throughEncap = func(a, b *end) {
			for _, x := range []*end{a, b} {
				x.port.Codec = newCodec(t, x.addr)
			}
		}
		if err := runProgram(t, seed+1, command.RC, false); err != nil {
			t.Fatalf("program %d: %v", seed+1, err)
		}
		caught += corruptedSeen
	}
	throughEncap = nil
	if caught == 0 {
		t.Error("no packet was corrupted")
	}
}

var (
	throughEncap  func(a, b *end) // set by TestEncapsulatedPrograms
	corruptedSeen uint64
)
