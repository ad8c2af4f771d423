package ndperf

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Limits and defaults of the options.
const (
	maxSize           = 4 << 20 // bytes of a message
	maxQPs            = 16384
	maxIterations     = 1_000_000_000
	maxDepth          = 4096
	maxInline         = 512       // what adapters support
	maxCycle          = 256 << 20 // bytes of memory that a side cycles through
	defaultCycle      = 16 << 20
	defaultPort       = 6830
	defaultIterations = 1000
	defaultBWSize     = 65536
	defaultLatSize    = 8
	defaultDepth      = 128
	latencyDepth      = 16 // of the queues; one request is outstanding at a time
)

// options are the options of a run.
type options struct {
	Server     bool
	Addr       netip.Addr // the server's address
	Port       uint16
	Size       int   // bytes of a message
	All        bool  // 1 B to 4 MB in powers of two
	Iterations int64 // messages per queue pair; 0 with Duration
	Duration   time.Duration
	QPs        int
	Events     bool // wait for completions instead of polling
	List       int  // requests posted before looking for results
	Depth      int  // outstanding requests per queue pair
	Inline     int  // messages up to this many bytes are sent inline
	Moderation int  // one completion per this many requests
	Cycle      int  // bytes of memory that each side cycles through; 0: latency, which does not cycle
	JSON       bool
	MinBW      float64 // Gb/s
	MaxLat     float64 // typical latency in microseconds
	OwnMemory  bool    // register this process's memory instead of allocating through the API

	mode  session.Mode
	given func(string) bool
}

// sizes returns the message sizes of the run in bytes.
func (o *options) sizes() []int {
	if !o.All {
		return []int{o.Size}
	}
	var sizes []int
	for s := 1; s <= maxSize; s *= 2 {
		sizes = append(sizes, s)
	}
	return sizes
}

// parse parses the command line. done says that the tool ends with the status.
func (t Test) parse(env tool.Env) (o options, status int, done bool) {
	f := t.flags(env, &o)
	if status, done = f.Parse(); done {
		return o, status, true
	}
	if err := t.complete(f, &o); err != nil {
		return o, f.Refuse(err), true
	}
	return o, tool.Success, false
}

func (t Test) flags(env tool.Env, o *options) *tool.Flags {
	f := tool.NewFlags(env, fmt.Sprintf(
		"usage: %[1]s -S address [options]     server\n       %[1]s -C address [options]     client\n%[2]s", t.Name(), t.about()))
	o.given = f.Given
	peer := func(server bool) func(string) error {
		return func(s string) error {
			if o.Addr.IsValid() {
				return errors.New("allowed: one of -S and -C, once")
			}
			a, err := tool.ParseAddr(s)
			o.Server, o.Addr = server, a
			return err
		}
	}
	f.Func("S", "`address` of the adapter to serve at", peer(true))
	f.Func("C", "`address` of the server to run against", peer(false))
	f.Port(&o.Port, "p", defaultPort, "of the server")
	size, iterations := defaultBWSize, defaultIterations
	if t.Measure == Latency {
		size = defaultLatSize
	}
	f.Int(&o.Size, "s", size, 1, maxSize, "of bytes in a message")
	f.BoolVar(&o.All, "a", false, "all sizes from 1 B to 4 MB in powers of two")
	o.Iterations = int64(iterations)
	f.Func("n", fmt.Sprintf("`number` of messages for each size and queue pair (1 to %d, default %d)", maxIterations, iterations),
		func(s string) error {
			var n int64
			if _, err := fmt.Sscanf(s+"\n", "%d\n", &n); err != nil || n < 1 || n > maxIterations {
				return fmt.Errorf("allowed: a number from 1 to %d", maxIterations)
			}
			o.Iterations = n
			return nil
		})
	f.Seconds(&o.Duration, "D", "to run each size for, instead of -n")
	f.Int(&o.Inline, "i", 0, 0, maxInline, "of bytes up to which messages travel inline in the request")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object with the results of both sides")
	f.Func("memory", "`kind` of the data's memory: api (allocated through the API, default) or own (the program's, registered)",
		func(s string) error {
			if s != "api" && s != "own" {
				return errors.New("allowed: api, own")
			}
			o.OwnMemory = s == "own"
			return nil
		})
	o.mode.Flag(f)
	o.mode.LocalFlag(f, "L")
	o.QPs, o.List, o.Depth, o.Moderation = 1, 1, latencyDepth, 1
	if t.Measure == Latency {
		f.Positive(&o.MaxLat, "max-lat", "of microseconds that the typical latency may take (-a: of the best size), else exit status 1")
		return f
	}
	f.Int(&o.QPs, "q", 1, 1, maxQPs, "of queue pairs")
	f.BoolVar(&o.Events, "e", false, "wait for completion events instead of polling (client, with -D)")
	f.Int(&o.List, "l", 1, 1, maxDepth, "of requests to post before looking for results")
	f.Int(&o.Depth, "t", defaultDepth, 1, maxDepth, "of requests in flight on each queue pair")
	f.Int(&o.Moderation, "Q", 1, 1, maxDepth, "of requests for each completion (CQ moderation)")
	f.Int(&o.Cycle, "cycle", defaultCycle, 1, maxCycle, "of bytes of memory on each side that messages cycle through; if a message is at least this large, all use one block")
	f.Positive(&o.MinBW, "min-bw", "of Gb/s to reach (-a: by the best size), else exit status 1")
	return f
}

func (t Test) about() string {
	if t.Measure == Latency {
		return "Measures the latency of " + t.noun() + " in microseconds."
	}
	return "Measures the bandwidth of " + t.noun() + " in Gb/s (2^30 bits of payload, headers excluded)."
}

func (t Test) noun() string {
	if t.Verb == Send {
		return "Send"
	}
	return map[Verb]string{Write: "RDMA Write", Read: "RDMA Read"}[t.Verb]
}

// complete checks combinations of options.
func (t Test) complete(f *tool.Flags, o *options) error {
	given := f.Given
	switch {
	case f.NArg() > 0:
		return f.NoArguments()
	case !o.Addr.IsValid():
		return tool.Usagef("-S or -C is missing; allowed: -S address to serve, -C address to run against a server")
	case given("a") && given("s"):
		return tool.Usagef("-a and -s exclude each other; allowed: -a for all sizes or -s for one")
	case given("n") && given("D"):
		return tool.Usagef("-n and -D exclude each other; allowed: -n messages or -D seconds")
	case o.Server && o.Events:
		return tool.Usagef("-e is not for a server; allowed: with -C and -D")
	case o.Events && o.Duration == 0:
		return tool.Usagef("-e needs -D; allowed: -e -D seconds")
	case t.Verb == Read && o.Inline > 0:
		return tool.Usagef("-i %d: reads carry no data in the request; allowed: 0", o.Inline)
	}
	if err := o.mode.Check(o.Server, o.Addr); err != nil {
		return err
	}
	if o.Duration > 0 {
		o.Iterations = 0
	}
	if t.Measure == Latency {
		return nil
	}
	if given("Q") && given("t") && o.Moderation > o.Depth {
		return tool.Usagef("-Q %d is more than -t %d; allowed: 1 to %d", o.Moderation, o.Depth, o.Depth)
	}
	if given("l") && given("t") && o.List > o.Depth {
		return tool.Usagef("-l %d is more than -t %d; allowed: 1 to %d", o.List, o.Depth, o.Depth)
	}
	o.Depth = max(o.Depth, o.List, o.Moderation)
	return nil
}
