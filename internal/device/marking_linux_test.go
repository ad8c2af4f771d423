package device

import (
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
