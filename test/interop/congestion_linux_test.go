package interop

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
)

// testCongestion marks packets between the two with congestion control on at our side, as a switch with a long queue does: sch_netem
// sets CE in what says that it may be marked, and loses one in 20 of the rest. What Soft-RoCE sends is answered by CNPs, which do it no
// harm. It answers none of our marked packets, as it knows no congestion control; if it did, we would slow down.
func testCongestion(t *testing.T, g *guest) {
	g.drive(t)
	g.softvpiAs(t, "mlx5cmd", "-QosConfig", "-Dcqcn", "-Name", "Ethernet 1", "-Enable").succeeds(t, programLimit)
	defer g.impair(t, "loss 5% ecn")()
	f := families[0]
	us, them := here(g, f), there(t, g, f)
	const command = "ib_write_bw -d $ADAPTER -x $GID -n 500 -s 16384 -F -p $PORT"
	write := exchange{name: "ib_write_bw", server: command, client: command + " --tclass=106 $SERVER4", says: `(?m)^ *16384 +500 +[0-9.]+`}

	write.run(t, g, us, them, "18700") // 106: DSCP 26, ECT(0)
	var marked, sent int
	await.Eventually(t, "notifications of what Soft-RoCE has sent", func() bool {
		// In this order: one that comes in between makes more marked packets, never fewer.
		sent, marked = g.congestion(t, "sent_cnps"), g.congestion(t, "received_marked_packets")
		return marked > 0 && sent > 0
	})
	if sent > marked {
		t.Errorf("%d notifications of %d marked packets", sent, marked)
	}
	seen := g.decoded(t, "infiniband.bth.opcode == 129 && ip.dst == "+theirs.v4.String())
	if sent = g.congestion(t, "sent_cnps"); seen < 1 || seen > sent {
		t.Errorf("tshark sees %d of %d notifications on the wire", seen, sent)
	}

	_, before := g.netem(t)
	write.run(t, g, them, us, "18701")
	const writes = "infiniband.bth.opcode >= 6 && infiniband.bth.opcode <= 10 && " // however a write is divided
	if n := g.decoded(t, writes+"ip.dsfield.ecn == 2 && ip.src == "+ours.v4.String()); n < 100 {
		t.Errorf("%d of our packets say that they may be marked", n)
	}
	_, after := g.netem(t)
	answers, handled := g.congestion(t, "received_cnps"), g.congestion(t, "handled_cnps")
	if after.dropped == before.dropped || handled != answers { // what it marks counts as dropped
		t.Errorf("%d of our packets were marked; %d notifications handled, of %d", after.dropped-before.dropped, handled, answers)
	}
	t.Logf("%d of Soft-RoCE's packets arrived marked, %d notifications; up to %d of ours were marked, of which it answered %d", marked, sent,
		after.dropped-before.dropped, answers)
	write.run(t, g, us, them, "18702") // it still works
}

// congestion returns a counter of congestion control of the driver's first adapter.
func (g *guest) congestion(t *testing.T, name string) int {
	t.Helper()
	p := g.softvpiAs(t, "counters", "get", "congestion_control."+name)
	p.succeeds(t, programLimit)
	m := regexp.MustCompile(`\(Ethernet 1\)\s+\D* (\d+) `).FindStringSubmatch(p.text())
	if m == nil {
		t.Fatalf("no counter %s in\n%s", name, p.text())
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// decoded returns how many packets of the segment so far tshark shows by a filter.
func (g *guest) decoded(t *testing.T, filter string) int {
	t.Helper()
	// It may end inside a packet, which tshark says.
	out, _ := exec.Command("tshark", "-n", "-r", g.capture, "-Y", filter, "-T", "fields", "-e", "frame.number").Output()
	return strings.Count(string(out), "\n")
}
