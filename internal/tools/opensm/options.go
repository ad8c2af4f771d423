package opensm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/tools/internal/commandline"
)

// options holds the options on the command line.
type options struct {
	cfg subnet.Config

	guid       uint64
	askGUID    bool // -g 0: list the ports
	once       bool
	logFile    string
	logLimit   int // MB
	erase      bool
	flags      uint8 // of what is logged
	partitions string
	roots      string
	daemon     bool
	pidFile    string
	help       bool
	version    bool
	config     string // file of options
	create     string // file to write them to
	routes     string // file of prefix routes
	prefix     string // of lines of the log
	limits     subnet.Limits
	qos        bool
	policy     string // file of service levels
	saLoad     string // file of what ports had registered
	saDump     bool   // write it, to the directory dumps
	dumps      string
	lanes      [laneKinds]lanes
}

// defaults returns the default options.
func defaults() options {
	o := options{flags: logError | logInfo, limits: subnet.DefaultLimits(), logFile: defaultLog, partitions: defaultPartitions,
		routes: defaultRoutes, dumps: defaultDumps, policy: defaultPolicy}
	o.cfg = subnet.Config{Sweep: subnet.DefaultSweep, SMKey: subnet.DefaultSMKey, Prefix: subnet.DefaultPrefix,
		Window: subnet.DefaultWindow, Timeout: subnet.DefaultTimeout, Retries: subnet.DefaultRetries,
		PollInterval: subnet.DefaultPoll, PollRetries: subnet.DefaultPollRetries}
	for i := range o.lanes {
		o.lanes[i].highLimit = -1
	}
	return o
}

// Log flags, as for -D in opensm(8).
const (
	logError   = 0x01
	logInfo    = 0x02
	logVerbose = 0x04
	logRouting = 0x40
	logSystem  = 0x80
)

// option is one option, with OpenSM's names.
type option struct {
	short byte
	long  string
	arg   string // its argument, empty if it has none
	help  string
	set   func(o *options, v string) error
}

// list lists the options.
var list = []option{
	{'F', "config", "FILE", "options file in the format of opensm.conf (default /etc/opensm/opensm.conf, if it exists); the command line takes precedence", func(o *options, v string) error {
		o.config = v
		return nil
	}},
	{'c', "create-config", "FILE", "write the current options to a file, and exit", func(o *options,
		v string) error {
		o.create = v
		return nil
	}},
	{0, "version", "", "print the version and exit", func(o *options, _ string) error { o.version = true; return nil }},
	{'g', "guid", "GUID", "port GUID to bind to, in hexadecimal; 0 lists the ports", func(o *options, v string) (err error) {
		o.guid, err = hexadecimal(v)
		o.askGUID = o.guid == 0
		return err
	}},
	{'l', "lmc", "LMC", "0 to 7: ports have 2 to the LMC LIDs (default 0)", small(7, func(o *options, n int) { o.cfg.LMC = uint8(n) })},
	{'p', "priority", "PRIORITY", "0 to 15: of two subnet managers the higher is master (default 0)",
		small(15, func(o *options, n int) { o.cfg.Priority = uint8(n) })},
	{0, "subnet_prefix", "PREFIX", "subnet prefix, in hexadecimal (default 0xfe80000000000000)", func(o *options, v string) (err error) {
		o.cfg.Prefix, err = hexadecimal(v)
		return err
	}},
	{'k', "smkey", "KEY", "SM_Key, 64 bits (default 1)", func(o *options, v string) (err error) {
		o.cfg.SMKey, err = number(v)
		return err
	}},
	{0, "sm_sl", "SL", "0 to 15: service level towards the subnet manager (default 0)", small(15,
		func(o *options, n int) { o.cfg.SL = uint8(n) })},
	{'r', "reassign_lids", "", "assign all LIDs anew", func(o *options, _ string) error { o.cfg.Reassign = true; return nil }},
	{'R', "routing_engine", "ENGINES", "engines in order of preference, separated by commas: minhop, updn, ftree, sssp, dfsssp; no_fallback as the last", setEngines},
	{'z', "connect_roots", "", "updn and ftree: also paths between roots", func(o *options,
		_ string) error {
		o.cfg.ConnectRoots = true
		return nil
	}},
	{'a', "root_guid_file", "FILE", "node GUIDs of the roots for updn, one per line", func(o *options,
		v string) error {
		o.roots = v
		return nil
	}},
	{'o', "once", "", "bring the subnet up and exit", func(o *options, _ string) error { o.once = true; return nil }},
	{'s', "sweep", "SECONDS", "between sweeps, 0 for none (default 10)", func(o *options, v string) error {
		n, err := whole(v, 1<<20)
		o.cfg.Sweep = time.Duration(n) * time.Second
		return err
	}},
	{'t', "timeout", "MILLISECONDS", "of a request, above 0 (default 200)", func(o *options, v string) error {
		n, err := whole(v, 1<<20)
		if err == nil && n == 0 {
			err = fmt.Errorf("allowed: 1 to %d", 1<<20)
		}
		o.cfg.Timeout = time.Duration(n) * time.Millisecond
		return err
	}},
	{0, "retries", "NUMBER", "of a request, 0 to 100 (default 3)", small(100, func(o *options, n int) {
		if o.cfg.Retries = n; n == 0 {
			o.cfg.Retries = -1
		}
	})},
	{'n', "maxsmps", "NUMBER", "maximum number of subnet management packets in flight, 1 to 4096, or 0 for 4096 (default 32)",
		small(subnet.MaxWindow, func(o *options, n int) {
			if o.cfg.Window = n; n == 0 {
				o.cfg.Window = subnet.MaxWindow
			}
		})},
	{'f', "log_file", "FILE", "of the log, or stdout (default /var/log/opensm.log)", func(o *options,
		v string) error {
		o.logFile = v
		return nil
	}},
	{'L', "log_limit", "MB", "size at which the log starts over (default: none)", func(o *options, v string) (err error) {
		o.logLimit, err = whole(v, 1<<20)
		return err
	}},
	{'e', "erase_log_file", "", "begin with an empty log", func(o *options, _ string) error { o.erase = true; return nil }},
	{'P', "Pconfig", "FILE", "partition configuration (default /etc/opensm/partitions.conf, if it exists)",
		func(o *options, v string) error { o.partitions = v; return nil }},
	{'Z', "part_enforce", "WAY", "switches check partitions: both, in, out or off (default both)", func(o *options, v string) error {
		return setEnforcement(o, v)
	}},
	{'N', "no_part_enforce", "", "the same as -Z off", func(o *options, _ string) error { o.cfg.Enforce = subnet.EnforceOff; return nil }},
	{'W', "allow_both_pkeys", "", "ports may be full and limited member of one partition",
		func(o *options, _ string) error { o.cfg.AllowBothPKeys = true; return nil }},
	{'Q', "qos", "", "set the tables of service levels and arbitration", func(o *options, _ string) error { o.qos = true; return nil }},
	{'Y', "qos_policy_file", "FILE", "service levels of paths with -Q, in the format of OpenSM's simplified policy, qos-ulps (default /etc/opensm/qos-policy.conf, if it exists)", func(o *options, v string) error {
		o.policy = v
		return nil
	}},
	{0, "prefix_routes_file", "FILE", "routers by subnet prefix (default /etc/opensm/prefix-routes.conf, if it exists)",
		func(o *options, v string) error { o.routes = v; return nil }},
	{'S', "sadb_file", "FILE", "what ports had registered with subnet administration, in the format of opensm-sa.dump; read when this becomes master for the first time", func(o *options, v string) error {
		o.saLoad = v
		return nil
	}},
	{0, "dump_files_dir", "DIR", "where opensm-sa.dump is written with sa_db_dump TRUE in the options file (default /var/log/)",
		func(o *options, v string) error { o.dumps = v; return nil }},
	{0, "log_prefix", "TEXT", "prefix of every line of the log", func(o *options, v string) error { o.prefix = v; return nil }},
	{'x', "honor_guid2lid", "", "honor the guid2lid file when taking over as master", func(o *options,
		_ string) error {
		o.cfg.HonorLIDs = true
		return nil
	}},
	{'y', "stay_on_fatal", "", "continue despite duplicate GUIDs; always on", func(*options, string) error { return nil }},
	{'B', "daemon", "", "run in the background", func(o *options, _ string) error { o.daemon = true; return nil }},
	{0, "service", "", "run under the system's service manager, which starts and stops it: in the foreground, as without this option",
		func(*options, string) error { return nil }},
	{'J', "pidfile", "FILE", "file for the process ID", func(o *options, v string) error { o.pidFile = v; return nil }},
	{'d', "debug", "NUMBER", "0: ignore other subnet managers; 1, 2: accepted, always so; 3: no multicast",
		func(o *options, v string) error {
			switch v {
			case "0":
				o.cfg.IgnoreOthers = true
			case "1", "2":
			case "3":
				o.cfg.NoMulticast = true
			default:
				return fmt.Errorf("allowed: 0 to 3")
			}
			return nil
		}},
	{'D', "", "FLAGS", "what is logged: 0x01 errors, 0x02 infos, 0x04 verbose, 0x40 routing (default 0x03)",
		func(o *options, v string) error {
			n, err := number(v)
			if err == nil && n > 0xff {
				err = fmt.Errorf("allowed: 0 to 0xff")
			}
			o.flags = uint8(n)
			return err
		}},
	{'v', "verbose", "", "log more", func(o *options, _ string) error { o.flags = o.flags<<1 | 1; return nil }},
	{'V', "", "", "log all", func(o *options, _ string) error { o.flags = 0xff; return nil }},
	{'h', "help", "", "print this and exit", func(o *options, _ string) error { o.help = true; return nil }},
	{'?', "", "", "print this and exit", func(o *options, _ string) error { o.help = true; return nil }},
}

// elsewhere lists OpenSM's options that are not implemented.
var elsewhere = []string{"do_mesh_analysis", "lash_start_vl", "nue_max_num_vls", "A", "ucast_cache", "M", "lid_matrix_file",
	"U", "lfts_file", "u", "cn_guid_file", "G", "io_guid_file", "port-shifting", "scatter-ports", "H", "max_reverse_hops", "m",
	"ids_guid_file",
	"X", "guid_routing_order_file", "console", "console-port", "i", "ignore_guids", "w", "hop_weights_file", "O",
	"port_search_ordering_file", "dimn_ports_file",
	"congestion_control", "congestion-control", "cckey", "cc_key", "I", "inactive", "perfmgr",
	"perfmgr_sweep_time_s", "consolidate_ipv6_snm_req", "torus_config"}

// parse parses a command line, and the options file, which it may name.
func parse(args []string) (options, error) {
	o := defaults()
	if err := o.arguments(args); err != nil || o.help || o.version {
		return o, err
	}
	name := o.config
	o = defaults()
	if err := o.loadConfig(name); err != nil {
		return o, err
	}
	return o, o.arguments(args)
}

// arguments parses a command line as commandline.Syntax.Getopt says; long options may have a single dash, as in the
// manual's -service.
func (o *options) arguments(args []string) error {
	syntax := commandline.Syntax{Getopt: true, Hint: "-h lists the options"}
	for _, x := range list {
		set := func(v string) error { return x.set(o, v) }
		syntax.Options = append(syntax.Options, commandline.Option{Names: x.names(), Argument: x.arg, Help: x.help, Set: set})
	}
	for _, name := range elsewhere {
		x := option{long: name}
		if len(name) == 1 {
			x = option{short: name[0]}
		}
		syntax.Options = append(syntax.Options, commandline.Option{Names: x.names(),
			Refused: "of OpenSM is not supported; -h lists those that are"})
	}
	_, err := syntax.Parse(args)
	return err
}

// names returns the spellings of x.
func (x *option) names() (all []string) {
	if x.short != 0 {
		all = append(all, "-"+string(rune(x.short)))
	}
	if x.long != "" {
		all = append(all, "--"+x.long, "-"+x.long)
	}
	return all
}

func setEngines(o *options, v string) error {
	o.cfg.Engines = strings.Split(v, ",")
	for i, e := range o.cfg.Engines {
		if last := i == len(o.cfg.Engines)-1; !slices.Contains(routing.EngineNames(), e) && !(e == "no_fallback" && last && i > 0) {
			return fmt.Errorf("engine %q; allowed: %s, and no_fallback as the last", e, strings.Join(routing.EngineNames(), ", "))
		}
	}
	return nil
}

func small(most int, set func(*options, int)) func(*options, string) error {
	return func(o *options, v string) error {
		n, err := whole(v, most)
		if err == nil {
			set(o, n)
		}
		return err
	}
}

func whole(v string, most int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("allowed: 0 to %d", most)
	}
	return n, nil
}

func number(v string) (uint64, error) {
	n, err := strconv.ParseUint(v, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("allowed: a number of 64 bits")
	}
	return n, nil
}

func hexadecimal(v string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(v, "0x"), "0X"), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("allowed: a hexadecimal number of 64 bits")
	}
	return n, nil
}

// usage returns the text of -h.
func usage() string {
	var b strings.Builder
	b.WriteString("usage: opensm [options]\nThe subnet manager and subnet administration of the InfiniBand fabric that IBSIM_SOCKNAME, IBSIM_SERVER_NAME and SIM_HOST name.\n\n")
	for _, x := range list {
		var names []string
		if x.short != 0 {
			names = append(names, "-"+string(rune(x.short)))
		}
		if x.long != "" {
			names = append(names, "--"+x.long)
		}
		fmt.Fprintf(&b, "  %s %s\n        %s\n", strings.Join(names, ", "), x.arg, x.help)
	}
	return b.String()
}
