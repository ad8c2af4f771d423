package lease

import (
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/direct"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
	"github.com/softvpi/softvpi/wire/ib"
)

// arena returns n zeroed bytes aligned to 64.
func arena(n int) []byte {
	w := make([]uint64, n/8+16)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), len(w)*8)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+n : skip+n]
}

// neighbour records what a program is told.
type neighbour struct {
	record     []byte
	introduced []Introduction
	ended      []error
	unshared   int
	scarce     bool // not all of its arenas can be passed
	process    uint32
}

func (n *neighbour) Keys() []byte { return arena(direct.TableSize) }

func (n *neighbour) Share(_ Neighbour, size int) (Place, []byte, error) {
	n.record = arena(size)
	return Place{}, n.record, nil
}

func (n *neighbour) Whole() bool { return !n.scarce }

func (n *neighbour) Process(Neighbour) uint32 { return n.process }

func (n *neighbour) Unshare(Neighbour, Place) { n.unshared++ }

func (n *neighbour) Introduce(_ Neighbour, i Introduction) { n.introduced = append(n.introduced, i) }

func (n *neighbour) End(cause error) { n.ended = append(n.ended, cause) }

// queue is a completion queue that programs may complete to unless closed is set.
type queue struct {
	closed bool
	raised int
	claims int // of a program that died
}

func (q *queue) Direct() bool      { return !q.closed }
func (q *queue) At() direct.RingAt { return direct.RingAt{} }
func (q *queue) Produced() uint32  { return 0 }
func (q *queue) Channel() bool     { return true }
func (q *queue) Timestamps() bool  { return false }
func (q *queue) Raise()            { q.raised++ }
func (q *queue) Void(uint32) int   { return q.claims }

// bench is a lease of two queue pairs of one engine on the local path.
type bench struct {
	t          *testing.T
	now        clock.Time
	book       Book
	lease      *Lease
	programs   [2]*neighbour
	part       [2]*Program
	arenas     int
	ends       [2]End
	record     *direct.Record
	send, recv [2]queue

	denied, apart, over bool
	failed              []int
}

func (b *bench) Allow() bool  { return !b.denied }
func (b *bench) Apart() bool  { return b.apart }
func (b *bench) Fail(end int) { b.failed = append(b.failed, end) }
func (b *bench) Ended()       { b.over = true }

func newBench(t *testing.T) *bench {
	b := &bench{t: t, arenas: 1}
	b.book = NewBook(func() clock.Time { return b.now })
	e, err := transport.New(transport.Config{Memory: memory.NewTable(4, func() uint8 { return 1 })})
	b.check(err)
	for i := range b.ends {
		b.programs[i] = &neighbour{}
		b.part[i], err = NewProgram(b.programs[i], 7, func() int { return b.arenas })
		b.check(err)
		b.ends[i] = b.end(e, i)
	}
	for i := range b.ends {
		b.connect(e, i)
	}
	b.check(e.Join(b.now, b.ends[0].QP, b.ends[1].QP))
	b.lease, err = b.book.Make(b, b.ends)
	b.check(err)
	b.record, err = direct.OpenRecord(b.programs[0].record)
	b.check(err)
	return b
}

func (b *bench) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) end(e *transport.Engine, i int) End {
	sg, rg := ring.SendGeometry(8, 1, 0), ring.RecvGeometry(8, 1)
	s, err := ring.OpenSend(arena(sg.Size()), sg)
	b.check(err)
	r, err := ring.OpenRecv(arena(rg.Size()), rg)
	b.check(err)
	q, err := e.CreateQP(b.now, transport.QPConfig{Type: command.RC, Send: &transport.SendRing{Send: s}, Recv: r})
	b.check(err)
	return End{
		Program: b.part[i], Engine: e, QP: q, Send: s, Recv: r, SendCQ: &b.send[i], RecvCQ: &b.recv[i],
		Handle: uint32(100 + i), Number: q.Number(), Adapter: uint32(i), PD: uint32(i), Context: uint64(i),
	}
}

// connect takes a queue pair from Reset to RTS.
func (b *bench) connect(e *transport.Engine, i int) {
	at := [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	q, peer := b.ends[i].QP, b.ends[1-i].QP
	for _, m := range []command.ModifyQP{
		{Mask: command.MaskPKey | command.MaskAccess, State: command.Init, Access: uint32(memory.RemoteWrite)},
		{
			Mask: command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN | command.MaskResponderResources |
				command.MaskMinRNRTimer,
			State: command.RTR, MTU: uint32(ib.MTU1024.Bytes()), DestQPN: peer.Number(), MinRNRTimer: 1,
		},
		{
			Mask:  command.MaskSQPSN | command.MaskTimeout | command.MaskRetry | command.MaskRNRRetry | command.MaskInitiatorDepth,
			State: command.RTS, Timeout: 8, Retry: 7, RNRRetry: 7,
		},
	} {
		m.Mask |= command.MaskState
		var route *frame.Route
		if m.State == command.RTR {
			route = &frame.Route{Src: at[i], Dst: at[1-i], SrcPort: 0xc000}
		}
		b.check(e.Modify(b.now, q, m, route))
	}
}

// pass lets time pass and runs one turn of the loop.
func (b *bench) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.book.Step(b.now)
}

// delegated reports whether both directions are delegated.
func (b *bench) delegated() bool { return b.record.Way[0].Delegated() && b.record.Way[1].Delegated() }

// delegate delegates the pair at the earliest moment.
func (b *bench) delegate() {
	b.t.Helper()
	b.lease.Want(b.now)
	b.pass(b.lease.wait)
	if !b.delegated() {
		b.t.Fatal("the pair was not delegated")
	}
}

// enter begins an operation of a program, leave ends it.
func (b *bench) enter(i int) { b.record.Way[i].Op |= 1 }
func (b *bench) leave(i int) { b.record.Way[i].Op++ }

func (b *bench) post(i int) {
	b.t.Helper()
	b.check(b.ends[i].Send.Post(&ring.SendWR{Op: ring.OpSend}))
	b.lease.Rung(b.ends[i].QP)
}
