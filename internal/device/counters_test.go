package device

import (
	"os"
	"regexp"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/eventqueue"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// lone posts one signaled request and checks that it ends with status want.
func (q *pair) lone(op ring.WROp, want ring.Status, change func(*ring.SendWR), sges ...ring.SGE) {
	q.p.t.Helper()
	wr := ring.SendWR{Op: op, Flags: ring.Signaled, NumSGE: uint8(len(sges))}
	copy(wr.SGE[:], sges)
	if change != nil {
		change(&wr)
	}
	q.post(wr)
	if e := q.cq.next(); e.Status != want {
		q.p.t.Errorf("request ended with %v, want %v", e.Status, want)
	}
}

// byHand takes two UC QPs to RTS towards each other without the CM.
func byHand(a, b *pair) {
	for _, q := range [2]*pair{a, b} {
		peer := b
		if q == b {
			peer = a
		}
		for _, m := range []command.ModifyQP{
			{Mask: command.MaskState | command.MaskPKey | command.MaskAccess, State: command.Init, Access: uint32(memory.RemoteWrite)},
			{
				Mask: command.MaskState | command.MaskRoute | command.MaskMTU | command.MaskDestQPN | command.MaskRQPSN, State: command.RTR,
				Route: command.AddressVector{Addr: command.AddrFrom(peer.p.addr)}, MTU: 1024, DestQPN: peer.q.Number, RQPSN: 7,
			},
			{Mask: command.MaskState | command.MaskSQPSN, State: command.RTS, SQPSN: 7},
		} {
			m.QP = q.q.Handle
			q.p.check(q.p.c.ModifyQP(bg, m))
		}
	}
}

// stage is two connected QPs with memory: x is the requester, y the responder.
type stage struct {
	c        *connected
	x, y     *program
	src, dst *buffer
}

// toDst addresses a request to y's memory.
func (s *stage) toDst(wr *ring.SendWR) { wr.RemoteAddr, wr.RKey = s.dst.addr(0), s.dst.mem.RKey }

// manualCounters are the rows of the tables "Adapter Diagnostics Counters" and "RDMA Activity" (WinOF manual 4.9.4.2
// and 4.9.4.4.2.2), by their printed names, with what makes each count and where: at the requester x or at the
// responder y.
var manualCounters = []struct {
	name  string
	at    string
	param func(*command.ConnParam)
	count func(t *testing.T, s *stage)
}{
	{"Requester length errors", "x", nil, func(t *testing.T, s *stage) {
		s.c.a.lone(ring.OpFetchAdd, ring.LocalLength, s.toDst, s.src.sge(0, 4))
	}},
	{"Responder length errors", "y", nil, tooShort},
	{"Requester QP operation errors", "x", nil, func(t *testing.T, s *stage) {
		s.c.a.lone(ring.OpLocalInvalidate, ring.LocalQPOperation, func(wr *ring.SendWR) { wr.Imm = 0xdeadbeef })
	}},
	{"Responder QP operation errors", "y", nil, func(t *testing.T, s *stage) {
		b := s.y.ringAt(s.c.b.q.Recv)
		b[0] = 0xff // more receives than the ring has entries
		s.c.a.lone(ring.OpSend, ring.RemoteOperation, nil, s.src.sge(0, 8))
	}},
	{"Requester protection errors", "x", nil, func(t *testing.T, s *stage) {
		s.c.a.lone(ring.OpSend, ring.LocalProtection, nil, ring.SGE{Addr: s.src.addr(0), Length: 8, LKey: 0xdeadbeef})
	}},
	{"Responder protection errors", "y", nil, badReceive},
	{"Requester CQE errors", "x", nil, badKey},
	{"Responder CQE errors", "y", nil, badReceive},
	{"Requester Invalid request errors", "x", nil, tooShort},
	{"Responder Invalid request errors", "y", nil, tooShort},
	{"Requester Remote access errors", "x", nil, badKey},
	{"Responder Remote access errors", "y", nil, badKey},
	{"Requester RNR NAK", "x", noPatience, notReady},
	{"Responder RNR NAK", "y", noPatience, notReady},
	{"Requester out of order sequence NAK", "x", nil, lossy},
	{"Responder out of order sequence received", "y", nil, lossy},
	{"Requester resync", "x", nil, lossy},
	{"Responder resync", "y", nil, func(t *testing.T, s *stage) {
		impaired(s, impair.Impairment{}, impair.Impairment{Loss: 0.05, Seed: 3}, ring.OpRead)
	}},
	{"Requester Remote operation errors", "x", nil, badReceive},
	{"Requester transport retries exceeded errors", "x", func(p *command.ConnParam) { p.RetryCount = 0 }, func(t *testing.T, s *stage) {
		s.y.check(s.y.host.SetImpairment(s.y.adapter, impair.Impairment{Loss: 1}))
		s.c.a.lone(ring.OpWrite, ring.RetryExceeded, s.toDst, s.src.sge(0, 8))
	}},
	{"Requester RNR NAK retries exceeded errors", "x", noPatience, notReady},
	{"Bad multicast received", "y", nil, func(t *testing.T, s *stage) {
		a := s.x.qp(command.CreateQP{Type: command.UD}, s.x.cq(16))
		a.toDatagrams(1)
		s.x.check(a.sendTo(s.y.addr, 0xffffff, 1, s.src.sge(0, 8)))
		a.cq.next()
	}},
	{"Discarded UD packets", "y", nil, func(t *testing.T, s *stage) {
		a, b := s.x.qp(command.CreateQP{Type: command.UD}, s.x.cq(16)), s.y.qp(command.CreateQP{Type: command.UD}, s.y.cq(16))
		a.toDatagrams(1)
		b.toDatagrams(1)
		s.x.check(a.sendTo(s.y.addr, b.q.Number, 1, s.src.sge(0, 8)))
		a.cq.next()
	}},
	{"Discarded UC packets", "y", nil, func(t *testing.T, s *stage) {
		a, b := s.x.qp(command.CreateQP{Type: command.UC}, s.x.cq(16)), s.y.qp(command.CreateQP{Type: command.UC}, s.y.cq(16))
		byHand(a, b)
		a.lone(ring.OpSend, ring.Success, nil, s.src.sge(0, 8))
	}},
	{"CQ overflows", "y", nil, func(t *testing.T, s *stage) {
		q := s.y.qp(command.CreateQP{Type: command.UD}, s.y.cq(1))
		q.toDatagrams(1)
		for range 2 {
			s.y.check(q.sendTo(s.y.addr, q.q.Number, 1, s.dst.sge(0, 8)))
		}
	}},
	{"EQ overflows", "y", nil, func(t *testing.T, s *stage) {
		deaf, err := s.y.host.NewClient(ClientConfig{Name: "deaf"}) // it never reads its events
		s.y.check(err)
		defer deaf.Close()
		pd, err := deaf.AllocPD(bg, s.y.adapter)
		s.y.check(err)
		srq, err := deaf.CreateSRQ(bg, command.CreateSRQ{PD: pd, Depth: 1})
		s.y.check(err)
		for range eventqueue.Most + 1 { // each raises the event at once, because fewer receives are posted than the limit
			s.y.check(deaf.ModifySRQ(bg, command.ModifySRQ{SRQ: srq.Handle, Limit: 1}))
		}
	}},
	{"Bad doorbells", "x", nil, func(t *testing.T, s *stage) { s.x.c.Doorbell(12345) }},
	{"Responder duplicate request received", "y", nil, func(t *testing.T, s *stage) {
		impaired(s, impair.Impairment{Duplicate: 0.5, Seed: 3}, impair.Impairment{}, ring.OpWrite)
	}},
	{"Requester time out received", "x", func(p *command.ConnParam) { p.RetryCount = 1 }, func(t *testing.T, s *stage) {
		s.y.check(s.y.host.SetImpairment(s.y.adapter, impair.Impairment{Loss: 1}))
		s.c.a.lone(ring.OpWrite, ring.RetryExceeded, s.toDst, s.src.sge(0, 8))
	}},
	{"Device detected stalled state", "", nil, nil}, // only in dropless mode, which this link does not have: TestDropless_Waits
	{"Packet detected as stalled", "", nil, nil},
	{"Link down events", "y", nil, func(t *testing.T, s *stage) {
		s.y.check(s.y.host.SetAdapterState(s.y.adapter, false))
	}},
	{"TX Copied Packets", "x", nil, func(t *testing.T, s *stage) {
		s.c.a.lone(ring.OpWrite, ring.Success, s.toDst, s.src.sge(0, 8), s.src.sge(100, 8))
	}},

	{"RDMA Accepted Connections", "y", nil, nothing},
	{"RDMA Active Connections", "y", nil, nothing},
	{"RDMA Completion Queue Errors", "", nil, nil}, // "not supported, and always is set to zero"
	{"RDMA Connection Errors", "y", nil, badKey},
	{"RDMA Failed Connection Attempts", "x", nil, func(t *testing.T, s *stage) {
		id, err := s.x.c.CMCreate(bg, command.CMCreate{Adapter: s.x.adapter, Space: command.TCP})
		s.x.check(err)
		s.x.dial(command.CMConnect{
			ID: id, QP: s.x.idleQP().q.Handle, Remote: command.Endpoint{Addr: command.AddrFrom(s.y.addr), Port: 1}, Param: usualParam,
		})
		s.x.event(command.EventRejected)
	}},
	{"RDMA Inbound Bytes/sec", "y", nil, nothing},
	{"RDMA Inbound Frames/sec", "y", nil, nothing},
	{"RDMA Initiated Connections", "x", nil, nothing},
	{"RDMA Outbound Bytes/sec", "x", nil, nothing},
	{"RDMA Outbound Frames/sec", "x", nil, nothing},
}

// nothing is the count of rows for which the connection itself suffices.
func nothing(*testing.T, *stage) {}

func noPatience(p *command.ConnParam) { p.RNRRetry = 0 }

func notReady(t *testing.T, s *stage) {
	s.c.a.lone(ring.OpSend, ring.RNRRetryExceeded, nil, s.src.sge(0, 8))
}

func tooShort(t *testing.T, s *stage) {
	s.c.b.postRecv(1, s.dst.sge(0, 4))
	s.c.a.lone(ring.OpSend, ring.RemoteInvalidRequest, nil, s.src.sge(0, 8))
}

func badReceive(t *testing.T, s *stage) {
	s.c.b.postRecv(1, ring.SGE{Addr: s.dst.addr(0), Length: 8, LKey: 0xdeadbeef})
	s.c.a.lone(ring.OpSend, ring.RemoteOperation, nil, s.src.sge(0, 8))
}

func badKey(t *testing.T, s *stage) {
	s.c.a.lone(ring.OpWrite, ring.RemoteAccess, func(wr *ring.SendWR) { s.toDst(wr); wr.RKey ^= 0x100 }, s.src.sge(0, 8))
}

func lossy(t *testing.T, s *stage) {
	impaired(s, impair.Impairment{Loss: 0.05, Seed: 3}, impair.Impairment{}, ring.OpWrite)
}

// impaired moves some data over impaired links.
func impaired(s *stage, x, y impair.Impairment, op ring.WROp) {
	s.x.check(s.x.host.SetImpairment(s.x.adapter, x))
	s.y.check(s.y.host.SetImpairment(s.y.adapter, y))
	for range 20 {
		s.c.a.lone(op, ring.Success, s.toDst, s.src.sge(0, len(s.src.b)))
	}
}

// TestCountersOfTheManual: every row of the manual's tables exists and counts what the manual says. Rows that have no
// meaning in this system exist too and stay 0.
func TestCountersOfTheManual(t *testing.T) {
	for _, row := range manualCounters {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			x, y := overMemory(false)(t, AdapterConfig{Path: PathWire, RoceMaxFrameSize: 1024})
			if row.count == nil {
				if v := counter(t, x, row.name); v != 0 {
					t.Errorf("the counter is %d, want always 0", v)
				}
				return
			}
			s := &stage{x: x, y: y, src: x.buffer(64 << 10), dst: y.buffer(64 << 10)}
			param := usualParam
			if row.param != nil {
				row.param(&param)
			}
			p := x
			if row.at == "y" {
				p = y
			}
			if v := counter(t, p, row.name); v != 0 {
				t.Fatalf("the counter is %d before anything happened, want 0", v)
			}
			s.c = connectWith(x.idleQP(), y.idleQP(), param)
			row.count(t, s)
			await.Eventually(t, "the counter counts", func() bool {
				y.c.Poll(1) // packets sent last may still be on their way
				x.c.Poll(1)
				return counter(t, p, row.name) > 0
			})
		})
	}
}

// TestConnectionErrorCountsAtBothEnds: a connection that ends with an error counts as one at each end, also where the
// NAK and the DREQ behind it arrive together.
func TestConnectionErrorCountsAtBothEnds(t *testing.T) {
	x, y := overMemory(false)(t, AdapterConfig{Path: PathWire, RoceMaxFrameSize: 1024})
	s := &stage{x: x, y: y, src: x.buffer(4096), dst: y.buffer(4096)}
	s.c = connectWith(x.idleQP(), y.idleQP(), usualParam)
	s.c.a.post(ring.SendWR{
		Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, SGE: [ring.MaxSGE]ring.SGE{s.src.sge(0, 8)},
		RemoteAddr: s.dst.addr(0), RKey: s.dst.mem.RKey ^ 0x100,
	})
	await.Eventually(t, "the responder's connection ends", func() bool {
		y.c.Poll(1)
		return counter(t, y, "RDMA Active Connections") == 0
	})
	y.c.Poll(1) // its NAK and DREQ have left, and x has looked at neither
	await.Eventually(t, "the requester's connection ends", func() bool {
		x.c.Poll(1)
		return counter(t, x, "RDMA Active Connections") == 0
	})
	for _, p := range []*program{x, y} {
		if n := counter(t, p, "RDMA Connection Errors"); n != 1 {
			t.Errorf("%v: %d errors, want 1", p.addr, n)
		}
	}
}

// TestLocalPathCountsAsActivity: messages on the local path count in the rows of the activity table as the packets
// that the wire would have carried, in the direction of their data.
func TestLocalPathCountsAsActivity(t *testing.T) {
	x, y := overMemory(true)(t, AdapterConfig{RoceMaxFrameSize: 1024})
	s := &stage{x: x, y: y, src: x.buffer(64 << 10), dst: y.buffer(64 << 10)}
	s.c = connectWith(x.idleQP(), y.idleQP(), usualParam)
	if p := s.c.a.info().Path; p != 2 {
		t.Fatalf("path %d, want the local one", p)
	}
	rows := []string{"RDMA Outbound Bytes/sec", "RDMA Outbound Frames/sec", "RDMA Inbound Bytes/sec", "RDMA Inbound Frames/sec"}
	for _, c := range []struct {
		op   ring.WROp
		x, y [4]uint64 // in the order of rows
	}{
		{ring.OpWrite, [4]uint64{64 << 10, 64, 0, 0}, [4]uint64{0, 0, 64 << 10, 64}},
		{ring.OpRead, [4]uint64{0, 0, 64 << 10, 64}, [4]uint64{64 << 10, 64, 0, 0}},
	} {
		var before [2][4]uint64
		for i, row := range rows {
			before[0][i], before[1][i] = counter(t, x, row), counter(t, y, row)
		}
		s.c.a.lone(c.op, ring.Success, s.toDst, s.src.sge(0, 64<<10))
		for i, row := range rows {
			if n := counter(t, x, row) - before[0][i]; n != c.x[i] {
				t.Errorf("%v, %s at the requester: %d, want %d", c.op, row, n, c.x[i])
			}
			if n := counter(t, y, row) - before[1][i]; n != c.y[i] {
				t.Errorf("%v, %s at the responder: %d, want %d", c.op, row, n, c.y[i])
			}
		}
	}
}

// TestCountersAreDocumented: docs/counters.md describes every row of the manual's tables.
func TestCountersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/counters.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range manualCounters {
		if !regexp.MustCompile(`(?m)^\|[^|]*\b` + regexp.QuoteMeta(row.name) + `[ ,]`).Match(text) {
			t.Errorf("%q is not in docs/counters.md", row.name)
		}
	}
}

// TestCountersOutliveLinks: what the links of a port have counted is kept when they are closed and opened again.
func TestCountersOutliveLinks(t *testing.T) {
	x, y := overUDP(false)(t, AdapterConfig{Path: PathWire, RoceMaxFrameSize: 1024})
	s := &stage{x: x, y: y, src: x.buffer(64 << 10), dst: y.buffer(64 << 10)}
	s.c = connectWith(x.idleQP(), y.idleQP(), usualParam)
	s.c.a.lone(ring.OpWrite, ring.Success, s.toDst, s.src.sge(0, len(s.src.b)))
	of := func() Counters { return x.host.Counters()[x.adapter] }
	before := of()
	if before.Link.SentPackets < 64 || before.Transport.OutboundPackets < 64 || before.CM.Initiated != 1 {
		t.Fatalf("after a write of 64 packets the counters are %+v", before)
	}
	for _, enable := range []bool{false, true} {
		x.check(x.host.SetAdapterState(x.adapter, enable))
		now := of()
		if now.Enabled != enable || now.Link.SentPackets < before.Link.SentPackets || now.Link.ReceivedBytes < before.Link.ReceivedBytes {
			t.Errorf("enabled %v: link %+v, was %+v", enable, now.Link, before.Link)
		}
		if restarted := now.Before != nil && now.Restarts == 1 &&
			now.Before.Link.SentPackets >= before.Link.SentPackets; restarted != enable {
			t.Errorf("enabled %v: %d restarts, the last after %+v", enable, now.Restarts, now.Before)
		}
	}
}

// TestCountersOfTheBus: the words of an adapter that mlx4's bus counters show follow what its programs do.
func TestCountersOfTheBus(t *testing.T) {
	x, _ := overMemory(false)(t, AdapterConfig{Path: PathWire})
	words := func() Counters { return x.host.Counters()[x.adapter] }
	before := words()
	buf := x.buffer(64 << 10)
	now := words()
	touched := (buf.addr(0)+64<<10-1)/4096 - buf.addr(0)/4096 + 1
	if got := now.MRPages - before.MRPages; got != touched {
		t.Errorf("a region of 64 KB touches %d pages, want %d", got, touched)
	}
	if now.Commands != before.Commands+1 {
		t.Errorf("registering counted %d commands, want 1", now.Commands-before.Commands)
	}
	q := x.qp(command.CreateQP{Type: command.UD}, x.cq(16))
	q.toDatagrams(1)
	before = words()
	x.check(q.sendTo(x.addr, q.q.Number, 1, buf.sge(0, 8)))
	q.cq.next()
	if now = words(); now.Doorbells == before.Doorbells || now.ErrorQPs != 0 {
		t.Errorf("a posted send counted %d doorbells, and %d QPs are in error; want some, and none", now.Doorbells-before.Doorbells,
			now.ErrorQPs)
	}
	x.check(x.c.ModifyQP(bg, command.ModifyQP{QP: q.q.Handle, Mask: command.MaskState, State: command.Err}))
	if now = words(); now.ErrorQPs != 1 {
		t.Errorf("%d QPs are in error, want 1", now.ErrorQPs)
	}
	x.check(x.c.Destroy(bg, command.KindMemory, buf.mem.Handle))
	if now = words(); now.MRPages != before.MRPages-touched {
		t.Errorf("%d pages are left, want %d", now.MRPages, before.MRPages-touched)
	}
}
