package device

import (
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// setLink makes the wire of a program's port come or go, as the system tells it.
func (p *program) setLink(up bool) {
	p.host.lock()
	defer p.host.finish()
	a, ask := p.host.adapters[p.adapter], p.host.wireOf
	p.host.wireOf = func(c *AdapterConfig) (w systemWire, ok bool) {
		if w, ok = ask(c); c.Addr == a.cfg.Addr {
			w.Up = up
		}
		return w, ok
	}
	a.setWire(link.State{Up: up})
}

// onOneHost returns two programs at two ports of one host, whose states only the test changes.
func onOneHost(t *testing.T, path PathPolicy) (a, b *program) {
	h := newHost(t, Config{Seed: 1, GIDInterval: -1})
	at := func() *program { return newProgram(t, h, h.add(t, AdapterConfig{Addr: loopback.Addr(), Path: path})) }
	return at(), at()
}

// impatient are the parameters of a connection that soon gives up.
var impatient = command.ConnParam{ResponderResources: 4, InitiatorDepth: 4, FlowControl: 1, RetryCount: 1, RNRRetry: 7}

// TestPortDown_RetryExceeded: what is sent over a port that is down does not arrive, whichever of the two ends it is and on whatever
// path the connection was; the queue pair tries again and ends with retry exceeded (IBA 9.9.2.4.2).
func TestPortDown_RetryExceeded(t *testing.T) {
	for _, path := range []PathPolicy{PathAuto, PathWire} {
		for _, down := range []string{"requester", "responder", "itself"} {
			t.Run(path.String()+", "+down, func(t *testing.T) {
				t.Parallel()
				a, b := onOneHost(t, path)
				which := a
				switch down {
				case "responder":
					which = b
				case "itself": // a port does not loop back either
					b = a
				}
				c := connectWith(a.idleQP(), b.idleQP(), impatient)
				if !c.a.completes() {
					t.Fatal("a write before does not complete")
				}
				which.setLink(false)
				from, to := a.buffer(64), b.buffer(64)
				fill(from.b, 1)
				wr := ring.SendWR{ID: 9, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: to.addr(0), RKey: to.mem.RKey}
				wr.SGE[0] = from.sge(0, 64)
				c.a.post(wr)
				if e := c.a.cq.next(); e.ID != 9 || e.Status != ring.RetryExceeded {
					t.Errorf("completion %+v, want retry exceeded", e)
				}
				if string(to.b[:64]) != string(make([]byte, 64)) {
					t.Error("the data has arrived")
				}
			})
		}
	}
}

// completes writes without data and reports whether that succeeds.
func (q *pair) completes() bool {
	q.post(ring.SendWR{ID: 1, Op: ring.OpWrite, Flags: ring.Signaled})
	return q.cq.next().Status == ring.Success
}

// TestPortDown_Returns: a connection goes on when the port comes back before the retries are used up, in both directions, and takes
// its path again.
func TestPortDown_Returns(t *testing.T) {
	a, b := onOneHost(t, PathAuto)
	c := connect(a.idleQP(), b.idleQP())
	onPath := func(want uint32) func() bool { return func() bool { return c.a.info().Path == want } }
	await.Eventually(t, "the local path", onPath(2))
	for _, p := range []*program{a, b} {
		p.setLink(false)
		if got := c.a.info().Path; got != 1 {
			t.Fatalf("path %d while the port is down, want 1, the wire", got)
		}
		for _, q := range []*pair{c.a, c.b} {
			q.post(ring.SendWR{ID: 2, Op: ring.OpWrite, Flags: ring.Signaled})
		}
		time.Sleep(20 * time.Millisecond) // what was sent is lost, whenever this ends
		p.setLink(true)
		for _, q := range []*pair{c.a, c.b} {
			wantSuccess(t, q.cq.next(), 2, ring.CQWrite)
		}
		await.Eventually(t, "the local path again", onPath(2))
	}
}

// TestPortDown_Delegated: a connection that the programs carry out themselves is taken back when a port at either end goes down,
// and delegated again when it is back.
func TestPortDown_Delegated(t *testing.T) {
	l := delegate(t)
	for _, p := range []*program{l.a.p, l.b.p} {
		p.setLink(false)
		l.path(1)
		p.setLink(true)
		// By the local path; a doorbell of before may already have it delegated again.
		await.Eventually(t, "a path without packets", func() bool { return l.c.a.info().Path > 1 })
		l.a.p.c.Doorbell(l.c.a.q.Handle)
		l.path(3)
	}
}

// TestPortDown_Connections: from a port that is down nobody is reached, which is said at once, with an id that is bound or not; to
// one the request is lost, and answered when the port is back.
func TestPortDown_Connections(t *testing.T) {
	a, b := onOneHost(t, PathAuto)
	listener, err := b.c.CMCreate(bg, command.CMCreate{Adapter: b.adapter, Space: command.TCP})
	b.check(err)
	at, err := b.c.CMBind(bg, listener, command.Endpoint{Addr: command.AddrFrom(b.addr)})
	b.check(err)
	b.check(b.c.CMListen(bg, listener, 0))
	request := func() (command.Handle, error) {
		id, err := a.c.CMCreate(bg, command.CMCreate{Adapter: a.adapter, Space: command.TCP})
		a.check(err)
		_, err = a.c.CMConnect(bg, command.CMConnect{ID: id, QP: a.idleQP().q.Handle, Remote: at, Param: usualParam})
		return id, err
	}
	a.setLink(false)
	id, err := request()
	if codeOf(err) != command.NetworkUnreachable {
		t.Errorf("connecting from a port that is down: %v", err)
	}
	a.check(a.c.CMResolveAddr(bg, command.CMResolveAddr{ID: id, Remote: at, Timeout: 1000}))
	if e := a.event(command.EventAddressError); e.Status != uint32(command.NetworkUnreachable) {
		t.Errorf("resolving from a port that is down: %+v", e)
	}
	a.setLink(true)
	b.setLink(false)
	if _, err = request(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond) // the request is lost, whenever this ends
	b.setLink(true)
	b.event(command.EventConnectRequest)
}

// TestPortUnknown: subscribers are told once that the interface of a port is gone, after they are told that the port is down, and
// again when it goes another time.
func TestPortUnknown(t *testing.T) {
	a, _ := onOneHost(t, PathAuto)
	var told []notify.Flags
	cancel := a.host.Subscribe(func(c notify.Change) {
		if c.Adapter == a.adapter {
			told = append(told, c.Flags)
		}
	})
	there := systemWire{State: link.State{Up: true}, mtu: 65536}
	for _, w := range []systemWire{there, {gone: true}, {gone: true}, there, {gone: true}} {
		a.host.lock()
		a.host.adapters[a.adapter].heed(w)
		a.host.finish()
	}
	a.host.Settle()
	cancel()
	want := []notify.Flags{notify.Down, notify.Unknown, notify.Up, notify.Down, notify.Unknown}
	if !slices.Equal(told, want) {
		t.Errorf("subscribers are told %v, want %v", told, want)
	}
}
