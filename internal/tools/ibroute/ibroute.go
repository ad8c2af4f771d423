// Package ibroute holds the tools that show the paths of packets: ibroute shows the forwarding tables of a
// switch, ibtracert the hops between two ports.
package ibroute

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// tables is a run of ibroute.
type tables struct {
	*ibdiag.Session
	to                    ibdiag.Route
	all, brief, multicast bool
	first, last           int // 0: not given

	node mad.NodeInfo
	sw   mad.SwitchInfo
	name string
	// of the port of the previous LID, which may have further LIDs
	baseLID, lastLID int
	portGUID         uint64
}

// Main runs ibroute.
func Main(ctx context.Context, env tool.Env) int {
	t := &tables{}
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "<dest dr_path|lid|guid> [<startlid> [<endlid>]]",
		About:     "Shows the forwarding table of a switch.",
		Examples: []string{
			"4                    # LIDs that the switch with LID 4 forwards", "-a 4                 # and those that it drops",
			"-n 4                 # without the names of the destinations", "4 0x10 0x20          # LIDs from 16 to 32",
			"-M 4                 # multicast LIDs",
		},
		Options: []ibdiag.Option{
			ibdiag.Flag(&t.all, "all", 'a', "show all LIDs, those that are dropped too"),
			ibdiag.Flag(&t.brief, "no_dests", 'n', "do not ask the destinations who they are"),
			ibdiag.Flag(&t.multicast, "Multicast", 'M', "show the multicast table"),
			ibdiag.WithNames,
		},
		Without: "K",
		Least:   1, Most: 3,
		Work: func(s *ibdiag.Session, args []string) (err error) {
			t.Session = s
			for i, p := range []*int{&t.first, &t.last} {
				if len(args) > i+1 {
					n, err := ibdiag.ParseNumber("the LID", args[i+1], 0, 0xffff)
					if err != nil {
						return err
					}
					*p = int(n)
				}
			}
			if t.to, err = s.Resolve(args[0]); err != nil {
				return err
			}
			if err := t.look(); err != nil {
				return err
			}
			if t.multicast {
				return t.showMulticast()
			}
			return t.showUnicast()
		},
	})
}

// look reads what the switch is.
func (t *tables) look() error {
	fail := func(err error, text string) error {
		if t.Context.Err() != nil {
			return err
		}
		return ibdiag.Failf("dump tables: %s", text)
	}
	var err error
	if t.node, err = t.NodeInfo(t.to); err != nil {
		return fail(err, "node info failed: valid addr?")
	}
	d, err := t.NodeDescription(t.to)
	if err != nil {
		return fail(err, "node desc failed")
	}
	if t.node.NodeType != mad.NodeSwitch {
		return ibdiag.Failf("dump tables: not a switch")
	}
	if t.sw, err = t.SwitchInfo(t.to); err != nil {
		return fail(err, "switch info failed: is a switch node?")
	}
	t.name = t.Node.Of(t.node.NodeGUID, d.String())
	return nil
}

// short reports what a switch did not answer, at which its tables end. The exit status stays 0, as scripts
// expect.
func (t *tables) short(err error, modifier uint32) error {
	var status *umad.StatusError
	if t.Context.Err() != nil {
		return err
	}
	code := uint16(0)
	if errors.As(err, &status) {
		code = status.Status
	}
	t.Out.Flush()
	fmt.Fprintf(t.Env.Stderr, "SubnGet() failed; MAD status 0x%x AM 0x%x\n", code, modifier)
	return nil
}

func (t *tables) valid() string {
	if t.all {
		return ""
	}
	return "valid "
}

func (t *tables) showUnicast() error {
	if t.last == 0 || t.last > int(t.sw.LinearFDBTop) {
		t.last = int(t.sw.LinearFDBTop)
	}
	if t.last > int(ib.LIDMaxUnicast) {
		t.Warnf("dump_unicast_tables", "illegal lft top %d, truncate to %d", t.last, ib.LIDMaxUnicast)
		t.last = int(ib.LIDMaxUnicast)
	}
	t.Printf("Unicast lids [0x%x-0x%x] of switch %s guid %s (%s):\n", t.first, t.last, t.to, ibdiag.Hex64(t.node.NodeGUID), t.name)
	t.Printf("  Lid  Out   Destination\n       Port     Info \n")
	const inBlock = len(mad.LinearForwardingTable{})
	n := 0
	for block := t.first / inBlock; block <= t.last/inBlock; block++ {
		a, err := t.Get(t.to, mad.AttrLinearForwardingTable, uint32(block))
		if err != nil {
			return t.short(err, uint32(block))
		}
		for i, port := range a.Data {
			lid := block*inBlock + i
			known := port <= t.node.NumPorts
			if lid < t.first || lid > t.last || !known && !t.all {
				continue
			}
			text, err := t.destination(lid, known)
			if err != nil {
				return err
			}
			t.Printf("0x%04x %03d %s\n", lid, port, text)
			n++
		}
	}
	t.Printf("%d %slids dumped \n", n, t.valid())
	return nil
}

// destination returns who has the LID; known: the switch forwards it.
func (t *tables) destination(lid int, known bool) (string, error) {
	switch {
	case t.brief:
		return "", nil
	case lid <= t.lastLID && !known:
		return fmt.Sprintf(": (path #%d - illegal port)", lid-t.baseLID), nil
	case lid <= t.lastLID && t.portGUID == 0:
		return fmt.Sprintf(": (path #%d out of %d)", lid-t.baseLID+1, t.lastLID-t.baseLID+1), nil
	case lid <= t.lastLID:
		return fmt.Sprintf(": (path #%d out of %d: portguid %s)", lid-t.baseLID+1, t.lastLID-t.baseLID+1, ibdiag.Hex64(t.portGUID)), nil
	case !known:
		return ": (illegal port)", nil
	}
	t.portGUID = 0
	to := ibdiag.LIDRoute(ib.LID(lid))
	d, err := t.NodeDescription(to)
	var p mad.PortInfo
	var n mad.NodeInfo
	if err == nil {
		p, err = t.PortInfo(to, 0)
	}
	if err == nil {
		n, err = t.NodeInfo(to)
	}
	if err != nil {
		return ": (unknown node and type)", t.Context.Err()
	}
	t.portGUID = n.PortGUID
	if p.LMC > 0 {
		t.baseLID, t.lastLID = int(p.LID), int(p.LID)+(1<<p.LMC)-1
	}
	return fmt.Sprintf(": (%s portguid %s: '%s')", ibdiag.NodeType(n.NodeType), ibdiag.Hex64(n.PortGUID),
		t.Node.Of(n.NodeGUID, d.String())), nil
}

const (
	portsInMask   = 16 // of a block of a multicast table
	lastMulticast = 0xfffe
)

// span determines the multicast LIDs to show.
func (t *tables) span() {
	const where, first = "dump_multicast_tables", int(ib.LIDFirstMulticast)
	end := first + int(t.sw.MulticastFDBCap) - 1
	if t.last == 0 || t.last > end {
		t.last = end
	}
	if top := int(t.sw.MulticastFDBTop); !t.all && top != 0 && top < t.last {
		if top < first-1 {
			t.Warnf(where, "illegal top mlid %x", top)
		} else {
			t.last = top
		}
	}
	if t.first != 0 && t.first < first {
		t.Warnf(where, "illegal start mlid %x, set to %x", t.first, first)
	}
	t.first = max(t.first, first)
	if t.last > lastMulticast {
		t.Warnf(where, "illegal end mlid %x, truncate to %x", t.last, lastMulticast)
		t.last = lastMulticast
	}
}

func (t *tables) showMulticast() error {
	t.span()
	t.Printf("Multicast mlids [0x%x-0x%x] of switch %s guid %s (%s):\n", t.first, t.last, t.to, ibdiag.Hex64(t.node.NodeGUID), t.name)
	t.head()
	if t.Verbose > 0 {
		t.Printf("Switch multicast mlid capability is %d top is 0x%x\n", t.sw.MulticastFDBCap, t.sw.MulticastFDBTop)
	}
	const inBlock = len(mad.MulticastForwardingTable{})
	masks := make([]mad.MulticastForwardingTable, int(t.node.NumPorts)/portsInMask+1)
	n := 0
	for block := t.first / inBlock; block <= t.last/inBlock; block++ {
		for i := range masks {
			modifier := uint32(block-int(ib.LIDFirstMulticast)/inBlock) | uint32(i)<<28
			a, err := t.Get(t.to, mad.AttrMulticastForwardingTable, modifier)
			if err != nil {
				return t.short(err, modifier)
			}
			if masks[i], err = mad.ParseMulticastForwardingTable(a.Data[:]); err != nil {
				return err
			}
		}
		for i := range inBlock {
			if lid := block*inBlock + i; lid >= t.first && lid <= t.last && t.group(lid, masks, i) {
				n++
			}
		}
	}
	t.Printf("%d %smlids dumped \n", n, t.valid())
	return nil
}

// head prints the lines above the ports of the groups.
func (t *tables) head() {
	if t.brief {
		t.Printf(" MLid       Port Mask\n")
		return
	}
	ports := int(t.node.NumPorts)
	if ports > 9 {
		t.Printf("            ")
		for i := range ports + 1 {
			if i%10 == 0 {
				t.Printf("%d ", i/10%10)
			} else {
				t.Printf("  ")
			}
		}
		t.Printf("\n")
	}
	t.Printf("     Ports: ")
	for i := range ports + 1 {
		t.Printf("%d ", i%10)
	}
	t.Printf("\n MLid\n")
}

// group shows entry i of the masks, and reports whether it did.
func (t *tables) group(lid int, masks []mad.MulticastForwardingTable, i int) bool {
	var any uint16
	var b strings.Builder
	for _, m := range masks {
		any |= m[i]
	}
	if any == 0 && !t.all {
		return false
	}
	if t.brief {
		for _, m := range masks {
			fmt.Fprintf(&b, "%04x", m[i])
		}
	} else {
		for port := range int(t.node.NumPorts) + 1 {
			if masks[port/portsInMask][i]>>(port%portsInMask)&1 != 0 {
				b.WriteString("x ")
			} else {
				b.WriteString("  ")
			}
		}
	}
	t.Printf("0x%04x      %s\n", lid, b.String())
	return true
}
