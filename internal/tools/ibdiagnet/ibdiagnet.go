// Package ibdiagnet holds two tools that look for faults: ibdiagnet in a whole fabric, ibdiagpath on one
// path. Their format is that of ibutils.
package ibdiagnet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

// Environment variables for options that are not given (WinOF 5.50, "Utilities Usage").
const (
	topologyVariable = "IBDIAG_TOPO_FILE"
	systemVariable   = "IBDIAG_SYS_NAME"
	portVariable     = "IBDIAG_PORT_NUM"
	deviceVariable   = "IBDIAG_DEV_IDX"
)

const rule = "-I---------------------------------------------------\n"

// local holds the options that both tools have.
type local struct {
	*ibdiag.Session
	topology, system, port, device, dir string
	portNum                             int // of port; 0: not given
	count                               uint64
	topo                                *topology.Topology
}

func newLocal(dir string) *local {
	return &local{
		topology: os.Getenv(topologyVariable), system: os.Getenv(systemVariable), port: os.Getenv(portVariable),
		device: os.Getenv(deviceVariable),
		dir:    dir, count: 10,
	}
}

func (l *local) options() []ibdiag.Option {
	return []ibdiag.Option{
		ibdiag.Number(&l.count, "count", 'c', "<count>", "least number of packets across each link", 1, 1000),
		ibdiag.Text(&l.dir, "out-dir", 'o', "<dir>", "directory for files"),
		ibdiag.Text(&l.topology, "topo-file", 't', "<file>", "topology file, in ibnetdiscover's format; default: "+topologyVariable),
		ibdiag.Text(&l.system, "sys-name", 's', "<name>", "name of this node in it; default: "+systemVariable),
		ibdiag.Text(&l.device, "dev-index", 'i', "<index>", "index of the adapter, from 1; default: "+deviceVariable),
		ibdiag.Text(&l.port, "port-num", 'p', "<port>", "port of the adapter; default: "+portVariable),
	}
}

// ready checks everything that does not depend on the fabric, and reads the topology file.
func (l *local) ready() error {
	if l.device != "" && l.device != "1" {
		return tool.Usagef("the adapter's index is %q; allowed: 1", l.device)
	}
	if l.port != "" {
		n, err := ibdiag.ParseNumber("the port", l.port, 1, 254)
		if err != nil {
			return err
		}
		l.portNum = int(n)
	}
	if l.topology == "" {
		return nil
	}
	return l.readTopology()
}

// begin selects the port, and says from where the fabric is examined.
func (l *local) begin() error {
	if l.portNum != 0 {
		if ports := l.Port.Device().Ports; l.portNum > ports {
			return tool.Usagef("the port is %q; allowed: 1 to %d", l.port, ports)
		}
		if err := l.UsePort(l.portNum); err != nil {
			return err
		}
	}
	if l.topology == "" {
		l.Printf("-W- Topology file is not specified.\n    Reports regarding cluster links will use direct routes.\n")
	}
	l.Printf("-I- Using port %d as the local port.\n", l.Port.Device().PortNum)
	return nil
}

func (l *local) readTopology() error {
	f, err := inputfile.Open(l.topology, inputfile.Net)
	if err != nil {
		return tool.Usagef("the topology file cannot be read: %s; allowed: a file of ibnetdiscover", err)
	}
	defer f.Close()
	if l.topo, err = topology.ReadNetlist(f); err != nil {
		return tool.Usagef("the topology file %s: %s; allowed: a file of ibnetdiscover", l.topology, err)
	}
	if l.system != "" && l.named(l.system) == nil {
		return tool.Usagef("the system %q is not in the topology file; allowed: a node of it", l.system)
	}
	return nil
}

// named returns the node of the topology file with that name, or nil.
func (l *local) named(name string) *topology.Node {
	for i := range l.topo.Nodes {
		if n := &l.topo.Nodes[i]; n.ID == name || n.Description == name || firstWord(n.Description) == name {
			return n
		}
	}
	return nil
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

func describe(n *discovery.Node) string { return ibdiag.Printable(n.Description.String()) }

// shown returns a port as reports name it.
func shown(p *discovery.Port) string {
	n := p.Node
	text := fmt.Sprintf("lid=0x%04x guid=0x%016x dev=%d ", uint16(p.BaseLID()), p.GUID, n.Info.DeviceID)
	if n.IsSwitch() {
		return text + fmt.Sprintf("Port=%d", p.Num)
	}
	return fmt.Sprintf("%s%s/P%d", text, firstWord(describe(n)), p.Num)
}

// check is a run of ibdiagnet.
type check struct {
	*local
	routes, clear bool
	all           bool   // show all counters in the file
	written       string // file for the discovered topology
	limits        map[string]uint64
	width         string
	speed         string
	skip          map[string]bool
	f             *discovery.Fabric
	place         map[*discovery.Node]int // index of the nodes in order of discovery
	faults        []*discovery.Fault
	met           map[*discovery.Port][][]uint8 // the routes by which each port was met in the first walk
	stages        []stage
	text          strings.Builder // for the log
}

// stage is a check with its results.
type stage struct {
	name             string
	errors, warnings int
}

// Main runs ibdiagnet.
func Main(ctx context.Context, env tool.Env) int {
	c := &check{local: newLocal(os.TempDir()), limits: map[string]uint64{}, skip: map[string]bool{}}
	options := append(c.options(),
		ibdiag.Flag(&c.routes, "routing", 'r', "also check routing, and report subnet managers"),
		ibdiag.Flag(&c.clear, "pc", 0, "reset the counters of all ports first"),
		ibdiag.Flag(&c.all, "pm", 0, "write all counters of all ports into the file .pm"),
		ibdiag.Text(&c.written, "wt", 0, "<file>", "write the topology that was found, in ibnetdiscover's format"),
		ibdiag.Option{Long: "P", Letter: 'P', Argument: "<counter=limit>", Help: "report the counter above this limit", Set: c.limit},
		ibdiag.Text(&c.width, "lw", 0, "<1x|4x|8x|12x>", "width that links should have"),
		ibdiag.Text(&c.speed, "ls", 0, "<2.5|5|10|14|25|50|100|200>", "speed that links should have, in Gb/s"),
		ibdiag.Keys(&c.skip, "skip", "checks to skip", "dup_guids", "zero_guids", "pm", "logical_state", "part", "ipoib", "all"))
	return ibdiag.Run(ctx, env, ibdiag.Tool{
		About:   "Walks the fabric and looks for faults in it. Exit status 1 means that there are some.",
		Options: options, Without: "PLGDsKCde", OneDash: true,
		Ready: c.ready,
		Work: func(s *ibdiag.Session, _ []string) error {
			c.Session = s
			return c.run()
		},
	})
}

func (c *check) limit(text string) error {
	name, value, _ := strings.Cut(text, "=")
	v, err := strconv.ParseUint(value, 0, 64)
	if _, ok := counterNames[name]; !ok || err != nil {
		return fmt.Errorf("allowed: a counter such as symbol_error_counter, =, and a number")
	}
	c.limits[name] = v
	return nil
}

func (c *check) run() error {
	start := time.Now()
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return ibdiag.Failf("cannot make %s: %s", c.dir, err)
	}
	if err := c.begin(); err != nil {
		return err
	}
	if err := c.walk(); err != nil {
		return err
	}
	for _, step := range []func() error{
		c.identities, c.states, c.general, c.counters, c.partitions, c.multicast, c.links, c.topologyMatch, c.managers, c.forwarding,
	} {
		if err := step(); err != nil {
			return err
		}
		if err := c.Context.Err(); err != nil {
			return err
		}
	}
	return c.end(time.Since(start))
}

func (c *check) ready() error {
	if c.width != "" && !map[string]bool{"1x": true, "2x": true, "4x": true, "8x": true, "12x": true}[c.width] {
		return tool.Usagef("-lw is %q; allowed: 1x, 2x, 4x, 8x, 12x", c.width)
	}
	if _, ok := speedNames[c.speed]; c.speed != "" && !ok {
		return tool.Usagef("-ls is %q; allowed: 2.5, 5, 10, 14, 25, 50, 100, 200", c.speed)
	}
	return c.local.ready()
}

var speedNames = map[string]mad.Speed{
	"2.5": mad.SpeedSDR, "5": mad.SpeedDDR, "10": mad.SpeedQDR, "14": mad.SpeedFDR, "25": mad.SpeedEDR, "50": mad.SpeedHDR,
	"100": mad.SpeedNDR, "200": mad.SpeedXDR,
}

// printf prints, and records for the log.
func (c *check) printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.text.WriteString(text)
	c.Out.WriteString(text)
}

// title begins a section.
func (c *check) title(text string) { c.printf("\n%s-I- %s\n%s", rule, text, rule) }

func (c *check) stage(name string, errors, warnings int) {
	c.stages = append(c.stages, stage{name, errors, warnings})
}

// write creates a file of the report.
func (c *check) write(suffix, text string) error {
	if err := os.WriteFile(filepath.Join(c.dir, "ibdiagnet."+suffix), []byte(text), 0o644); err != nil {
		return ibdiag.Failf("%s", err)
	}
	return nil
}

// end shows the summary.
func (c *check) end(took time.Duration) error {
	const line = "----------------------------------------------------------------\n"
	c.printf("%s-I- Stages Status Report:\n    %-41s%-7s%s\n", line, "STAGE", "Errors", "Warnings")
	bad := 0
	for _, s := range c.stages {
		c.printf("    %-41s%-7d%-6d\n", s.name, s.errors, s.warnings)
		bad += s.errors
	}
	c.printf("\nPlease see %s for complete log\n%s \n-I- Done. Run time was %d seconds.\n", filepath.Join(c.dir, "ibdiagnet.log"), line,
		int(took.Seconds()))
	if err := c.write("log", c.text.String()); err != nil {
		return err
	}
	if bad > 0 {
		return ibdiag.Ended(1)
	}
	return nil
}

// walk discovers the fabric. It walks it several times, so that each link is crossed often; what fails
// once is a bad link.
func (c *check) walk() (err error) {
	asking := discovery.Asking{Timing: c.Timing, MKey: c.MKey}
	asking.Timing.Tries = 1
	c.met = map[*discovery.Port][][]uint8{}
	for i := range int(c.count) {
		var options discovery.Options
		if i == 0 {
			options.Found = func(path []uint8, p *discovery.Port, _ bool) { c.met[p] = append(c.met[p], slices.Clone(path)) }
		}
		f, faults, e := discovery.Discover(c.Context, c.Port, options, asking)
		if e != nil {
			return ibdiag.Failf("discover failed: %s", e)
		}
		c.faults = append(c.faults, faults...)
		if i == 0 || len(f.Nodes) > len(c.f.Nodes) {
			c.f = f
		}
	}
	c.place = map[*discovery.Node]int{}
	for i, n := range c.f.Nodes {
		c.place[n] = i
	}
	switches := len(c.f.Backwards(mad.NodeSwitch))
	c.printf("-I- Discovering ... %d nodes (%d Switches & %d CA-s) discovered.\n\n", len(c.f.Nodes), switches,
		len(c.f.Backwards(mad.NodeCA)))
	if err := c.writeTopology(); err != nil {
		return err
	}
	return c.write("lst", c.list())
}
