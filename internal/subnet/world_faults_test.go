package subnet_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/wire/mad"
)

// cable is a link, named by its place at one end.
type cable = fabric.Place

// joined returns for each node whether uncut links connect it with the first port of an adapter. Only switches
// forward packets.
func joined(top *topology.Topology, from int, cut map[cable]bool) []bool {
	seen := make([]bool, len(top.Nodes))
	seen[from] = true
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if top.Nodes[n].Type != mad.NodeSwitch && n != from {
			continue
		}
		for p := range top.Nodes[n].Ports {
			q := &top.Nodes[n].Ports[p]
			if n == from && p != 1 || !q.Linked() || seen[q.Peer] || cut[cable{Node: n, Port: uint8(p)}] ||
				cut[cable{Node: int(q.Peer), Port: q.PeerPort}] {
				continue
			}
			seen[q.Peer] = true
			queue = append(queue, int(q.Peer))
		}
	}
	return seen
}

func randomTopology(t *rapid.T) *topology.Topology {
	var top *topology.Topology
	var err error
	hosts := rapid.IntRange(1, 2).Draw(t, "hosts")
	switch rapid.SampledFrom([]string{"star", "tree", "deep tree", "torus", "dragonfly"}).Draw(t, "shape") {
	case "star":
		top, err = topology.Star(rapid.IntRange(2, 8).Draw(t, "adapters"), topology.Rate{})
	case "tree":
		top, err = topology.FatTree(topology.FatTreeShape{Radix: 6, Levels: 2, Hosts: rapid.IntRange(4, 18).Draw(t, "adapters"),
			HostPorts: hosts}, topology.Rate{})
	case "deep tree":
		top, err = topology.FatTree(topology.FatTreeShape{Radix: 4, Levels: 3, Hosts: rapid.IntRange(4, 16).Draw(t, "adapters"),
			HostPorts: hosts}, topology.Rate{})
	case "torus":
		top, err = topology.Torus([]int{rapid.IntRange(2, 4).Draw(t, "x"), rapid.IntRange(2, 3).Draw(t, "y")}, hosts, topology.Rate{})
	default:
		top, err = topology.Dragonfly(3, 2, hosts, 1, topology.Rate{})
	}
	if err != nil {
		t.Skip(err)
	}
	return top
}

// TestRandomFaults: whatever goes wrong with cables, nodes, packets and managers, in the end everything that is
// connected works: every adapter reaches every node, and one manager is master.
func TestRandomFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := randomTopology(t)
		w := newWorld(t, top, nil)
		var links []cable
		var adapters []int
		for i := range top.Nodes {
			for p := range top.Nodes[i].Ports {
				if q := &top.Nodes[i].Ports[p]; q.Linked() && int(q.Peer) > i {
					links = append(links, cable{Node: i, Port: uint8(p)})
				}
			}
			if top.Nodes[i].Type == mad.NodeCA {
				adapters = append(adapters, i)
			}
		}
		cfg := subnet.Config{Sweep: 2 * time.Second, PollInterval: time.Second, PollRetries: 2, Retries: 5, Timeout: 20 * time.Millisecond,
			LMC: uint8(rapid.IntRange(0, 2).Draw(t, "LMC")), Engines: []string{rapid.SampledFrom(routing.EngineNames()).Draw(t, "engine")}}
		if rapid.Bool().Draw(t, "key") {
			cfg.MKey, cfg.MKeyProtect, cfg.MKeyLease = 7, 1, 5
		}
		home, second := adapters[0], adapters[len(adapters)-1]
		high := cfg
		high.Priority = 3
		w.manager(home, high)
		standby := w.manager(second, cfg)
		w.run(4 * time.Second)
		cut, killed := map[cable]bool{}, false
		for range rapid.IntRange(0, 8).Draw(t, "faults") {
			link := rapid.SampledFrom(links).Draw(t, "link")
			switch rapid.SampledFrom([]string{"unlink", "unlink", "relink", "reset", "loss", "rate", "kill"}).Draw(t, "fault") {
			case "unlink":
				w.f.Unlink(w.now, link)
				cut[link] = true
			case "relink":
				w.f.Relink(w.now, link)
				delete(cut, link)
			case "reset":
				w.f.Reset(w.now, rapid.IntRange(0, len(top.Nodes)-1).Draw(t, "node"))
			case "loss":
				w.f.SetLoss(link, 0.3)
			case "rate":
				w.f.SetRate(w.now, link, topology.Rate{Width: mad.Width1x, Speed: mad.SpeedSDR})
			case "kill":
				if !killed && len(w.sms) == 2 {
					w.kill(w.sms[0])
					killed = true
				}
			}
			w.run(time.Duration(rapid.IntRange(0, 1500).Draw(t, "pause")) * time.Millisecond)
		}
		for _, l := range links {
			w.f.SetLoss(l, 0)
		}
		w.run(60 * time.Second)
		from := home
		if killed {
			from = second
		}
		part := joined(top, from, cut)
		for i := range top.Nodes { // asked by their first ports
			if q := &top.Nodes[i].Ports[min(1, len(top.Nodes[i].Ports)-1)]; top.Nodes[i].Type == mad.NodeCA &&
				(cut[cable{Node: i, Port: 1}] || cut[cable{Node: int(q.Peer), Port: q.PeerPort}]) {
				part[i] = false
			}
		}
		masters := 0
		for _, s := range w.sms {
			if (part[s.at.Node] || s.at.Node == from) && s.sm.State() == mad.SMMaster {
				masters++
			}
		}
		if masters != 1 {
			t.Fatalf("%d managers are master (the standby is in state %v): %v", masters, standby.sm.State(), w.log[max(0, len(w.log)-30):])
		}
		w.allReach(top, from, part)
	})
}
