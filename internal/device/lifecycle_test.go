package device

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

func wantCode(t testing.TB, err error, want command.Code) {
	t.Helper()
	if !errors.Is(err, &command.Error{Code: want}) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// memoryProgram returns a program on an adapter at an in-memory network.
func memoryProgram(t testing.TB, cfg AdapterConfig) *program {
	a, _ := overMemory(true)(t, cfg)
	return a
}

// TestDestroyInUse: destroying an object that others use is refused with Busy. When they are gone it can be
// destroyed, once.
func TestDestroyInUse(t *testing.T) {
	p := memoryProgram(t, AdapterConfig{})
	cq := p.cq(16)
	srq, err := p.c.CreateSRQ(bg, command.CreateSRQ{PD: p.pd, Depth: 4, MaxSGE: 1})
	p.check(err)
	buf := p.buffer(64)
	mw, err := p.c.AllocWindow(bg, p.pd, 1)
	p.check(err)
	q := p.qp(command.CreateQP{SRQ: srq.Handle}, cq)
	for _, o := range []struct {
		name string
		kind command.Kind
		h    command.Handle
	}{{"PD", command.KindPD, p.pd}, {"CQ", command.KindCQ, cq.q.Handle}, {"SRQ", command.KindSRQ, srq.Handle}} {
		if err := p.c.Destroy(bg, o.kind, o.h); !errors.Is(err, &command.Error{Code: command.Busy}) {
			t.Errorf("destroy %s in use: %v, want busy", o.name, err)
		}
	}
	for _, o := range []struct {
		name string
		kind command.Kind
		h    command.Handle
	}{
		{"QP", command.KindQP, q.q.Handle}, {"SRQ", command.KindSRQ, srq.Handle}, {"CQ", command.KindCQ, cq.q.Handle},
		{"window", command.KindWindow, mw.Handle}, {"region", command.KindMemory, buf.mem.Handle}, {"PD", command.KindPD, p.pd},
	} {
		if err := p.c.Destroy(bg, o.kind, o.h); err != nil {
			t.Errorf("destroy %s: %v", o.name, err)
		}
		if err := p.c.Destroy(bg, o.kind, o.h); !errors.Is(err, &command.Error{Code: command.NotFound}) {
			t.Errorf("destroy %s again: %v, want not found", o.name, err)
		}
	}
	if o := p.host.Snapshot().Adapters[p.adapter].Objects; o != (ObjectCounts{}) {
		t.Errorf("objects left: %+v", o)
	}
}

// TestObjectsInEveryOrder: objects may be made and destroyed in any order. The adapter's counts are always those of
// the live objects, and a closed client leaves none.
func TestObjectsInEveryOrder(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	a := h.add(t, AdapterConfig{Addr: loopback.Addr()})
	rapid.Check(t, func(t *rapid.T) {
		c, err := h.NewClient(ClientConfig{Name: "rapid"})
		if err != nil {
			t.Fatal(err)
		}
		live := map[command.Kind][]command.Handle{}
		pick := func(k command.Kind) command.Handle {
			if len(live[k]) == 0 {
				return 0
			}
			return rapid.SampledFrom(live[k]).Draw(t, "object")
		}
		made := func(k command.Kind, h command.Handle, err error) {
			if err == nil {
				live[k] = append(live[k], h)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch k := command.Kind(rapid.IntRange(0, 8).Draw(t, "kind")); k {
			case command.KindPD:
				o, err := c.AllocPD(bg, a)
				made(k, o, err)
			case command.KindWindow:
				o, err := c.AllocWindow(bg, pick(command.KindPD), 2)
				made(k, o.Handle, err)
			case command.KindCQ:
				o, err := c.CreateCQ(bg, command.CreateCQ{Adapter: a, Depth: 8})
				made(k, o.Handle, err)
			case command.KindSRQ:
				o, err := c.CreateSRQ(bg, command.CreateSRQ{PD: pick(command.KindPD), Depth: 8, MaxSGE: 1})
				made(k, o.Handle, err)
			case command.KindQP:
				o, err := c.CreateQP(bg, command.CreateQP{PD: pick(command.KindPD),
					Type:   command.QPType(rapid.IntRange(1, 3).Draw(t, "type")),
					SendCQ: pick(command.KindCQ), RecvCQ: pick(command.KindCQ), SRQ: pick(command.KindSRQ)})
				made(k, o.Handle, err)
			case command.KindCM:
				o, err := c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
				made(k, o, err)
				if err == nil && rapid.Bool().Draw(t, "listen") {
					if err := c.CMListen(bg, o, 1); err != nil {
						t.Fatal(err)
					}
				}
			default:
				k := command.Kind(rapid.IntRange(1, 8).Draw(t, "destroyed kind"))
				o := pick(k)
				err := c.Destroy(bg, k, o)
				switch {
				case o == 0:
					if !errors.Is(err, &command.Error{Code: command.NotFound}) {
						t.Fatalf("destroy handle 0: error %v, want not found", err)
					}
				case err == nil:
					for i, h := range live[k] {
						if h == o {
							live[k] = append(live[k][:i], live[k][i+1:]...)
							break
						}
					}
				case !errors.Is(err, &command.Error{Code: command.Busy}):
					t.Fatalf("destroy kind %d: error %v, want success or busy", k, err)
				}
			}
			n := h.Snapshot().Adapters[0].Objects
			if n.PD != len(live[command.KindPD]) || n.MW != len(live[command.KindWindow]) || n.CQ != len(live[command.KindCQ]) ||
				n.SRQ != len(live[command.KindSRQ]) || n.QP != len(live[command.KindQP]) {
				t.Fatalf("adapter counts %+v, there are %v", n, live)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if n := h.Snapshot().Adapters[0].Objects; n != (ObjectCounts{}) {
			t.Fatalf("objects left by a closed client: %+v", n)
		}
	})
}

// TestWrongValuesAreNamed: the error for an invalid value names the field, the value and what is allowed.
func TestWrongValuesAreNamed(t *testing.T) {
	p := memoryProgram(t, AdapterConfig{})
	cq := p.cq(4)
	for name, do := range map[string]func() error{
		"Depth is 0":    func() error { _, err := p.c.CreateCQ(bg, command.CreateCQ{}); return err },
		"adapter 99":    func() error { _, err := p.c.AllocPD(bg, 99); return err },
		"Access is 0x2": func() error { return p.register(command.RegisterMemory{PD: p.pd, Access: 2, Base: 4096, Length: 1}) },
		"Length is 0":   func() error { return p.register(command.RegisterMemory{PD: p.pd, Base: 4096}) },
		"Segment is 7":  func() error { return p.register(command.RegisterMemory{PD: p.pd, Base: 4096, Length: 1, Segment: 7}) },
		"type is 3":     func() error { _, err := p.c.AllocWindow(bg, p.pd, 3); return err },
		"Type is 9":     func() error { _, err := p.c.CreateQP(bg, command.CreateQP{PD: p.pd, Type: 9}); return err },
		"Limit is 9":    func() error { _, err := p.c.CreateSRQ(bg, command.CreateSRQ{PD: p.pd, Depth: 4, Limit: 9}); return err },
		"SL is 8": func() error {
			_, err := p.c.CreateAH(bg, command.CreateAH{PD: p.pd, AV: command.AddressVector{Addr: command.AddrFrom(p.addr), SL: 8}})
			return err
		},
		"Space is 0x1": func() error { _, err := p.c.CMCreate(bg, command.CMCreate{Space: 1}); return err },
		"Channel is 1": func() error { _, err := p.c.CreateCQ(bg, command.CreateCQ{Depth: 1, Channel: 1}); return err },
		"SendDepth is 99999": func() error {
			_, err := p.c.CreateQP(bg, command.CreateQP{PD: p.pd, Type: 1, SendCQ: cq.q.Handle, RecvCQ: cq.q.Handle, SendDepth: 99999})
			return err
		},
	} {
		err := do()
		var ce *command.Error
		if !errors.As(err, &ce) || len(ce.Detail) < len(name) || ce.Detail[:len(name)] != name {
			t.Errorf("error %v, want %q and what is allowed", err, name)
		}
	}
}

func (p *program) register(r command.RegisterMemory) error {
	_, err := p.c.RegisterMemory(bg, r)
	return err
}

// TestDisconnectFlushes: a connection that one side ends is over at both: both QPs are in the error state, their
// receives are flushed in order, and both programs get an event.
func TestDisconnectFlushes(t *testing.T) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{})
			bufA, bufB := c.a.p.buffer(64), c.b.p.buffer(64)
			for i := range uint64(3) {
				c.a.postRecv(i, bufA.sge(0, 64))
				c.b.postRecv(i, bufB.sge(0, 64))
			}
			c.a.p.check(c.a.p.c.CMDisconnect(bg, c.idA))
			c.b.p.event(command.EventDisconnected)
			c.a.p.event(command.EventDisconnected)
			for _, q := range []*pair{c.a, c.b} {
				for i := range uint64(3) {
					if e := q.cq.next(); e.Status != ring.WRFlush || e.ID != i {
						t.Errorf("completion of %d: %v, want %d flushed", e.ID, e.Status, i)
					}
				}
				if s := q.info().Attr.State; s != command.Err {
					t.Errorf("QP in state %d, want error", s)
				}
			}
		})
	}
}

// TestCloseWhileTrafficRuns: a program that ends while its peer sends to it costs the peer its connection and nothing
// else.
func TestCloseWhileTrafficRuns(t *testing.T) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{})
			src, dst := c.a.p.buffer(1<<20), c.b.p.buffer(1<<20)
			write := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
			write.SGE[0] = src.sge(0, 1<<20)
			for range 8 {
				c.a.post(write)
			}
			wantSuccess(t, c.a.cq.next(), 0, ring.CQWrite)
			if err := c.b.p.c.Close(); err != nil {
				t.Fatal(err)
			}
			flushed := false
			for range 7 {
				if e := c.a.cq.next(); e.Status != ring.Success {
					flushed = true
				} else if flushed {
					t.Error("a request succeeded after one that failed")
				}
			}
			c.a.p.event(command.EventDisconnected)
		})
	}
}

// TestWaitEnds: WaitCQ ends when its context does and when its CQ is destroyed.
func TestWaitEnds(t *testing.T) {
	p := memoryProgram(t, AdapterConfig{})
	cq, other := p.cq(4), p.cq(4)
	ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
	defer cancel()
	_, err := p.c.WaitCQ(ctx, cq.q.Handle, cq.Sequence())
	wantCode(t, err, command.TimedOut)
	done := make(chan error, 2)
	for _, q := range []*queue{cq, other} {
		seq := q.Sequence()
		go func() { _, err := p.c.WaitCQ(bg, q.q.Handle, seq); done <- err }()
	}
	await.Eventually(t, "both wait", func() bool { return p.host.sleep.roles.Waiters() == 2 })
	p.check(p.c.Destroy(bg, command.KindCQ, cq.q.Handle))
	wantCode(t, <-done, command.NotFound)
	p.check(p.c.Destroy(bg, command.KindCQ, other.q.Handle))
	wantCode(t, <-done, command.NotFound)
}

// TestFlushWhileConnecting: a program that moves its QP to the error state while it connects gets an event that the
// QP's state does not allow the connection.
func TestFlushWhileConnecting(t *testing.T) {
	x, y := networks[2].make(t, AdapterConfig{})
	tiny := command.CreateQP{SendDepth: 2, RecvDepth: 2, SendSGE: 1, RecvSGE: 1}
	l, err := y.c.CMCreate(bg, command.CMCreate{Adapter: y.adapter, Space: command.TCP})
	y.check(err)
	at, err := y.c.CMBind(bg, l, command.Endpoint{Addr: command.AddrFrom(y.addr)})
	y.check(err)
	y.check(y.c.CMListen(bg, l, 1))
	q := x.qp(tiny, x.cq(8))
	id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: x.adapter, Space: command.TCP})
	x.check(err)
	x.dial(command.CMConnect{ID: id, QP: q.q.Handle, Remote: at, Param: usualParam})
	e := y.event(command.EventConnectRequest)
	x.check(x.c.ModifyQP(bg, command.ModifyQP{QP: q.q.Handle, Mask: command.MaskState, State: command.Err}))
	y.check(y.c.CMAccept(bg, command.CMAccept{ID: e.NewID, QP: y.qp(tiny, y.cq(8)).q.Handle, Param: usualParam}))
	if e := x.event(command.EventConnectError); e.Status != uint32(command.State) {
		t.Errorf("status %d, want %d (State)", e.Status, command.State)
	}
}

// TestUnreadEventsOfClosedProgram: when a program ends, its unread events are not searched once for each of its ids,
// because with thousands of connections that would hold up the other programs.
func TestUnreadEventsOfClosedProgram(t *testing.T) {
	h := newHost(t, Config{Seed: 1})
	h.add(t, AdapterConfig{Addr: loopback.Addr()})
	c, err := h.NewClient(ClientConfig{}) // and nobody reads its events
	if err != nil {
		t.Fatal(err)
	}
	const ids = 10
	for range ids {
		id, err := c.CMCreate(bg, command.CMCreate{Space: command.TCP})
		if err != nil {
			t.Fatal(err)
		}
		h.lock()
		c.event(command.Event{Type: command.EventDisconnected, Object: id})
		h.unlock()
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _ := c.events.Peek(0); n != ids {
		t.Errorf("%d of %d events are left, want all: they were searched", n, ids)
	}
	if n := c.cms.Live(); n != 0 {
		t.Errorf("%d ids are left", n)
	}
}
