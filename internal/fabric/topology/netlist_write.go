package topology

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// WriteNetlist writes the topology in the format of ibnetdiscover, with the nodes' own IDs; ReadNetlist
// and ibsim read it. The error is a *netlistError for text that cannot be written in a netlist, or that of
// w.
func (t *Topology) WriteNetlist(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i := range t.Nodes {
		if err := t.writeNode(b, &t.Nodes[i]); err != nil {
			return err
		}
	}
	return b.Flush()
}

func (t *Topology) writeNode(b *bufio.Writer, n *Node) error {
	if n.ID == "" || strings.ContainsAny(n.ID, "\"#\r\n") {
		return &netlistError{0, "node id", fmt.Sprintf("is %q, want text without quotes, # and line ends", n.ID)}
	}
	if strings.ContainsAny(n.Description, "\r\n") {
		return &netlistError{0, "node description", fmt.Sprintf("is %q, want text without line ends", n.Description)}
	}
	fmt.Fprintf(b, "vendid=0x%x\ndevid=0x%x\nsysimgguid=0x%x\n", n.VendorID, n.DeviceID, n.SystemImageGUID)
	switch n.Type {
	case mad.NodeSwitch:
		kind := "base"
		if n.EnhancedPort0 {
			kind = "enhanced"
		}
		fmt.Fprintf(b, "switchguid=0x%x(%x)\nSwitch\t%d \"%s\"\t\t# \"%s\" %s port 0 lid %d lmc %d\n",
			n.GUID, n.Ports[0].GUID, n.NumPorts(), n.ID, n.Description, kind, n.Ports[0].LID, n.Ports[0].LMC)
	case mad.NodeRouter:
		fmt.Fprintf(b, "rtguid=0x%x\nRt\t%d \"%s\"\t\t# \"%s\"\n", n.GUID, n.NumPorts(), n.ID, n.Description)
	default:
		fmt.Fprintf(b, "caguid=0x%x\nCa\t%d \"%s\"\t\t# \"%s\"\n", n.GUID, n.NumPorts(), n.ID, n.Description)
	}
	for i := range n.Ports {
		if n.Ports[i].Linked() {
			t.writePort(b, n, i)
		}
	}
	_, err := b.WriteString("\n")
	return err
}

func (t *Topology) writePort(b *bufio.Writer, n *Node, number int) {
	p := &n.Ports[number]
	peer := &t.Nodes[p.Peer]
	fmt.Fprintf(b, "[%d]", number)
	if n.Type != mad.NodeSwitch {
		fmt.Fprintf(b, "(%x) ", p.GUID)
	}
	fmt.Fprintf(b, "\t\"%s\"[%d]", peer.ID, p.PeerPort)
	if peer.Type != mad.NodeSwitch {
		fmt.Fprintf(b, "(%x) ", peer.Ports[p.PeerPort].GUID)
	}
	b.WriteString("\t\t# ")
	if n.Type != mad.NodeSwitch {
		fmt.Fprintf(b, "lid %d lmc %d ", p.LID, p.LMC)
	}
	fmt.Fprintf(b, "\"%s\" lid %d %dx%s\n", peer.Description, peer.lidAt(p.PeerPort), mad.Lanes(p.Width), p.Speed)
}

// lidAt returns the LID of a port: all ports of a switch share one.
func (n *Node) lidAt(port uint8) ib.LID {
	if n.Type == mad.NodeSwitch {
		return n.Ports[0].LID
	}
	return n.Ports[port].LID
}
