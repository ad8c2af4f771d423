// Package ibqueryerrors holds the tools that process the counters of a whole fabric: ibqueryerrors reports
// errors, ibclearerrors resets them.
package ibqueryerrors

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

const defaultThresholds = "/etc/infiniband-diags/error_thresholds"

// errorCounters lists the counters that are compared with thresholds, in the order in which they are
// shown.
var errorCounters = []string{
	"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors",
	"PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors", "PortRcvConstraintErrors",
	"LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors", "VL15Dropped", "PortXmitWait",
}

// thresholds are the values above which counters are reported.
type thresholds struct {
	values map[string]uint64
	text   string
}

// readThresholds reads lines with a counter, = and a number. If the default file does not exist all
// thresholds are 0.
func readThresholds(file string) (thresholds, error) {
	t := thresholds{values: map[string]uint64{}}
	f, err := inputfile.Open(file, inputfile.Text)
	if errors.Is(err, os.ErrNotExist) && file == defaultThresholds {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		name, text, ok := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if name == "" || name[0] == '#' {
			continue
		}
		v, err := strconv.ParseUint(text, 0, 64)
		if !ok || err != nil || !slices.Contains(errorCounters, name) {
			return t, fmt.Errorf("%s, line %d: %q is not a threshold; allowed: one of %s, =, and a number", file, n, lines.Text(),
				strings.Join(errorCounters, ", "))
		}
		t.values[name] = v
		t.text += fmt.Sprintf("[%s = %d]", name, v)
	}
	return t, lines.Err()
}

// query is a run of ibqueryerrors.
type query struct {
	*ibdiag.Session
	scan                     ibdiag.Scan
	suppressed               []string
	report, data, only       bool
	details                  bool
	clearErrors, clearCounts bool
	types                    []mad.NodeType
	guid                     uint64
	route, file              string
	limits                   thresholds

	nodes, badNodes, ports, badPorts, failures int
}

// Main runs ibqueryerrors.
func Main(ctx context.Context, env tool.Env) int {
	q := &query{file: defaultThresholds}
	only := func(long, help string, t mad.NodeType) ibdiag.Option {
		return ibdiag.Option{Long: long, Help: help, Set: func(string) error { q.types = append(q.types, t); return nil }}
	}
	nothing := func(string) error { return nil }
	options := append([]ibdiag.Option{
		{Long: "suppress", Letter: 's', Argument: "<err1,err2,...>", Help: "counters to skip", Set: q.suppress},
		{Long: "suppress-common", Letter: 'c', Help: "leave out PortRcvSwitchRelayErrors",
			Set: func(string) error { return q.suppress("PortRcvSwitchRelayErrors") }},
		ibdiag.WithNames,
		ibdiag.Number(&q.guid, "port-guid", 'G', "<port_guid>", "report the node with this port GUID only", 1, 1<<64-1),
		ibdiag.Number(&q.guid, "switch-guid", 'S', "<port_guid>", "the same", 1, 1<<64-1),
		ibdiag.Text(&q.route, "Direct", 'D', "<dr_path>", "report the node at the end of a directed route only"),
		{Long: "skip-sl", Help: "no effect: service levels are not queried", Set: nothing},
		ibdiag.Flag(&q.report, "report-port", 'r', "show the links of ports with errors"),
		ibdiag.Text(&q.file, "threshold-file", 0, "<file>", "thresholds in place of "+defaultThresholds),
		{Long: "GNDN", Letter: 'R', Help: "nothing", Set: nothing},
		ibdiag.Flag(&q.data, "data", 0, "also show the data counters of ports with errors"),
		only("switch", "switches only", mad.NodeSwitch), only("ca", "adapters only", mad.NodeCA),
		only("router", "routers only", mad.NodeRouter),
		ibdiag.Flag(&q.details, "details", 0, "also show why packets were not sent or were bad"),
		ibdiag.Flag(&q.only, "counters", 0, "show the data counters of all ports, and no errors"),
		ibdiag.Flag(&q.clearErrors, "clear-errors", 'k', "reset the error counters after showing"),
		ibdiag.Flag(&q.clearCounts, "clear-counts", 'K', "reset the data counters after showing"),
	}, q.scan.Options()...)
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		About:   "Reports the ports of the fabric whose error counters are above their thresholds. Exit status 1 means that there are some.",
		Options: options, Without: "DGKLs",
		Work: func(s *ibdiag.Session, _ []string) error {
			q.Session = s
			return q.run()
		},
	})
}

func (q *query) suppress(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(errorCounters, name) {
			return tool.Usagef("%q is suppressed; allowed: %s, with commas", name, strings.Join(errorCounters, ", "))
		}
		q.suppressed = append(q.suppressed, name)
	}
	return nil
}

func (q *query) run() (err error) {
	if q.limits, err = readThresholds(q.file); err != nil {
		return tool.Usagef("--threshold-file: %v", err)
	}
	nodes, err := q.chosen()
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if len(q.types) == 0 || slices.Contains(q.types, n.Info.NodeType) {
			q.node(n)
		}
		if err := q.Context.Err(); err != nil {
			return err
		}
	}
	q.Printf("\n## Summary: %d nodes checked, %d bad nodes found\n", q.nodes, q.badNodes)
	q.Printf("##          %d ports checked, %d ports have errors beyond threshold\n", q.ports, q.badPorts)
	q.Printf("## Thresholds: %s\n", q.limits.text)
	if q.failures > 0 {
		q.Printf("##          %d PMA query failures\n", q.failures)
	}
	q.Printf("## Suppressed:")
	for _, name := range q.suppressed {
		q.Printf(" %s", name)
	}
	q.Printf("\n")
	if q.badPorts > 0 {
		return ibdiag.Ended(1)
	}
	return nil
}

// chosen returns the nodes to report.
func (q *query) chosen() ([]*discovery.Node, error) {
	f, err := q.Fabric(q.scan, discovery.Options{})
	if err != nil {
		return nil, err
	}
	guid := q.guid
	if q.route != "" {
		path, err := ibdiag.ParsePath(q.route)
		if err != nil {
			return nil, err
		}
		n, err := q.NodeInfo(ibdiag.DirectRoute(path[1:]...))
		if err != nil {
			return nil, ibdiag.Failf("Failed to query local Node Info")
		}
		guid = n.PortGUID
	}
	if guid == 0 {
		return f.Backwards(), nil
	}
	p := f.PortByGUID(guid)
	if p == nil {
		return nil, ibdiag.Failf("Failed to find node: 0x%016x", guid)
	}
	return []*discovery.Node{p.Node}, nil
}
