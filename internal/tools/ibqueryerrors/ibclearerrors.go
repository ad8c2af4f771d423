package ibqueryerrors

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"strconv"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// place is where counters are: a port at a LID.
type place struct {
	lid  ib.LID
	port uint8
}

// target is a node with the places of its counters.
type target struct{ places []place }

// Clear runs ibclearerrors.
func Clear(ctx context.Context, env tool.Env) int {
	var scan ibdiag.Scan
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		Arguments: "[<topology-file>]",
		About:     "Resets the error counters in PortCounters of all nodes of the fabric, or of those in a topology file of ibnetdiscover.",
		Options:   scan.Options(), Without: "DGKLs", Most: 1,
		Work: func(s *ibdiag.Session, args []string) error {
			var nodes []target
			if len(args) == 1 {
				f, err := inputfile.Open(args[0], inputfile.Net)
				if err != nil {
					return tool.Usagef("topology file: %v", err)
				}
				defer f.Close()
				if nodes, err = readTopology(f); err != nil {
					return err
				}
			} else {
				f, err := s.Fabric(scan, discovery.Options{})
				if err != nil {
					return err
				}
				nodes = targets(f)
			}
			return reset(s, nodes)
		},
	})
}

func reset(s *ibdiag.Session, nodes []target) error {
	cleared, failed := 0, 0
	for _, n := range nodes {
		good := true
		for _, p := range n.places {
			if err := s.ClearCounters(ibdiag.LIDRoute(p.lid), mad.PortCounters, p.port, maskErrors); err != nil {
				if s.Context.Err() != nil {
					return err
				}
				s.Warnf("ibclearerrors", "cannot reset the counters of lid %d port %d: %s", p.lid, p.port, err)
				good = false
			}
		}
		if good {
			cleared++
		} else {
			failed++
		}
	}
	s.Printf("\n## Summary: %d nodes cleared %d errors\n", cleared, failed)
	if failed > 0 {
		return ibdiag.Ended(ibdiag.Failed)
	}
	return nil
}

// targets returns the nodes of a fabric; for a switch all ports are reset at once.
func targets(f *discovery.Fabric) (nodes []target) {
	for _, n := range f.Backwards() {
		var t target
		if n.IsSwitch() {
			t.places = []place{{n.LID, mad.PMAAllPorts}}
		} else {
			for _, p := range n.Ports {
				if p != nil && p.LID != 0 {
					t.places = append(t.places, place{p.LID, p.Num})
				}
			}
		}
		nodes = append(nodes, t)
	}
	return nodes
}

// The lines of a topology file that contain LIDs: a switch, the beginning of another node, and a port of
// that.
var (
	switchLine = regexp.MustCompile(`^Switch\s.*\sport 0 lid (\d+) lmc`)
	otherLine  = regexp.MustCompile(`^(?:Ca|Rt)\s`)
	portLine   = regexp.MustCompile(`^\[(\d+)\]\([0-9a-f]+\)\s.*#\s*lid (\d+) lmc`)
)

// readTopology reads the nodes of a topology file.
func readTopology(in io.Reader) (nodes []target, err error) {
	number := func(text string, high uint64) uint64 {
		n, e := strconv.ParseUint(text, 10, 64)
		if (e != nil || n > high) && err == nil {
			err = tool.Usagef("the topology file has the number %s; allowed: 0 to %d", text, high)
		}
		return n
	}
	var adapter *target
	lines := bufio.NewScanner(in)
	for lines.Scan() && err == nil {
		line := lines.Text()
		if m := switchLine.FindStringSubmatch(line); m != nil {
			nodes = append(nodes, target{[]place{{ib.LID(number(m[1], 0xbfff)), mad.PMAAllPorts}}})
			adapter = nil
		} else if otherLine.MatchString(line) {
			nodes = append(nodes, target{})
			adapter = &nodes[len(nodes)-1]
		} else if m := portLine.FindStringSubmatch(line); m != nil && adapter != nil {
			adapter.places = append(adapter.places, place{ib.LID(number(m[2], 0xbfff)), uint8(number(m[1], 254))})
		}
	}
	if err == nil {
		err = lines.Err()
	}
	if err == nil && len(nodes) == 0 {
		err = tool.Usagef("the topology file names no node")
	}
	return nodes, err
}
