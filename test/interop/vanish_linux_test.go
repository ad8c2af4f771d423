package interop

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/verbs"
)

// testPeerVanishes pulls the guest's plug during a connection. Our request ends in the error of the specification
// within the QP's own limit, and the guest that boots in its place, with the same addresses, connects to the same
// adapter.
func testPeerVanishes(t *testing.T, g *guest) {
	f := families[0]
	a := newAdapter(t, f.ours)
	talk := func() *couple {
		p := g.peer(t)
		mem := p.region(memorySize, "lwra")
		c := weConnect(t, a, p, f, all, "")
		ourMessages(t, c, mem, 5000)
		a.t = t
		return c
	}
	c := talk()
	info, err := c.us.qp.Query()
	ok(t, err)
	// A time-out may take up to four times the attribute's value (IBA 9.9.2.1.1).
	limit := time.Duration(info.Retry+1) * 4 * (4096 * time.Nanosecond << info.Timeout)
	g.stop()
	c.us.recv(1, a.mr.SGE(0, 64))
	start := time.Now()
	for id := range 3 {
		c.us.send(verbs.SendWR{ID: uint64(id), Op: verbs.OpSend, SGE: []verbs.SGE{a.mr.SGE(0, 3000)}})
	}
	var wc [1]verbs.WC
	_, err = c.us.cq.Next(within(t, limit+await.Limit/4), wc[:])
	ok(t, err)
	if wc[0].Status != verbs.RetryExceeded || wc[0].ID != 0 {
		t.Fatalf("the request ends as %+v (%v), want %v", wc[0], wc[0].Status, verbs.RetryExceeded)
	}
	t.Logf("the QP gave up after %v of at most %v", time.Since(start).Round(time.Millisecond), limit)
	for range 3 {
		c.us.next(verbs.WRFlush)
	}
	c.us.drop()
	g.checkCapture(t, "vanishes")

	g.start(t)
	reach(t, f)
	talk().close()
}

// reach waits until this host has found the guest's link address. Until then the host answers what is sent there,
// even for ends of earlier connections, with "host unreachable", and that would end attempts to connect.
func reach(t *testing.T, f family) {
	t.Helper()
	c, err := net.Dial("udp", net.JoinHostPort(f.theirs.String(), "9"))
	ok(t, err)
	defer c.Close()
	await.Eventually(t, fmt.Sprintf("the guest at %v answers", f.theirs), func() bool {
		_, _ = c.Write([]byte{0}) // an error belongs to a datagram sent earlier
		known, err := netlink.NeighList(0, netlink.FAMILY_V4)
		ok(t, err)
		for _, n := range known {
			if n.IP.Equal(f.theirs.AsSlice()) && n.State&(netlink.NUD_REACHABLE|netlink.NUD_DELAY|netlink.NUD_STALE) != 0 {
				return true
			}
		}
		return false
	})
}

// testWeVanish kills the process to which a peer is connected. The peer's request ends in the error of the
// specification, and the next process at the same address is served again.
func testWeVanish(t *testing.T, g *guest) {
	f := families[0]
	server := g.softvpi(t, "nd_rping", "-s", "-a", f.ours.String())
	server.says(t, "listening")
	p := g.peer(t)
	mem := p.region(4096, "lwra")
	c := p.do("connect addr=%s port=7174 retry=2", f.ours)
	ok(t, server.cmd.Process.Kill())
	<-server.done
	p.do("send id=%s op=write mr=%d len=100 wr=1 raddr=4096 rkey=1", c["id"], mem.mr)
	p.one(c.num(t, "id"), wcRetry)

	server = g.softvpi(t, "nd_rping", "-s", "-C", "3", "-a", f.ours.String())
	server.says(t, "listening")
	g.program(t, "rping", "-c", "-C", "3", "-a", f.ours.String(), "-p", "7174").rpingSucceeds(t, programLimit)
	server.succeeds(t, programLimit)
}
