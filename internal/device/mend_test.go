package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link/impair"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/partition"
)

// breakDown makes the engines of a program's port panic, and returns when that is known. The adapter is still enabled then.
func (p *program) breakDown(broken <-chan Breakdown) {
	p.t.Helper()
	p.check(p.host.Inject(p.adapter, FaultPanic))
	p.host.Wake()
	<-broken
}

// mend makes a broken port work again, as self-healing does.
func (p *program) mend() {
	p.t.Helper()
	p.check(p.host.Mend(p.adapter))
	p.check(p.host.SetAdapterState(p.adapter, true))
}

// TestMend_PartitionsOfThePort: the new engines of an InfiniBand port know the partitions that the subnet manager set before the panic, so
// that programs connect in those in which the port is a full member.
func TestMend_PartitionsOfThePort(t *testing.T) {
	parts, err := partition.Parse("Default=0x7fff : ALL=limited, SELF=full;\nOurs=0x0007 : ALL=full;\n")
	if err != nil {
		t.Fatal(err)
	}
	f := newIBFabric(t, 3, subnet.Config{Partitions: parts})
	broken := make(chan Breakdown, 8)
	h, g := newHost(t, Config{Seed: 1, Broken: func(b Breakdown) { broken <- b }}), newHost(t, Config{Seed: 2})
	a, b := newProgram(t, h, f.add(h, 1, AdapterConfig{})), newProgram(t, g, f.add(g, 2, AdapterConfig{}))
	a.breakDown(broken)
	a.check(h.SetAdapterState(a.adapter, false))
	a.mend()
	f.until(h, func() bool { return h.adapters[a.adapter].up() })
	a = newProgram(t, h, a.adapter)
	c := connect(a.qp(command.CreateQP{}, a.cq(64)), b.qp(command.CreateQP{}, b.cq(64)))
	if k := c.a.info().Attr.PKeyIndex; k != 1 {
		t.Errorf("the connection is in the partition of row %d, want 1", k)
	}
	operations(t, c)
}

// TestRestart_PeersLearnOfIt: a peer that sends nothing learns that the adapter of its connection was restarted, after a panic or without
// one, though the first request to disconnect is lost on the way.
func TestRestart_PeersLearnOfIt(t *testing.T) {
	for _, n := range networks {
		for why, panics := range map[string]bool{"panic": true, "order": false} {
			t.Run(n.name+" by "+why, func(t *testing.T) {
				t.Parallel()
				c := pairs(t, n, AdapterConfig{Path: PathWire})
				a, b := c.a.p, c.b.p
				broken := make(chan Breakdown, 8)
				a.host.lock()
				a.host.cfg.Broken = func(b Breakdown) { broken <- b }
				a.host.unlock()
				operations(t, c)
				a.check(a.host.SetImpairment(a.adapter, impair.Impairment{Loss: 1}))
				if panics {
					a.breakDown(broken)
				}
				a.check(a.host.SetAdapterState(a.adapter, false))
				a.mend()
				a.check(a.host.SetImpairment(a.adapter, impair.Impairment{}))
				if e := b.event(command.EventDisconnected); e.Object != c.idB {
					t.Errorf("the end of %#x is told, want that of %#x", e.Object, c.idB)
				}
			})
		}
	}
}
