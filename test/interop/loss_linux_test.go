package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// impairments are what netem does to the packets of both directions, and the
// bytes of a message then.
var impairments = []struct {
	name, netem string
	bytes       int
}{
	{"loss 0.1%", "loss 0.1%", 300_000},
	{"loss 1%", "loss 1%", 300_000},
	{"loss 5%", "loss 5%", 300_000},
	{"duplicate 5%", "duplicate 5%", 300_000},
	{"reorder 5%", "delay 1ms reorder 95%", 300_000},
	{"delay", "delay 3ms", 300_000},
	{"jitter", "delay 2ms 1ms", 12_000}, // bursts arrive in any order: more takes rxe too long
	{"everything", "delay 1ms reorder 95% loss 1% duplicate 1%", 300_000},
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
			start := time.Now()
			for _, step := range []struct {
				name string
				run  func(*testing.T, *couple, region)
			}{
				{"messages/ours", func(t *testing.T, c *couple, mem region) { ourMessages(t, c, mem, i.bytes) }},
				{"messages/theirs", func(t *testing.T, c *couple, mem region) { theirMessages(t, c, mem, i.bytes) }},
				{"queue/ours", ourQueue},
				{"queue/theirs", theirQueue},
				{"atomics/ours", ourAtomics},
				{"atomics/theirs", theirAtomics},
			} {
				if !t.Run(step.name, func(t *testing.T) { step.run(t, c, mem) }) {
					break // what it left under way would complete in the place of other requests
				}
			}
			t.Run("lost", func(t *testing.T) {
				for strings.Contains(i.netem, "loss") && !g.lostBothWays(t) {
					ourMessages(t, c, mem, 1<<20)
					theirMessages(t, c, mem, 1<<20)
				}
			})
			t.Run("connect/ours", func(t *testing.T) {
				a.t, p.t = t, t
				weConnect(t, a, p, f, all, "").close()
			})
			t.Run("connect/theirs", func(t *testing.T) {
				a.t, p.t = t, t
				theyConnect(t, a, p, f, all, "timeout=20000").close()
			})
			a.t, p.t = t, t
			t.Logf("%v; netem: %v", time.Since(start).Round(time.Millisecond), g.netem(t))
			stop()
			c.close()
		})
	}
}

// netem returns how many packets netem has sent and dropped in each direction.
func (g *guest) netem(t testing.TB) map[string][2]int {
	t.Helper()
	n := map[string][2]int{}
	for _, d := range []string{"eth0", "ifb0"} {
		var bytes, packets, dropped int
		out := g.sh(t, "tc -s qdisc show dev "+d+" root")
		_, counts, _ := strings.Cut(out, "Sent ")
		if _, err := fmt.Sscanf(counts, "%d bytes %d pkt (dropped %d", &bytes, &packets, &dropped); err != nil {
			t.Fatalf("tc says %q: %v", out, err)
		}
		n[d] = [2]int{packets, dropped}
	}
	return n
}

// lostBothWays reports whether a packet was lost in each direction.
func (g *guest) lostBothWays(t testing.TB) bool {
	n := g.netem(t)
	return n["eth0"][1] > 0 && n["ifb0"][1] > 0
}
