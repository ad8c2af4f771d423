package device

import (
	"errors"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/wire/eth"
)

// injected is a link at which more frames arrive than its peer has sent.
type injected struct {
	link.Link
	frames chan []byte
}

func (l injected) Receive(in []frame.In) (int, error) {
	n, err := l.Link.Receive(in)
	if n < len(in) && err == nil {
		select {
		case b := <-l.frames:
			in[n] = frame.In{Data: b, Raw: true}
			n++
		default:
		}
	}
	return n, err
}

// paused is a network whose first adapter is told to pause by the test.
type paused struct {
	a, b   *program
	frames chan []byte
}

func newPaused(t *testing.T, cfg AdapterConfig) *paused {
	p := &paused{frames: make(chan []byte, 16)}
	p.a, p.b = whole{"datagrams", func(t *testing.T, stations [2]link.Station) [2]link.Link {
		l := overDatagrams(t, stations)
		l[0] = injected{l[0], p.frames}
		return l
	}}.on(stationsOf(0, false)).make(t, cfg)
	return p
}

// tell lets a frame arrive at the first adapter.
func (p *paused) tell(b []byte) {
	p.frames <- b
	p.a.host.Wake()
}

func pfc(enabled uint8, quanta uint16) []byte {
	f := eth.Pause{PerPriority: true, Enabled: enabled}
	for i := range f.Quanta {
		f.Quanta[i] = quanta
	}
	return f.Append(nil)
}

// datagramsAt returns what sends a datagram from a to b at a priority, with its completion queue.
func (p *paused) datagramsAt(priority uint8) (send func(), done *queue) {
	const qkey = 0x1234
	a, b := p.a.qp(command.CreateQP{Type: command.UD}, p.a.cq(64)), p.b.qp(command.CreateQP{Type: command.UD}, p.b.cq(64))
	a.toDatagrams(qkey)
	b.toDatagrams(qkey)
	ah, err := p.a.c.CreateAH(bg, command.CreateAH{PD: p.a.pd, AV: command.AddressVector{Addr: command.AddrFrom(p.b.addr), SL: priority}})
	p.a.check(err)
	src := p.a.buffer(64)
	return func() {
		wr := ring.SendWR{Op: ring.OpSend, Flags: ring.Signaled, NumSGE: 1, AH: uint32(ah), RemoteQPN: b.q.Number, QKey: qkey}
		wr.SGE[0] = src.sge(0, 64)
		a.post(wr)
	}, a.cq
}

// wantNone checks that nothing that a program has posted is complete after several turns.
func wantNone(t *testing.T, q *queue) {
	t.Helper()
	for range 10 {
		q.p.c.Poll(1)
	}
	if n := q.Poll(make([]ring.CQE, 1)); n != 0 {
		t.Fatal("something has left at a priority that is paused")
	}
}

func (p *program) flow() FlowStatus { return p.host.Overview().Adapters[p.adapter].Flow }

// TestFlowControl_StopsOnePriority: a PFC frame of priority 3 stops what an RDMA function sends at that priority and nothing else, a
// frame with quanta 0 lets it go on, and both are counted. Without flow control, and for other kinds of it, they are ignored.
func TestFlowControl_StopsOnePriority(t *testing.T) {
	p := newPaused(t, AdapterConfig{Speed: 1e6}) // the longest pause is 33 s
	set := func(f FlowControl) { p.a.check(p.a.host.SetFlowControl(p.a.adapter, f)) }
	send3, done3 := p.datagramsAt(3)
	send0, done0 := p.datagramsAt(0)
	counters := func() FlowCounters { return p.a.host.Counters()[p.a.adapter].Flow }
	goes := func(send func(), done *queue) {
		t.Helper()
		send()
		wantSuccess(t, done.next(), 0, ring.CQSend)
	}
	p.tell(pfc(1<<3, 0xffff))
	await.Eventually(t, "a pause is ignored", func() bool { return counters().Ignored == 1 && counters().Control == 1 })
	goes(send3, done3)

	set(FlowControl{Obeys: pause.Only(1<<3 | 1<<4)})
	p.tell(pfc(1<<3|1<<1, 0xffff))
	await.Eventually(t, "priority 3 is paused", func() bool { return p.a.flow().Paused == 1<<3 })
	send3()
	for range 100 {
		goes(send0, done0)
	}
	wantNone(t, done3)
	if c := counters(); c.Priority[3].Received != 1 || c.Priority[1].Received != 0 || c.Ignored != 2 || c.Priority[3].ReceivedTime == 0 {
		t.Errorf("%+v", c)
	}
	p.tell(pfc(1<<3, 0))
	wantSuccess(t, done3.next(), 0, ring.CQSend)
	if s := p.a.flow(); s.Paused != 0 || s.Refused != nil || s.Deaf != nil {
		t.Errorf("%+v", s)
	}

	set(FlowControl{Obeys: pause.Whole})
	p.tell((&eth.Pause{Quanta: [8]uint16{0xffff}}).Append(nil))
	await.Eventually(t, "everything is paused", func() bool { return p.a.flow().Paused == pause.All })
	send3()
	send0()
	wantNone(t, done3)
	wantNone(t, done0)
	set(FlowControl{}) // which ends it
	wantSuccess(t, done3.next(), 0, ring.CQSend)
	wantSuccess(t, done0.next(), 0, ring.CQSend)
	if c := counters(); c.Global.Received != 1 || c.Global.ReceivedTime == 0 {
		t.Errorf("%+v", c)
	}
}

// TestFlowControl_Refused: a port of sockets has no pauses, and says why.
func TestFlowControl_Refused(t *testing.T) {
	h := newHost(t, Config{})
	i := h.add(t, AdapterConfig{Addr: loopback.Addr()})
	wantCode(t, h.CheckFlowControl(i), command.Unsupported)
	if err := h.SetFlowControl(i, FlowControl{Obeys: pause.Whole}); err != nil {
		t.Error(err)
	}
	if s := h.Overview().Adapters[i].Flow; !errors.Is(s.Refused, &command.Error{Code: command.Unsupported}) || s.Obeys != (pause.Scope{}) {
		t.Errorf("%+v", s)
	}
}
