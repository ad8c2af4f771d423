package device

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestDisableWhileProgramsRun: disabling the adapter while programs run fails new requests, cancels waiting ones,
// flushes sends, releases the resources and marks the adapter as disabled (WinOF manual 4.11.2). Its peers get an
// event, and once enabled it works again.
func TestDisableWhileProgramsRun(t *testing.T) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{})
			p := c.a.p
			var flags []notify.Flags
			told := make(chan struct{}, 8)
			cancel := p.host.Subscribe(func(s notify.Change) {
				if s.Adapter == p.adapter {
					flags = append(flags, s.Flags)
					told <- struct{}{}
				}
			})
			buf, dst := p.buffer(64), c.b.p.buffer(64)
			c.a.postRecv(1, buf.sge(0, 64))
			c.a.postRecv(2, buf.sge(0, 64))
			waiting := make(chan error)
			idle := p.cq(4)
			go func() {
				_, err := p.c.WaitCQ(context.Background(), idle.q.Handle, idle.Sequence())
				waiting <- err
			}()
			_ = dst
			p.check(p.host.SetAdapterState(p.adapter, false))
			wantCode(t, <-waiting, command.Removed)
			_, err := p.c.AllocPD(bg, p.adapter)
			wantCode(t, err, command.Removed)
			_, err = p.c.QueryQP(bg, c.a.q.Handle)
			wantCode(t, err, command.Removed)
			wantCode(t, p.c.CMDisconnect(bg, c.idA), command.Removed)
			for i := range uint64(2) {
				if e := c.a.cq.next(); e.Status != ring.WRFlush || e.ID != i+1 {
					t.Errorf("completion of %d: %v, want %d flushed", e.ID, e.Status, i+1)
				}
			}
			p.event(command.EventDeviceRemoval)
			p.event(command.EventDeviceFatal)
			c.b.p.event(command.EventDisconnected)
			s := p.host.Snapshot().Adapters[p.adapter]
			if s.Enabled || s.Up || len(s.QPs) != 0 || s.Objects.MR != 0 || s.Info.RoCE != roceDisabled {
				t.Errorf("the disabled adapter still has objects, or counts as up: %+v", s)
			}

			// What is left is destroyed in the usual order; then everything is made anew.
			for _, o := range []struct {
				kind command.Kind
				h    command.Handle
			}{{command.KindCM, c.idA}, {command.KindQP, c.a.q.Handle}, {command.KindMemory, buf.mem.Handle},
				{command.KindCQ, c.a.cq.q.Handle}, {command.KindCQ, idle.q.Handle}, {command.KindPD, p.pd}} {
				if err := p.c.Destroy(bg, o.kind, o.h); err != nil {
					t.Errorf("destroy kind %d: %v", o.kind, err)
				}
			}
			p.check(p.host.SetAdapterState(p.adapter, true))
			p.event(command.EventPortActive)
			<-told
			<-told
			cancel()
			if want := []notify.Flags{notify.Down | notify.RDMADisabled, notify.RDMAEnabled | notify.Up}; !slices.Equal(flags, want) {
				t.Errorf("subscribers saw %v, want %v", flags, want)
			}
			p.pd, err = p.c.AllocPD(bg, p.adapter)
			p.check(err)
			again := connect(p.qp(command.CreateQP{}, p.cq(64)), c.b.p.qp(command.CreateQP{}, c.b.p.cq(64)))
			operations(t, again)
		})
	}
}

// TestCQOverflow: a CQ without room for a completion is reported: by an event, the error state of its QPs, the
// counter "CQ overflows", and a flag in its ring for those that wait on it.
func TestCQOverflow(t *testing.T) {
	n := networks[2]
	x, y := n.make(t, AdapterConfig{})
	small := x.cq(2)
	c := connect(x.qp(command.CreateQP{}, small), y.qp(command.CreateQP{}, y.cq(64)))
	buf := x.buffer(64)
	dst := y.buffer(64)
	wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
	wr.SGE[0] = buf.sge(0, 8)
	for range 5 {
		c.a.post(wr)
	}
	if e := x.event(command.EventCQError); e.Object != small.q.Handle {
		t.Errorf("CQ error of %#x, want %#x", e.Object, small.q.Handle)
	}
	x.event(command.EventQPFatal)
	if s := c.a.info().Attr.State; s != command.Err {
		t.Errorf("QP in state %d, want error", s)
	}
	if small.Flags()&ring.FlagError == 0 {
		t.Error("the ring does not say that it failed")
	}
	if v := counter(t, x, "CQ overflows"); v != 1 {
		t.Errorf("CQ overflows %d, want 1", v)
	}
	y.event(command.EventDisconnected)
}

func counter(t testing.TB, p *program, name string) uint64 {
	t.Helper()
	all, err := p.c.Counters(bg, p.adapter)
	p.check(err)
	found := -1
	for i := range all {
		if string(bytes.TrimRight(all[i].Name[:], "\x00")) == name {
			if found >= 0 {
				t.Errorf("counter %q exists twice", name)
			}
			found = i
		}
	}
	if found < 0 {
		t.Fatalf("no counter %q", name)
	}
	return all[found].Value
}

// TestCounterNames: every counter has a name of its own.
func TestCounterNames(t *testing.T) {
	p := memoryProgram(t, AdapterConfig{})
	all, err := p.c.Counters(bg, p.adapter)
	p.check(err)
	seen := map[[64]byte]bool{}
	for _, c := range all {
		if seen[c.Name] {
			t.Errorf("counter %q twice", bytes.TrimRight(c.Name[:], "\x00"))
		}
		seen[c.Name] = true
	}
}

// TestModeration: moderation holds an event back until a number of completions has come or a time since the first has
// passed. The completions themselves are never held back.
func TestModeration(t *testing.T) {
	x, y := networks[2].make(t, AdapterConfig{})
	cq := x.cq(64)
	c := connect(x.qp(command.CreateQP{}, cq), y.qp(command.CreateQP{}, y.cq(64)))
	buf, dst := x.buffer(64), y.buffer(64)
	wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
	wr.SGE[0] = buf.sge(0, 8)

	x.check(x.c.ModerateCQ(bg, command.ModerateCQ{CQ: cq.q.Handle, Count: 3, Microseconds: 65535}))
	var seq uint32
	for again := true; again; {
		again = false
		seq = cq.Sequence()
		cq.Arm(ring.ArmAny)
		first := time.Now()
		for i := range 3 {
			if s := cq.sequence(); s != seq {
				if again = time.Since(first) > 65*time.Millisecond; !again {
					t.Fatalf("event after %d completions, want 3", i)
				}
			}
			c.a.post(wr)
			wantSuccess(t, cq.next(), 0, ring.CQWrite)
		}
		if again { // on a busy machine the time ran out first
			x.check(x.c.ModerateCQ(bg, command.ModerateCQ{CQ: cq.q.Handle, Count: 3, Microseconds: 65535}))
		}
	}
	if s := cq.sequence(); s != seq+1 {
		t.Fatalf("sequence %d after 3 completions, want %d", s, seq+1)
	}

	x.check(x.c.ModerateCQ(bg, command.ModerateCQ{CQ: cq.q.Handle, Count: 1000, Microseconds: 500}))
	cq.Arm(ring.ArmAny)
	c.a.post(wr)
	ctx, cancel := context.WithTimeout(bg, await.Limit)
	defer cancel()
	if _, err := x.c.WaitCQ(ctx, cq.q.Handle, seq+1); err != nil {
		t.Fatalf("no event after the time: %v", err)
	}
	x.check(x.c.ModerateCQ(bg, command.ModerateCQ{CQ: cq.q.Handle}))
}

// TestResizeCQ: resizing a CQ loses no completion and no event.
func TestResizeCQ(t *testing.T) {
	x, y := networks[2].make(t, AdapterConfig{})
	cq := x.cq(4)
	c := connect(x.qp(command.CreateQP{}, cq), y.qp(command.CreateQP{}, y.cq(64)))
	buf, dst := x.buffer(64), y.buffer(64)
	wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
	wr.SGE[0] = buf.sge(0, 8)
	id := uint64(0)
	post := func(n int) {
		for range n {
			wr.ID = id
			c.a.post(wr)
			id++
		}
	}
	post(3)
	for n, _ := unpolled(x, cq); n < 3; n, _ = unpolled(x, cq) {
		x.c.Poll(1)
	}
	q, err := x.c.ResizeCQ(bg, cq.q.Handle, 32)
	x.check(err)
	post(20)
	for i := range uint64(3) {
		wantSuccess(t, cq.next(), i, ring.CQWrite)
	}
	if cq.Flags()&ring.FlagMoved == 0 {
		t.Fatal("the old ring does not say that the CQ moved")
	}
	cq = x.open(q)
	for i := uint64(3); i < id; i++ {
		wantSuccess(t, cq.next(), i, ring.CQWrite)
	}
}

// TestResizeCQBelowWhatItHolds: a CQ is not resized below the number of completions in it, those of requests that were
// posted before included (IBA 11.2.8.3).
func TestResizeCQBelowWhatItHolds(t *testing.T) {
	x, y := networks[2].make(t, AdapterConfig{})
	cq := x.cq(8)
	c := connect(x.qp(command.CreateQP{}, cq), y.qp(command.CreateQP{}, y.cq(64)))
	x.check(x.c.ModifyQP(bg, command.ModifyQP{QP: c.a.q.Handle, Mask: command.MaskState, State: command.Err}))
	for i := range uint64(6) {
		x.check(c.a.recv.Post(&ring.RecvWR{ID: i}))
	}
	x.c.Doorbell(c.a.q.Handle)
	if _, err := x.c.ResizeCQ(bg, cq.q.Handle, 5); !errors.Is(err, &command.Error{Code: command.Busy}) {
		t.Fatalf("below the 6 completions: %v, want busy", err)
	}
	for i := range uint64(6) {
		if e := cq.next(); e.ID != i || e.Status != ring.WRFlush {
			t.Fatalf("completion %d: %+v", i, e)
		}
	}
	q, err := x.c.ResizeCQ(bg, cq.q.Handle, 1)
	x.check(err)
	x.check(c.a.recv.Post(&ring.RecvWR{ID: 7}))
	x.c.Doorbell(c.a.q.Handle)
	if e := x.open(q).next(); e.ID != 7 {
		t.Errorf("in the new ring: %+v", e)
	}
}

func unpolled(p *program, q *queue) (int, error) {
	p.host.lock()
	defer p.host.unlock()
	return p.c.cqs.Get(q.q.Handle).ring.Unpolled()
}

// TestSRQLimit: an SRQ raises one event when fewer receives than its limit are left (IBA 10.2.9.2), and another only
// after the limit was set again.
func TestSRQLimit(t *testing.T) {
	x, y := networks[2].make(t, AdapterConfig{})
	s, err := y.c.CreateSRQ(bg, command.CreateSRQ{PD: y.pd, Depth: 8, MaxSGE: 1, Limit: 3})
	y.check(err)
	recv, err := ring.OpenRecv(y.ringAt(s.Ring), ring.Geometry{Entries: int(s.Depth), Stride: int(s.Stride)})
	y.check(err)
	c := connect(x.qp(command.CreateQP{}, x.cq(64)), y.qp(command.CreateQP{SRQ: s.Handle}, y.cq(64)))
	src, dst := x.buffer(64), y.buffer(64)
	for i := range uint64(4) {
		wr := ring.RecvWR{ID: i, NumSGE: 1}
		wr.SGE[0] = dst.sge(0, 64)
		y.check(recv.Post(&wr))
	}
	c.a.postSend(0, ring.OpSend, src.sge(0, 8))
	wantSuccess(t, c.b.cq.next(), 0, ring.CQRecv)
	if i, err := y.c.QuerySRQ(bg, s.Handle); err != nil || i.Limit != 3 || i.Posted != 3 {
		t.Fatalf("%+v, %v; want 3 posted and the limit armed", i, err)
	}
	c.a.postSend(1, ring.OpSend, src.sge(0, 8))
	if e := y.event(command.EventSRQLimit); e.Object != s.Handle {
		t.Errorf("limit event of %#x, want %#x", e.Object, s.Handle)
	}
	if i, _ := y.c.QuerySRQ(bg, s.Handle); i.Limit != 0 {
		t.Errorf("limit %d after its event, want 0", i.Limit)
	}
	y.check(y.c.ModifySRQ(bg, command.ModifySRQ{SRQ: s.Handle, Limit: 5}))
	y.event(command.EventSRQLimit)
	wantCode(t, y.c.ModifySRQ(bg, command.ModifySRQ{SRQ: s.Handle, Limit: 9}), command.Invalid)
}

// TestConnectRefused: a request to a port without a listener is rejected at once (REJ 8), one to a UDP port without
// an adapter is refused by the ICMP error, and one to an address that does not answer times out.
func TestConnectRefused(t *testing.T) {
	x, y := overUDP(false)(t, AdapterConfig{})
	try := func(to netip.Addr, timeout uint32) command.Event {
		id, err := x.c.CMCreate(bg, command.CMCreate{Adapter: x.adapter, Space: command.TCP})
		x.check(err)
		q := x.qp(command.CreateQP{}, x.cq(16))
		x.dial(command.CMConnect{ID: id, QP: q.q.Handle, Remote: command.Endpoint{Addr: command.AddrFrom(to), Port: 7}, Param: usualParam,
			Timeout: timeout})
		deadline := time.After(await.Limit)
		for {
			select {
			case e := <-x.events:
				if e.Object == id {
					return e
				}
			case <-deadline:
				t.Fatal("no answer")
			}
		}
	}
	if e := try(y.addr, 0); e.Type != command.EventRejected || e.Status != 8 {
		t.Errorf("no listener: event %d, status %d; want rejected (%d), REJ 8", e.Type, e.Status, command.EventRejected)
	}
	if e := try(loopback.Addr(), 0); e.Type != command.EventUnreachable || e.Status != uint32(command.Refused) {
		t.Errorf("no adapter: event %d, status %v; want unreachable, refused", e.Type, command.Code(e.Status))
	}
	y.check(y.host.SetImpairment(y.adapter, impair.Impairment{Loss: 1}))
	if e := try(y.addr, 200); e.Type != command.EventUnreachable || e.Status != uint32(command.TimedOut) {
		t.Errorf("silence: event %d, status %v; want unreachable, timed out", e.Type, command.Code(e.Status))
	}
}

// TestImpairmentWhileTrafficRuns: an impairment set while a connection runs moves it to the wire, and no message is
// lost.
func TestImpairmentWhileTrafficRuns(t *testing.T) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			c := pairs(t, n, AdapterConfig{})
			operations(t, c)
			for _, p := range []*program{c.a.p, c.b.p} {
				p.check(p.host.SetImpairment(p.adapter, impair.Impairment{Loss: 0.02, Reorder: 0.02, Duplicate: 0.02, Corrupt: 0.02,
					Seed: 7}))
			}
			if path := c.a.info().Path; path != 1 {
				t.Errorf("path %d under an impairment, want 1 (wire)", path)
			}
			for range 3 {
				operations(t, c)
			}
			s := c.a.p.host.Snapshot().Adapters[c.a.p.adapter]
			if s.Impairment == "" || s.Link.ImpairedLost+s.Link.ImpairedCorrupted == 0 {
				t.Errorf("status shows impairment %q, %d packets lost", s.Impairment, s.Link.ImpairedLost)
			}
			for _, p := range []*program{c.a.p, c.b.p} {
				p.check(p.host.SetImpairment(p.adapter, impair.Impairment{}))
			}
			operations(t, c)
		})
	}
}

// TestAddressInUse: two adapters cannot have one address; the error of the second says so.
func TestAddressInUse(t *testing.T) {
	h, g := newHost(t, Config{}), newHost(t, Config{})
	addr := loopback.Addr()
	h.add(t, AdapterConfig{Addr: addr})
	for _, o := range []*Host{h, g} {
		_, err := o.AddAdapter(AdapterConfig{Addr: addr, Name: "other"})
		var ce *command.Error
		if !errors.As(err, &ce) || ce.Code != command.InUse || ce.Detail == "" {
			t.Errorf("second adapter at %v: %v, want in use", addr, err)
		}
	}
}

// TestRetriesExceeded: with a peer that has fallen silent the first request ends with "transport retry counter
// exceeded", the rest is flushed, and the connection is over.
func TestRetriesExceeded(t *testing.T) {
	x, y := overMemory(true)(t, AdapterConfig{Path: PathWire})
	usual := usualParam
	usualParam.RetryCount = 1
	c := connect(x.idleQP(), y.idleQP())
	usualParam = usual
	src, dst := x.buffer(64), y.buffer(64)
	y.check(y.host.SetImpairment(y.adapter, impair.Impairment{Loss: 1}))
	for i := range uint64(3) {
		wr := ring.SendWR{ID: i, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
		wr.SGE[0] = src.sge(0, 8)
		c.a.post(wr)
	}
	for i, want := range []ring.Status{ring.RetryExceeded, ring.WRFlush, ring.WRFlush} {
		if e := c.a.cq.next(); e.Status != want || e.ID != uint64(i) {
			t.Errorf("completion of %d: %v, want %v of %d", e.ID, e.Status, want, i)
		}
	}
	x.event(command.EventDisconnected)
	if v := counter(t, x, "RDMA Connection Errors"); v != 1 {
		t.Errorf("RDMA Connection Errors %d, want 1", v)
	}
}
