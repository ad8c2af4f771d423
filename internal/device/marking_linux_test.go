package device

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestPolicies_OfConnections: both ends of an RDMA connection send at the priority that a policy for its port says on the side that
// asks, with the tag and DSCP of it; with TxUntagPriorityTag they have no tag and count at that priority where they leave.
func TestPolicies_OfConnections(t *testing.T) {
	const at = 4450
	policy, err := qos.ParsePolicy("ND", "netdirect=4450,priority=3,dscp=26")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name    string
		bare    bool
		c       qos.Classifier
		arrived int // priority at which packets arrive
	}{
		{"by tags", false, qos.Classifier{}, 3},
		{"without tags", true, qos.Classifier{}, port.Untagged},
		{"without tags, by DSCP", true, qos.Classifier{ByDSCP: true}, 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			a, b := whole{"datagrams", overDatagrams}.on(stationsOf(0, false)).make(t, AdapterConfig{Path: PathWire})
			byDefault := qos.Operative{Settings: qos.Defaults()}
			a.check(a.host.SetPriorities(a.adapter, Priorities{Own: byDefault, Received: x.c,
				Marking: qos.Marking{Policies: qos.Policies{policy}, Tags: true, Bare: x.bare}}))
			b.check(b.host.SetPriorities(b.adapter, Priorities{Own: byDefault, Received: x.c,
				Marking: qos.Marking{Tags: true, Bare: x.bare}}))
			q, r := a.qp(command.CreateQP{}, a.cq(16)), b.qp(command.CreateQP{}, b.cq(16))
			listener, err := b.c.CMCreate(bg, command.CMCreate{Adapter: b.adapter, Space: command.TCP})
			b.check(err)
			to, err := b.c.CMBind(bg, listener, command.Endpoint{Addr: command.AddrFrom(b.addr), Port: at})
			b.check(err)
			b.check(b.c.CMListen(bg, listener, 0))
			id, err := a.c.CMCreate(bg, command.CMCreate{Adapter: a.adapter, Space: command.TCP})
			a.check(err)
			a.dial(command.CMConnect{ID: id, QP: q.q.Handle, Remote: to, Param: usualParam})
			asked := b.event(command.EventConnectRequest)
			b.check(b.c.CMAccept(bg, command.CMAccept{ID: asked.NewID, QP: r.q.Handle, Param: usualParam}))
			a.event(command.EventConnectResponse)
			a.check(a.c.CMEstablish(bg, id))
			b.event(command.EventEstablished)
			const writes = 10
			for range writes {
				q.post(ring.SendWR{Op: ring.OpWrite, Flags: ring.Signaled})
				if e := q.cq.wait(); e.Status != ring.Success {
					t.Fatalf("a write ended with %v", e.Status)
				}
			}
			sent := a.host.Counters()[a.adapter].Sent[3].Packets
			if got := b.host.Counters()[b.adapter].Arrived[x.arrived].Packets; sent < writes || got < writes {
				t.Errorf("%d packets left at priority 3, and %d have arrived", sent, got)
			}
			if answers := b.host.Counters()[b.adapter].Sent[3].Packets; answers == 0 {
				t.Error("no answer left at priority 3")
			}
		})
	}
}

// TestMarks_OfMessages: the messages of the connection manager leave where the packets of their connection do: by the traffic class
// that the program has chosen for its id, on either side, by a policy for the port, whose priority and DSCP the request names for the
// peer's answers, else by applications and the default.
func TestMarks_OfMessages(t *testing.T) {
	const at, none = 4450, port.Untagged
	policy := func(text string) qos.Policies {
		p, err := qos.ParsePolicy("ND", text)
		if err != nil {
			t.Fatal(err)
		}
		return qos.Policies{p}
	}
	for _, x := range []struct {
		name           string
		asks, accepts  uint32 // traffic classes of the ids
		marking        qos.Marking
		applications   []qos.Application
		byDSCP         bool // of the side that accepts
		left, answered int
		class          int // priority of the DSCP with which the requests arrive
	}{
		{name: "nothing", left: none},
		{name: "a traffic class", asks: 26 << 2, marking: qos.Marking{ByDSCP: true}, byDSCP: true, left: 3, answered: 3, class: 3},
		{name: "a traffic class, by which nobody goes", asks: 26 << 2, left: none, class: 3},
		{name: "one of each", asks: 26 << 2, accepts: 18 << 2, marking: qos.Marking{ByDSCP: true}, byDSCP: true, left: 3, answered: 2, class: 3},
		{name: "a policy", marking: qos.Marking{Policies: policy("netdirect=4450,priority=5,dscp=10")}, left: 5, answered: 5, class: 1},
		{name: "a policy of priority 0", marking: qos.Marking{Default: 3, Policies: policy("netdirect=4450,priority=0")}, left: none},
		{name: "a class before a policy", asks: 34 << 2, marking: qos.Marking{ByDSCP: true, Policies: policy("netdirect=4450,priority=5")},
			left: 4, class: 4},
		{name: "an application", applications: []qos.Application{{Selector: qos.UDP, Protocol: 4791, Priority: 6}}, left: 6},
		{name: "the default", marking: qos.Marking{Default: 2}, left: 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			a, b := whole{"datagrams", overDatagrams}.on(stationsOf(0, false)).make(t, AdapterConfig{Path: PathWire})
			own := qos.Operative{Settings: qos.Defaults()}
			b.check(b.host.SetPriorities(b.adapter, Priorities{Own: own, Received: qos.Classifier{ByDSCP: true},
				Marking: qos.Marking{Tags: true, ByDSCP: x.byDSCP}}))
			own.Applications, x.marking.Tags = x.applications, true
			a.check(a.host.SetPriorities(a.adapter, Priorities{Own: own, Marking: x.marking}))
			q, r := a.qp(command.CreateQP{}, a.cq(16)), b.qp(command.CreateQP{}, b.cq(16))
			listener, err := b.c.CMCreate(bg, command.CMCreate{Adapter: b.adapter, Space: command.TCP})
			b.check(err)
			to, err := b.c.CMBind(bg, listener, command.Endpoint{Addr: command.AddrFrom(b.addr), Port: at})
			b.check(err)
			b.check(b.c.CMListen(bg, listener, 0))
			id, err := a.c.CMCreate(bg, command.CMCreate{Adapter: a.adapter, Space: command.TCP})
			a.check(err)
			a.check(a.c.CMOption(bg, command.CMOption{ID: id, Option: command.OptionTOS, Value: x.asks}))
			a.dial(command.CMConnect{ID: id, QP: q.q.Handle, Remote: to, Param: usualParam})
			asked := b.event(command.EventConnectRequest)
			b.check(b.c.CMOption(bg, command.CMOption{ID: asked.NewID, Option: command.OptionTOS, Value: x.accepts}))
			b.check(b.c.CMAccept(bg, command.CMAccept{ID: asked.NewID, QP: r.q.Handle, Param: usualParam}))
			a.event(command.EventConnectResponse)
			a.check(a.c.CMEstablish(bg, id))
			b.event(command.EventEstablished)
			from, back := a.host.Counters()[a.adapter], b.host.Counters()[b.adapter]
			if n := from.Sent[x.left].Packets; n < 2 { // the request, and that it is ready to use
				t.Errorf("%d messages left at priority %d: %v", n, x.left, from.Sent)
			}
			if n := back.Sent[x.answered].Packets; n < 1 {
				t.Errorf("%d answers left at priority %d: %v", n, x.answered, back.Sent)
			}
			if n := back.Arrived[x.class].Packets; n < 2 {
				t.Errorf("%d messages arrived with a DSCP of priority %d: %v", n, x.class, back.Arrived)
			}
		})
	}
}

// TestRules_ActOnConnections: policies, the default priority and applications that change act at once on what is connected and on
// address handles, while messages are under way: none is lost, and none overtakes another.
func TestRules_ActOnConnections(t *testing.T) {
	a, b := whole{"datagrams", overDatagrams}.on(stationsOf(0, false)).make(t, AdapterConfig{Path: PathWire})
	b.check(b.host.SetPriorities(b.adapter, Priorities{Own: qos.Operative{Settings: qos.Defaults()}, Marking: qos.Marking{Tags: true}}))
	c := connect(a.qp(command.CreateQP{SendDepth: 64}, a.cq(256)), b.qp(command.CreateQP{}, b.cq(16)))
	from, to := a.buffer(20000), b.buffer(20000)
	post := func(n int) {
		for range n {
			wr := ring.SendWR{ID: 1, Op: ring.OpWrite, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: to.addr(0), RKey: to.mem.RKey}
			wr.SGE[0] = from.sge(0, 20000)
			c.a.post(wr)
		}
	}
	policy := func(text string) qos.Policies {
		p, err := qos.ParsePolicy("ND", fmt.Sprintf(text, c.serverPort))
		if err != nil {
			t.Fatal(err)
		}
		return qos.Policies{p}
	}
	ah, err := a.c.CreateAH(bg, command.CreateAH{PD: a.pd, AV: command.AddressVector{Addr: command.AddrFrom(b.addr)}})
	a.check(err)
	sent := func(at int) uint64 { return a.host.Counters()[a.adapter].Sent[at].Packets }
	for _, x := range []struct {
		name         string
		marking      qos.Marking
		applications []qos.Application
		at, handle   int // priorities of the connection and the address handle
		class        uint8
	}{
		{name: "no rule", at: port.Untagged},
		{name: "a policy", marking: qos.Marking{Policies: policy("netdirect=%d,priority=3")}, at: 3},
		{name: "another", marking: qos.Marking{Policies: policy("netdirect=%d,priority=5,dscp=10")}, at: 5, class: 40},
		{name: "the default", marking: qos.Marking{Default: 2}, at: 2, handle: 2},
		{name: "an application", applications: []qos.Application{{Selector: qos.UDP, Protocol: 4791, Priority: 4}}, at: 4, handle: 4},
		{name: "a policy that leaves the rest to it", marking: qos.Marking{Policies: policy("netdirect=%d,priority=6")},
			applications: []qos.Application{{Selector: qos.UDP, Protocol: 4791, Priority: 4}}, at: 6, handle: 4},
		{name: "no rule any more", at: port.Untagged},
	} {
		const writes = 24
		post(writes / 2)
		x.marking.Tags = true
		own := qos.Operative{Settings: qos.Defaults()}
		own.Applications = x.applications
		a.check(a.host.SetPriorities(a.adapter, Priorities{Own: own, Marking: x.marking}))
		before := sent(x.at)
		post(writes / 2)
		for range writes {
			if e := c.a.cq.wait(); e.Status != ring.Success {
				t.Fatalf("%s: a write ended with %v", x.name, e.Status)
			}
		}
		if n := sent(x.at) - before; n < writes/2*20000/4096 {
			t.Errorf("%s: %d packets at priority %d", x.name, n, x.at)
		}
		a.host.lock()
		r, h := a.c.qps.Get(c.a.q.Handle).tq.Route(), a.c.ahs.Get(ah).route
		if r.TrafficClass != x.class || int(h.Priority) != x.handle {
			t.Errorf("%s: traffic class %#x, want %#x; the address handle has priority %d, want %d", x.name, r.TrafficClass, x.class,
				h.Priority, x.handle)
		}
		a.host.unlock()
	}
	// A peer that has no processor for some milliseconds is asked again; none arrives ahead of another.
	if c := b.host.Counters()[b.adapter].Transport; c.ResponderOutOfOrder != 0 {
		t.Errorf("%d packets arrived out of order", c.ResponderOutOfOrder)
	}
}
