package lan

import (
	"fmt"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/bridge"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
)

func listPorts(n *Network, now clock.Time, _ []string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %-16s %-5s %10s %12s %12s %10s %8s %8s %8s\n", "port", "to", "state", "rate", "frames in", "frames out", "queued", "marked",
		"dropped", "pauses")
	n.Each(func(e ethernet.End) {
		s := n.State(now, e)
		state, rate := "down", "-"
		if s.Up {
			state = "up"
		}
		if s.Rate > 0 {
			rate = rateText(s.Rate)
		}
		fmt.Fprintf(&b, "%-16s %-16s %-5s %10s %12d %12d %10d %8d %8d %8d\n", n.endName(e), s.Peer, state, rate, s.InFrames, s.OutFrames, s.Queued,
			s.Marked, s.QueueDrops+s.BufferDrops+s.HeadroomDrops+s.TooLong+s.Lost, s.PausesSent)
	})
	return b.String(), nil
}

func showPort(n *Network, now clock.Time, args []string) (string, error) {
	a, err := n.end(args[0])
	if err != nil {
		return "", err
	}
	s := n.State(now, a)
	return counterLines(&s), nil
}

func listMACs(n *Network, now clock.Time, args []string) (string, error) {
	node := n.Find(args[0])
	if node < 0 || n.Host(node) {
		return "", refuse("node %q is no switch of the Ethernet", args[0])
	}
	var b strings.Builder
	table := n.fabric.Switch(node).Table
	if n.domain != nil {
		table = func(now clock.Time) []bridge.Entry { return n.domain.Table(now, node) }
	}
	for _, e := range table(now) {
		fmt.Fprintf(&b, "%v VLAN %d at %s, heard %v ago\n", e.MAC, e.VLAN, n.endName(ethernet.End{Node: node, Port: e.Port}),
			e.Age.Round(time.Second))
	}
	return b.String(), nil
}
