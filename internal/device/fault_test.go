package device

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/healing"
	"github.com/softvpi/softvpi/internal/link/memlink"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// fourPorts returns programs at four adapters of one host, whose breakdowns are told.
func fourPorts(t *testing.T, path PathPolicy) (p [4]*program, broken chan Breakdown) {
	broken = make(chan Breakdown, 8)
	h := newHost(t, Config{Seed: 1, Broken: func(b Breakdown) { broken <- b }})
	sw := memlink.NewSwitch()
	for i := range p {
		c := AdapterConfig{Addr: loopback.Addr(), Path: path}
		l, err := sw.Port(memlink.PortConfig{Addr: c.Addr, Notify: h.Wake})
		if err != nil {
			t.Fatal(err)
		}
		c.Link = l
		p[i] = newProgram(t, h, h.add(t, c))
	}
	return p, broken
}

func connectedPair(a, b *program) *connected {
	return connect(a.qp(command.CreateQP{}, a.cq(64)), b.qp(command.CreateQP{}, b.cq(64)))
}

// stuck waits until the reading of a sensor waits without progress for some time, or has errors; those that are not named must not, but
// the health counter's, since the loop may wait for a processor.
func stuck(t *testing.T, p *program, want healing.Sensor) {
	t.Helper()
	var all healing.Sensor
	var before []healing.Reading
	await.Eventually(t, "a part that does not get on", func() bool {
		now, err := p.host.Readings(p.adapter, nil)
		p.check(err)
		for _, r := range now {
			for _, b := range before {
				if b.Sensor == r.Sensor && b.Part == r.Part && r.Waits && b.Waits && r.Done == b.Done {
					all |= r.Sensor
				}
			}
			if (r.Sensor == healing.ReceiveCompletion || r.Sensor == healing.SendCompletion) && r.Done > 0 {
				all |= r.Sensor
			}
		}
		before = now
		time.Sleep(50 * time.Millisecond) // so long the part must not get on
		return all&want != 0
	})
	if all&^want&^healing.Health != 0 {
		t.Errorf("the readings say %v, want %v", all, want)
	}
}

// TestFaults: each fault is read as what it is, other ports go on meanwhile, and disabling and enabling the adapter ends it.
func TestFaults(t *testing.T) {
	for _, x := range []struct {
		name  string
		fault Fault
		want  healing.Sensor
	}{
		{"wire", FaultWire, healing.SendHardware}, {"receive", FaultReceive, healing.ReceiveCompletion},
		{"send", FaultSend, healing.SendCompletion}, {"completions", FaultCompletions, healing.SendSoftware},
		{"events", FaultEvents, healing.EventQueue}, {"loop", FaultLoop, healing.Health},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			p, _ := fourPorts(t, PathWire)
			c, other := connectedPair(p[0], p[1]), connectedPair(p[2], p[3])
			operations(t, c)
			buf, dst := p[0].buffer(64), p[1].buffer(64)
			if x.fault == FaultLoop {
				p[0].check(p[0].host.Inject(p[0].adapter, x.fault))
			}
			c.a.cq.Arm(ring.ArmAny)
			if x.fault != FaultLoop {
				p[0].check(p[0].host.Inject(p[0].adapter, x.fault))
			}
			wr := ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: dst.addr(0), RKey: dst.mem.RKey}
			wr.SGE[0] = buf.sge(0, 8)
			c.a.post(wr)
			stuck(t, p[0], x.want)
			operations(t, other)
			restarted(t, p[0], c, p[1])
			operations(t, other)
			r, err := p[0].host.Readings(p[0].adapter, nil)
			p[0].check(err)
			for _, r := range r {
				if r.Waits && r.Sensor != healing.Health { // which waits for the next turn always
					t.Errorf("after the restart there is still a fault: %+v", r)
				}
			}
		})
	}
}

// restarted restarts the adapter of a program, and connects it to another again.
func restarted(t *testing.T, p *program, c *connected, to *program) {
	t.Helper()
	p.check(p.host.SetAdapterState(p.adapter, false))
	p.event(command.EventDeviceFatal)
	for _, o := range []struct {
		kind command.Kind
		h    command.Handle
	}{{command.KindCM, c.idA}, {command.KindQP, c.a.q.Handle}, {command.KindCQ, c.a.cq.q.Handle}} {
		p.check(p.c.Destroy(bg, o.kind, o.h))
	}
	p.check(p.host.Mend(p.adapter))
	p.check(p.host.SetAdapterState(p.adapter, true))
	pd, err := p.c.AllocPD(bg, p.adapter)
	p.check(err)
	p.pd = pd
	operations(t, connectedPair(p, to))
}

// TestBreakdown: a panic in the engines of a port is told and stops this port alone; mended, it works again with new engines. Its
// program learns of it as of any end of an adapter, and its peer as well.
func TestBreakdown(t *testing.T) {
	for name, path := range map[string]PathPolicy{"wire": PathWire, "local": PathLocal} {
		t.Run(name, func(t *testing.T) {
			p, broken := fourPorts(t, path)
			c, other := connectedPair(p[0], p[1]), connectedPair(p[2], p[3])
			operations(t, c)
			h := p[0].host
			told := make(chan notify.Flags, 8)
			defer h.Subscribe(func(c notify.Change) {
				if c.Adapter == p[0].adapter {
					told <- c.Flags
				}
			})()
			p[0].check(h.Inject(p[0].adapter, FaultPanic))
			b := <-broken
			if len(b.Adapters) != 1 || b.Adapters[0] != p[0].adapter || b.Value == nil || len(b.Stack) == 0 {
				t.Errorf("told: %+v", b)
			}
			operations(t, other)
			if r, err := h.Readings(p[0].adapter, nil); err != nil || len(r) != 0 {
				t.Errorf("a broken port still has readings: %v, %v", r, err)
			}
			if err := h.Mend(p[0].adapter); err == nil {
				t.Error("an enabled adapter is mended")
			}
			restarted(t, p[0], c, p[1])
			operations(t, other)
			if f := <-told; f&notify.RDMADisabled == 0 {
				t.Errorf("subscribers saw %v first", f)
			}
		})
	}
}

// TestPanicsEndTheProcess: a host that nobody mends refuses the fault, since a panic ends the process there.
func TestPanicsEndTheProcess(t *testing.T) {
	p := memoryProgram(t, AdapterConfig{})
	if err := p.host.Inject(p.adapter, FaultPanic); err == nil {
		t.Error("the fault is accepted")
	}
}
