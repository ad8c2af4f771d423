package osmtest

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

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

var stressNames = []string{1: "Small SA queries", 2: "Large SA queries", 3: "Large Path Record SA queries", 4: "Small Path Record SA queries"}

var multicastNames = []string{1: "Short MC Flow - single mode", 2: "Short MC Flow - multiple mode", 3: "Long MC Flow - single mode", 4: "Long MC Flow - multiple mode"}

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

// word is a parsed option, with its value if it takes one.
type word struct{ name, value string }

// takes lists the options with a value.
const takes = " -f --flow -i --inventory -s --stress --window --count -M --Multicast_Mode -d --debug -w --wait -g --guid -t -l --log_file -vf "

// parse parses the command line, and prints what it has understood, like osmtest. The error is a
// *tool.UsageError.
func parse(args []string, out io.Writer) (o options, err error) {
	o = options{flow: "a", inventory: "osmtest.dat", flags: logError | logInfo, timeout: defaultTimeout, wait: 10 * time.Second, stress: 1, multicast: 1, window: 1, count: 100000}
	for len(args) > 0 {
		w := word{name: args[0]}
		args = args[1:]
		if name, value, ok := strings.Cut(w.name, "="); ok && strings.HasPrefix(w.name, "--") {
			w = word{name, value}
		} else if !strings.HasPrefix(w.name, "--") && len(w.name) > 2 && w.name != "-vf" && strings.Contains(takes, " "+w.name[:2]+" ") {
			w = word{w.name[:2], w.name[2:]}
		} else if strings.Contains(takes, " "+w.name+" ") {
			if len(args) == 0 {
				return o, tool.Usagef("option %s wants a value", w.name)
			}
			w.value, args = args[0], args[1:]
		}
		if err := o.set(w, out); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *options) set(w word, out io.Writer) error {
	var n uint64
	var err error
	switch w.name {
	case "-f", "--flow":
		if _, ok := flows[w.value]; !ok {
			return tool.Usagef("flow %q; allowed: a, c, v, s, e, f, m, q, t", w.value)
		}
		o.flow = w.value
	case "-i", "--inventory":
		o.inventory = w.value
		fmt.Fprintf(out, "\tFile = %s\n", w.value)
	case "-l", "--log_file":
		o.log = w.value
		fmt.Fprintf(out, "\tLog File: %s\n", w.value)
	case "-s", "--stress":
		n, err = number(w, 1, 4)
		if o.stress = int(n); err == nil {
			fmt.Fprintf(out, "\tStress test enabled: %s\n", stressNames[n])
		}
	case "-M", "--Multicast_Mode":
		n, err = number(w, 1, 4)
		if o.multicast = int(n); err == nil {
			fmt.Fprintf(out, "\tMulticast test enabled: %s\n", multicastNames[n])
		}
	case "--window":
		n, err = number(w, 1, 4096)
		o.window = int(n)
	case "--count":
		n, err = number(w, 1, 1<<31-1)
		o.count = int(n)
	case "-d", "--debug":
		switch n, err = number(w, 0, 4); {
		case err != nil:
		case n == 0:
			fmt.Fprint(out, "\tDebug Option: Unknown value 0 (ignored)\n")
		case n == 1:
			o.noPaths = true
			fmt.Fprint(out, "\tDebug Option: Ignore Path Records\n")
		case n == 2:
			o.flushed = true
			fmt.Fprint(out, "\tDebug Option: Force Log Flush\n")
		case n == 4:
			o.world = true
			fmt.Fprint(out, "\tDebug Option: Use Full World Path Record Queries\n")
		default:
			return tool.Usagef("option %s is %d; allowed: 0, 1, 2, 4", w.name, n)
		}
	case "-w", "--wait":
		n, err = number(w, 1, 1<<31-1)
		o.wait = time.Duration(n) * time.Second
		if err == nil {
			fmt.Fprintf(out, "\tTrap 64/65 wait time = %d\n", n)
		}
	case "-g", "--guid":
		if o.guid, err = number(w, 1, 1<<64-1); err == nil {
			fmt.Fprintf(out, " Guid <%s>\n", w.value)
		}
	case "-t":
		n, err = number(w, 1, 1<<31-1)
		o.timeout = time.Duration(n) * time.Millisecond
		if err == nil {
			fmt.Fprintf(out, "\tTransaction timeout = %d\n", n)
		}
	case "-vf":
		n, err = number(w, 0, 255)
		o.flags = uint8(n)
		if err == nil {
			fmt.Fprintf(out, "\tVerbose option -vf (log flags = 0x%X)\n", n)
		}
	case "-v":
		o.flags = o.flags<<1 | 1
	case "-V":
		o.flags = 0xff
	case "-p", "--port":
		o.list = true
	case "-h", "--help":
		o.help = true
	case "-m", "--max_lid":
		return tool.Usagef("option %s of OpenSM's osmtest is not supported: the inventory has all LIDs", w.name)
	case "-G", "--grh":
		return tool.Usagef("option %s of OpenSM's osmtest is not supported: questions have no global route header", w.name)
	default:
		return tool.Usagef("unknown option %s; osmtest -h lists them", w.name)
	}
	return err
}

func number(w word, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(w.value, 0, 64)
	if err != nil || n < least || n > most {
		return 0, tool.Usagef("option %s is %q; allowed: %d to %d", w.name, w.value, least, most)
	}
	return n, nil
}
