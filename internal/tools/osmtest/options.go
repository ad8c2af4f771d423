package osmtest

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/softvpi/softvpi/internal/tools/internal/commandline"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// options are those of osmtest(8).
type options struct {
	flow      string
	inventory string
	log       string
	flags     uint8
	timeout   time.Duration
	wait      time.Duration // for each trap of flow t
	flushed   bool          // flush the log after each line
	world     bool          // request all paths at once
	guid      uint64
	stress    int
	multicast int
	window    int // requests of a stress test in flight
	count     int // of a stress test
	noPaths   bool
	list      bool
	help      bool
}

// flow is one kind of test.
type flow struct {
	name string
	run  func(*test) error
}

var flows map[string]flow

func init() {
	flows = map[string]flow{
		"a": {"All Validations", (*test).all},
		"c": {"Create Inventory", (*test).create},
		"v": {"Validate Inventory", (*test).validate},
		"s": {"Services Registration", (*test).services},
		"m": {"Multicast", (*test).groups},
		"q": {"QoS: VLArb and SLtoVL", (*test).qos},
		"f": {"Stress SA", (*test).flood},
		"e": {"Event Forwarding", (*test).events},
		"t": {"Trap 64/65", (*test).ports},
	}
}

// defaultTimeout is osmtest's default.
const defaultTimeout = time.Second

var stressNames = []string{1: "Small SA queries", 2: "Large SA queries", 3: "Large Path Record SA queries",
	4: "Small Path Record SA queries"}

var multicastNames = []string{1: "Short MC Flow - single mode", 2: "Short MC Flow - multiple mode", 3: "Long MC Flow - single mode",
	4: "Long MC Flow - multiple mode"}

const usage = `
usage: osmtest [options]

  -f, --flow c|a|v|s|e|f|m|q|t  what to do (default a)
                              c  create an inventory file with all nodes, ports, paths and links
                              a  all validations: v and s
                              v  validate the inventory file
                              s  services: registration, leases, deregistration
                              f  flood subnet administration with queries, as -s says
                              m  multicast groups
                              q  tables of VL arbitration and SL to VL
                              e  event forwarding: reports of traps 66, 67 and 144
                              t  reports of traps 64 and 65: meanwhile somebody takes a port away and brings it back
  -i, --inventory FILE        inventory file (default osmtest.dat)
  -s, --stress 1..4           1 PortInfo, one a query; 2 mixed tables; 3 tables of paths; 4 paths, one a query
      --window N              queries of a flood in flight at once (1 to 4096, default 1; not in OpenSM's osmtest)
      --count N               queries of a flood, records of -s 2 and 3 (default 100000; not in OpenSM's osmtest)
  -M, --Multicast_Mode 1..4   1 and 2 short, 3 and 4 long: fill up the multicast LIDs (default 1)
  -d, --debug 0|1|2|4         1: do not write or compare paths; 2: write each line of the log at once; 4: ask for the
                              paths between all ports at once
  -w, --wait S                how long flow t waits for each trap, in seconds (default 10)
  -g, --guid GUID             port to use
  -p, --port                  list the ports
  -t MS                       time-out of a query (default 1000)
  -l, --log_file FILE         log (default: the standard output)
  -v                          log more
  -V                          log all
  -vf FLAGS                   what the log has: 0x1 errors, 0x2 information, 0x4 each check (default 0x3)
  -h, --help                  this text
`

// defaults returns the default options.
func defaults() options {
	return options{flow: "a", inventory: "osmtest.dat", flags: logError | logInfo, timeout: defaultTimeout, wait: 10 * time.Second,
		stress: 1, multicast: 1, window: 1, count: 100000}
}

// parse parses the command line, and prints what it has understood, like osmtest. The error is a
// *tool.UsageError.
func parse(args []string, out io.Writer) (options, error) {
	o := defaults()
	syntax := commandline.Syntax{Getopt: true, Options: o.table(out), Hint: "osmtest -h lists them"}
	_, err := syntax.Parse(args)
	var wrong *commandline.Error
	if !errors.As(err, &wrong) {
		return o, err
	}
	switch wrong.Kind {
	case commandline.Missing:
		return o, tool.Usagef("option %s wants a value: %s", wrong.Name, wrong.Option.Argument)
	case commandline.Stray:
		return o, tool.Usagef("unknown option %s; %s", wrong.Name, syntax.Hint)
	}
	return o, tool.Usagef("%s", wrong)
}

// table returns the options. Those with a line of osmtest's own print it to out.
func (o *options) table(out io.Writer) []commandline.Option {
	say := func(format string, args ...any) { fmt.Fprintf(out, format, args...) }
	return []commandline.Option{
		{Names: []string{"-f", "--flow"}, Argument: "a flow", Set: func(v string) error {
			if _, ok := flows[v]; !ok {
				return errors.New("allowed: a, c, v, s, e, f, m, q, t")
			}
			o.flow = v
			return nil
		}},
		word(&o.inventory, "a file", func(v string) { say("\tFile = %s\n", v) }, "-i", "--inventory"),
		word(&o.log, "a file", func(v string) { say("\tLog File: %s\n", v) }, "-l", "--log_file"),
		number(1, 4, func(n uint64) { o.stress = int(n); say("\tStress test enabled: %s\n", stressNames[n]) }, "-s", "--stress"),
		number(1, 4, func(n uint64) { o.multicast = int(n); say("\tMulticast test enabled: %s\n", multicastNames[n]) }, "-M",
			"--Multicast_Mode"),
		number(1, 4096, func(n uint64) { o.window = int(n) }, "--window"),
		number(1, 1<<31-1, func(n uint64) { o.count = int(n) }, "--count"),
		{Names: []string{"-d", "--debug"}, Argument: "0, 1, 2 or 4", Set: func(v string) error { return o.debug(v, say) }},
		number(1, 1<<31-1, func(n uint64) { o.wait = time.Duration(n) * time.Second; say("\tTrap 64/65 wait time = %d\n", n) }, "-w",
			"--wait"),
		{Names: []string{"-g", "--guid"}, Argument: "a GUID", Set: func(v string) (err error) {
			if o.guid, err = parseNumber(v, 1, 1<<64-1); err == nil {
				say(" Guid <%s>\n", v)
			}
			return err
		}},
		number(1, 1<<31-1, func(n uint64) {
			o.timeout = time.Duration(n) * time.Millisecond
			say("\tTransaction timeout = %d\n", n)
		}, "-t"),
		number(0, 255, func(n uint64) { o.flags = uint8(n); say("\tVerbose option -vf (log flags = 0x%X)\n", n) }, "-vf"),
		{Names: []string{"-v"}, Set: func(string) error { o.flags = o.flags<<1 | 1; return nil }},
		{Names: []string{"-V"}, Set: func(string) error { o.flags = 0xff; return nil }},
		{Names: []string{"-p", "--port"}, Set: func(string) error { o.list = true; return nil }},
		{Names: []string{"-h", "--help"}, Set: func(string) error { o.help = true; return nil }},
		{Names: []string{"-m", "--max_lid"}, Refused: "of OpenSM's osmtest is not supported: the inventory has all LIDs"},
		{Names: []string{"-G", "--grh"}, Refused: "of OpenSM's osmtest is not supported: questions have no global route header"},
	}
}

// debug handles -d.
func (o *options) debug(v string, say func(string, ...any)) error {
	n, err := parseNumber(v, 0, 4)
	switch {
	case err != nil || n == 3:
		return errors.New("allowed: 0, 1, 2, 4")
	case n == 0:
		say("\tDebug Option: Unknown value 0 (ignored)\n")
	case n == 1:
		o.noPaths = true
		say("\tDebug Option: Ignore Path Records\n")
	case n == 2:
		o.flushed = true
		say("\tDebug Option: Force Log Flush\n")
	default:
		o.world = true
		say("\tDebug Option: Use Full World Path Record Queries\n")
	}
	return nil
}

// word returns an option with any value, which said is told.
func word(p *string, what string, said func(string), names ...string) commandline.Option {
	return commandline.Option{Names: names, Argument: what, Set: func(v string) error {
		*p = v
		said(v)
		return nil
	}}
}

// number returns an option with a number from least to most, which set is told.
func number(least, most uint64, set func(uint64), names ...string) commandline.Option {
	return commandline.Option{Names: names, Argument: fmt.Sprintf("%d to %d", least, most), Set: func(v string) error {
		n, err := parseNumber(v, least, most)
		if err == nil {
			set(n)
		}
		return err
	}}
}

// parseNumber parses a number from least to most, decimal, or hexadecimal after 0x.
func parseNumber(v string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(v, 0, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("allowed: %d to %d", least, most)
	}
	return n, nil
}
