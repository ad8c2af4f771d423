package ibdiagnet

import (
	"fmt"
	"os"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/wire/mad"
)

// writeTopology writes the discovered topology as a topology file, for a later -t.
func (c *check) writeTopology() error {
	if c.written == "" {
		return nil
	}
	f, err := os.Create(c.written)
	if err != nil {
		return ibdiag.Failf("%s", err)
	}
	err = c.foundTopology().WriteNetlist(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return ibdiag.Failf("the topology cannot be written: %s", err)
	}
	return nil
}

// foundTopology returns the discovered topology.
func (c *check) foundTopology() *topology.Topology {
	t := &topology.Topology{}
	for _, n := range c.f.Nodes {
		letter := map[mad.NodeType]string{mad.NodeSwitch: "S", mad.NodeRouter: "R"}[n.Info.NodeType]
		if letter == "" {
			letter = "H"
		}
		to := topology.Node{ID: fmt.Sprintf("%s-%016x", letter, n.Info.NodeGUID), Description: describe(n), Type: n.Info.NodeType,
			GUID:            n.Info.NodeGUID,
			SystemImageGUID: n.Info.SystemImageGUID, VendorID: n.Info.VendorID, DeviceID: n.Info.DeviceID,
			EnhancedPort0: n.Switch.EnhancedPort0,
			Ports:         make([]topology.Port, int(n.Info.NumPorts)+1)}
		for num := range to.Ports {
			to.Ports[num] = c.foundPort(n, num)
		}
		t.Nodes = append(t.Nodes, to)
	}
	return t
}

func (c *check) foundPort(n *discovery.Node, num int) topology.Port {
	q := topology.Port{Peer: topology.NoPeer, GUID: n.Info.PortGUID}
	p := n.Port(uint8(num))
	if p == nil {
		return q
	}
	q.GUID, q.LID, q.LMC = p.GUID, p.BaseLID(), p.LMC
	if r := p.Remote; r != nil {
		q.Peer, q.PeerPort = int32(c.place[r.Node]), r.Num
		q.Width, q.Speed = p.Info.LinkWidthActive, p.Info.ActiveSpeed()
	}
	return q
}
