package device

import (
	"testing"

	engine "github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// become gives an end's team another type while all go on.
func (b *bundled) become(t *testing.T, e int, kind engine.Type) {
	t.Helper()
	if err := b.hosts[e].ChangeWire(func() error { return b.teams[e].Become(kind, kind == engine.LACP) }); err != nil {
		t.Fatal(kind, err)
	}
}

// TestTeam_Becomes: RDMA of an adapter and of its virtual functions, and frames of their hosts, go on while their team at a switch that
// knows nothing of it gets type 3AD, from each other type and back: before LACP knows that the switch is silent, afterwards, and when the
// member that carries fails.
func TestTeam_Becomes(t *testing.T) {
	t.Parallel()
	b := newBundled(t)
	one, other := b.atSwitch(t, engine.AFT)
	goOn := b.traffic(t, one, other)
	goOn()
	for _, kind := range []engine.Type{engine.SFT, engine.SLB, engine.RLB, engine.ALB} {
		b.become(t, 0, engine.LACP)
		goOn()
		for i := range b.lines {
			b.lines[i][0].out.Store(true) // one of them carries
			b.hosts[0].Wake()
			goOn()
			b.lines[i][0].out.Store(false)
			b.hosts[0].Wake()
			goOn()
		}
		b.become(t, 0, kind)
		goOn()
	}
	b.become(t, 0, engine.LACP)
	await.Eventually(t, "the partner is known to be silent", func() bool {
		active := 0
		for _, m := range b.teams[0].Status().Members {
			if m.LACP.State() == "distributing" {
				active++
			}
		}
		return active == 1
	})
	goOn()
}
