package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/race"
)

// TestManyConnections: many connections between two adapters carry traffic. When the client's program ends, all of
// them are over and the peer gets an event of each.
func TestManyConnections(t *testing.T) {
	n := 2000
	if race.Detector {
		n = 200
	}
	x, y := networks[2].make(t, AdapterConfig{})
	cqX, cqY := x.cq(uint32(4*n)), y.cq(uint32(4*n))
	small := command.CreateQP{SendDepth: 2, RecvDepth: 2, SendSGE: 1, RecvSGE: 1}
	buf, dst := x.buffer(64), y.buffer(64)
	l, err := y.c.CMCreate(bg, command.CMCreate{Adapter: y.adapter, Space: command.TCP})
	y.check(err)
	at, err := y.c.CMBind(bg, l, command.Endpoint{Addr: command.AddrFrom(y.addr)})
	y.check(err)
	y.check(y.c.CMListen(bg, l, uint32(n)))
	senders := map[command.Handle]*pair{}
	for range n {
		q := x.qp(small, cqX)
		id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: x.adapter, Space: command.TCP})
		x.check(err)
		senders[id] = q
		x.dial(command.CMConnect{ID: id, QP: q.q.Handle, Remote: at, Param: usualParam})
		e := y.event(command.EventConnectRequest)
		p := y.qp(small, cqY)
		p.postRecv(1, dst.sge(0, 64))
		y.check(y.c.CMAccept(bg, command.CMAccept{ID: e.NewID, QP: p.q.Handle, Param: usualParam}))
		x.event(command.EventConnectResponse)
		x.check(x.c.CMEstablish(bg, id))
	}
	for _, q := range senders {
		q.postSend(1, ring.OpSend, buf.sge(0, 8))
	}
	for range n {
		wantSuccess(t, cqX.next(), 1, ring.CQSend)
		wantSuccess(t, cqY.next(), 1, ring.CQRecv)
	}
	if err := x.c.Close(); err != nil {
		t.Fatal(err)
	}
	for range n {
		y.event(command.EventDisconnected)
	}
	if o := x.host.Snapshot().Adapters[x.adapter].Objects; o != (ObjectCounts{}) {
		t.Errorf("objects left: %+v", o)
	}
}

// TestLocalPathOnly: an adapter whose path is set to local connects within its host only.
func TestLocalPathOnly(t *testing.T) {
	c := pairs(t, networks[1], AdapterConfig{Path: PathLocal})
	if p := c.a.info().Path; p != 2 {
		t.Errorf("path %d, want 2 (local)", p)
	}
	x, y := networks[0].make(t, AdapterConfig{Path: PathLocal})
	id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: x.adapter, Space: command.TCP})
	x.check(err)
	remote := command.Endpoint{Addr: command.AddrFrom(y.addr), Port: 9}
	_, err = x.c.CMConnect(bg, command.CMConnect{ID: id, Remote: remote, Param: command.ConnParam{QPN: 2}})
	wantCode(t, err, command.HostUnreachable)
}

// TestLocalPathCompletesBothEndsInOneStep: one step of the loop delivers the completions of both ends of a message on
// the local path, also to an adapter that had its turn earlier in that step, so that the loop may sleep after it.
func TestLocalPathCompletesBothEndsInOneStep(t *testing.T) {
	c := pairs(t, networks[1], AdapterConfig{Path: PathLocal})
	h := c.a.p.host
	for name, ends := range map[string][2]*pair{"first to second": {c.a, c.b}, "second to first": {c.b, c.a}} {
		from, to := ends[0], ends[1]
		to.postRecv(7)
		wr := ring.SendWR{ID: 8, Op: ring.OpSend, Flags: ring.Signaled}
		if err := from.send.Post(&wr); err != nil {
			t.Fatal(err)
		}
		h.lock()
		from.p.c.qps.Get(from.q.Handle).doorbell()
		h.step()
		for _, a := range h.adapters {
			if a.engine.Undelivered() {
				t.Errorf("%s: %s has completions left after the step", name, a.name)
			}
		}
		sent, received := from.cq.Empty(), to.cq.Empty()
		h.unlock()
		if sent || received {
			t.Errorf("%s: completion of the send missing: %v, of the receive: %v", name, sent, received)
		}
		from.cq.next()
		to.cq.next()
	}
}
