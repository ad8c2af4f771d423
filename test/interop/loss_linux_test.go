package interop

import (
	"fmt"
	"testing"
	"time"
)

// impairments are what netem does to the packets of both directions.
var impairments = []struct{ name, netem string }{
	{"loss 0.1%", "loss 0.1%"},
	{"loss 1%", "loss 1%"},
	{"loss 5%", "loss 5%"},
	{"duplicate 5%", "duplicate 5%"},
	{"reorder 5%", "delay 1ms reorder 95%"},
	{"delay", "delay 3ms"},
	{"everything", "delay 1ms reorder 95% loss 1% duplicate 1%"},
}

// impair puts netem on what the guest sends and, through ifb0, on what it
// receives. It returns what takes it off again.
func (g *guest) impair(t testing.TB, netem string) func() {
	t.Helper()
	g.sh(t, fmt.Sprintf(`set -e
		tc qdisc replace dev eth0 root netem limit 20000 %[1]s
		tc qdisc replace dev ifb0 root netem limit 20000 %[1]s
		tc qdisc add dev eth0 ingress
		tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0`, netem))
	return func() {
		g.sh(t, "tc qdisc del dev eth0 ingress; tc qdisc del dev eth0 root; tc qdisc del dev ifb0 root")
	}
}

// testLoss carries out everything over a segment that loses, duplicates and
// reorders: every request completes, and the data is right.
func testLoss(t *testing.T, g *guest) {
	f := families[0]
	if g.mtu == 9000 {
		f = families[1]
	}
	a := newAdapter(t, f.ours)
	p := g.peer(t)
	mem := p.region(memorySize, "lwra")
	for _, i := range impairments {
		if testing.Short() && i.name != "loss 1%" {
			continue
		}
		t.Run(i.name, func(t *testing.T) {
			a.t, p.t = t, t
			c := weConnect(t, a, p, f, all, "")
			stop := g.impair(t, i.netem)
			before := netem(g, t)
			start := time.Now()
			for _, step := range []struct {
				name string
				run  func(*testing.T, *couple, region)
			}{
				{"messages/ours", func(t *testing.T, c *couple, mem region) { ourMessages(t, c, mem, 300_000) }},
				{"messages/theirs", func(t *testing.T, c *couple, mem region) { theirMessages(t, c, mem, 300_000) }},
				{"queue/ours", ourQueue},
				{"queue/theirs", theirQueue},
				{"atomics/ours", ourAtomics},
				{"atomics/theirs", theirAtomics},
			} {
				t.Run(step.name, func(t *testing.T) { step.run(t, c, mem) })
			}
			a.t, p.t = t, t
			t.Logf("took %v; netem was: %s, is: %s", time.Since(start).Round(time.Millisecond), before, netem(g, t))
			stop()
			c.close()
		})
	}
}

// netem returns what netem has dropped and sent in each direction.
func netem(g *guest, t testing.TB) string {
	return g.sh(t, `for d in eth0 ifb0; do tc -s qdisc show dev $d root | { read -r _; read -r _ _ _ n _ _ dropped _; echo -n "$d $n sent ${dropped%,} dropped; "; }; done`)
}
