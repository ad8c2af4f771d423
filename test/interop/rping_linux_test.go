package interop

import (
	"fmt"
	"strconv"
	"testing"
)

// pings are the runs of rping: a few of odd sizes around the packet size, then many of the default and the largest size.
var pings = []struct{ size, count int }{{64, 5}, {1023, 5}, {1024, 5}, {1025, 5}, {4097, 5}, {100, 100}, {65535, 25}}

// testRping runs nd_rping against rping of rdma-core in both roles. Both check the data of every ping.
func testRping(t *testing.T, g *guest) {
	runRping(t, g, pings)
	t.Run("attached", func(t *testing.T) {
		g.drive(t)
		runRping(t, g, pings[3:])
	})
}

func runRping(t *testing.T, g *guest, pings []struct{ size, count int }) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { g.pings(t, f, pings) })
	}
}

// pings runs nd_rping against rping over an IP version, each as server and as client.
func (g *guest) pings(t *testing.T, f family, pings []struct{ size, count int }) {
	for _, p := range pings {
		options := []string{"-v", "-V", "-C", strconv.Itoa(p.count), "-S", strconv.Itoa(p.size), "-p", "7174"}
		t.Run(fmt.Sprintf("%dx%d/server", p.count, p.size), func(t *testing.T) {
			server := g.softvpi(t, append([]string{"nd_rping", "-s", "-a", f.ours.String()}, options...)...)
			server.says(t, "listening")
			client := g.program(t, append([]string{"rping", "-c", "-a", f.ours.String()}, options...)...)
			client.rpingSucceeds(t, programLimit)
			server.succeeds(t, programLimit)
			count(t, "rping", client.text(), "ping data: rdma-ping-", p.count)
			count(t, "nd_rping", server.text(), "server ping data: rdma-ping-", p.count)
		})
		t.Run(fmt.Sprintf("%dx%d/client", p.count, p.size), func(t *testing.T) {
			server := g.program(t, append([]string{"rping", "-s", "-a", f.theirs.String()}, options...)...)
			g.listens(t)
			client := g.softvpi(t, append([]string{"nd_rping", "-c", "-a", f.theirs.String()}, options...)...)
			client.succeeds(t, programLimit)
			server.succeeds(t, programLimit)
			count(t, "nd_rping", client.text(), "ping data: rdma-ping-", p.count)
			count(t, "rping", server.text(), "server ping data: rdma-ping-", p.count)
		})
	}
}
