package interop

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// impair applies netem to what the guest sends and, through ifb0, to what it receives. Filters in front of both count
// the packets that reach netem. It returns a function that removes everything again.
func (g *guest) impair(t testing.TB, netem string) func() {
	t.Helper()
	g.sh(t, fmt.Sprintf(`tc qdisc del dev eth0 clsact 2>/dev/null # of a test that ended early
		set -e
		echo 1 >/proc/sys/net/ipv6/conf/ifb0/disable_ipv6 # packets of its own would be counted
		tc qdisc add dev eth0 clsact
		tc filter add dev eth0 egress protocol all matchall classid 1:1
		tc filter add dev eth0 ingress protocol all matchall classid 1:1 action mirred egress redirect dev ifb0
		tc qdisc replace dev eth0 root netem limit 20000 %[1]s
		tc qdisc replace dev ifb0 root netem limit 20000 %[1]s`, netem))
	return func() {
		g.sh(t, "tc qdisc del dev eth0 clsact; tc qdisc del dev eth0 root; tc qdisc del dev ifb0 root")
	}
}

// netemCounts is what netem has done to the packets of one direction.
type netemCounts struct {
	came, sent, dropped int
	overtook            int // sent at once, ahead of those that are still delayed
	waiting             int
}

// duplicates returns how many packets netem made: every packet that came or was made has been sent, dropped, or is
// waiting.
func (n netemCounts) duplicates() int { return n.sent + n.dropped + n.waiting - n.came }

func (n netemCounts) String() string {
	return fmt.Sprintf("%d sent, %d dropped, %d of them duplicates, %d overtaking", n.sent, n.dropped, n.duplicates(), n.overtook)
}

// netem returns netem's counters for what the guest sends and for what it receives.
func (g *guest) netem(t testing.TB) (sends, receives netemCounts) {
	t.Helper()
	// The filters are read last: packets in between make the number of duplicates smaller, never larger.
	out := strings.Split(g.sh(t, `for d in eth0 ifb0; do tc -s qdisc show dev $d root; echo ==; done
		for f in egress ingress; do tc -s filter show dev eth0 $f; echo ==; done`), "==\n")
	for k, n := range []*netemCounts{&sends, &receives} {
		_, counts, _ := strings.Cut(out[k], "Sent ")
		var bytes, over int
		if _, err := fmt.Sscanf(counts, "%d bytes %d pkt (dropped %d, overlimits %d requeues %d)", &bytes, &n.sent, &n.dropped, &over,
			&n.overtook); err != nil {
			t.Fatalf("tc says %q: %v", out[k], err)
		}
		_, backlog, _ := strings.Cut(counts, "backlog ")
		if words := strings.Fields(backlog); len(words) > 1 {
			n.waiting, _ = strconv.Atoi(strings.TrimSuffix(words[1], "p"))
		}
		_, hits, _ := strings.Cut(out[2+k], "rule hit ")
		if _, err := fmt.Sscanf(hits, "%d", &n.came); err != nil {
			t.Fatalf("tc says %q: %v", out[2+k], err)
		}
	}
	return sends, receives
}

// effects returns counters of both engines that show what the segment did to packets: ours under their own names,
// rxe's as "rxe NAME".
func effects(t testing.TB, g *guest, a *adapter) map[string]int {
	t.Helper()
	n := map[string]int{}
	list, err := a.dev.Counters()
	ok(t, err)
	for _, c := range list {
		n[c.Name] = int(c.Value)
	}
	words := strings.Fields(g.sh(t, `cd /sys/class/infiniband/rxe0/ports/1/hw_counters; for f in *; do read -r n <$f; echo $f $n; done`))
	for i := 0; i+1 < len(words); i += 2 {
		n["rxe "+words[i]], _ = strconv.Atoi(words[i+1])
	}
	return n
}

// Counters that show what reached an engine.
const (
	ourEarly      = "Responder out of order sequence received"
	ourDuplicates = "Responder duplicate request received"
	rxeEarly      = "rxe out_of_seq_request"
	rxeDuplicates = "rxe duplicate_request"
)

// missing returns what an impairment should have done and has not. In each direction netem must have done it; and if
// it could not have been caused otherwise, the receiving engine must have noticed.
func (i impairment) missing(t testing.TB, g *guest, a *adapter, before map[string]int) []string {
	t.Helper()
	var list []string
	want := func(happened bool, what string) {
		if !happened {
			list = append(list, what)
		}
	}
	sends, receives := g.netem(t)
	for _, d := range []struct {
		name string
		netemCounts
	}{{"guest to host", sends}, {"host to guest", receives}} {
		want(!i.loses() || d.dropped > 0, d.name+": no packet dropped")
		want(!i.duplicates() || d.duplicates() > 0, d.name+": no packet duplicated")
		want(!i.overtakes() || d.overtook > 0 && d.overtook < d.sent, d.name+": no packet overtaken")
	}
	now := effects(t, g, a)
	rose := func(name string) {
		if _, there := now[name]; !there {
			t.Fatalf("no counter is called %q", name)
		}
		want(now[name] > before[name], name+" does not rise")
	}
	if i.duplicates() {
		rose(ourDuplicates)
		rose(rxeDuplicates)
	}
	if i.loses() || i.reorders() {
		rose(ourEarly)
		rose(rxeEarly)
	}
	return list
}
