// Package ndping holds the four programs that demonstrate NetworkDirect: ndping (sends one way),
// ndpingpong (sends both ways), ndrping (writes or reads) and ndrpingpong (writes both ways, detected by
// polling memory). Each runs through all message sizes from 1 B to 4 MiB and prints a line for each.
package ndping

import (
	"fmt"
	"net/netip"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Program is one of the programs.
type Program byte

// The programs; the values are part of the private data.
const (
	ping Program = iota + 1
	pingPong
	rping
	rpingPong
)

// Programs lists all of them.
var Programs = []Program{ping, pingPong, rping, rpingPong}

// Name returns the name of the program.
func (p Program) Name() string {
	return map[Program]string{ping: "ndping", pingPong: "ndpingpong", rping: "ndrping", rpingPong: "ndrpingpong"}[p]
}

func (p Program) about() string {
	return map[Program]string{
		ping:      "The client sends, the server receives.",
		pingPong:  "The client sends, the server sends back; the latency is half of the round trip.",
		rping:     "The client writes to the server's memory (-w) or reads from it (-r).",
		rpingPong: "Client and server write to each other's memory and watch it; the latency is half of the round trip.",
	}[p]
}

const (
	defaultPort = 54325
	maxSize     = 4 << 20 // bytes of the largest message
	maxPipeline = 1024
	maxSGE      = 16
)

type options struct {
	server   bool
	at       netip.AddrPort
	blocking bool
	read     bool // rping
	sge      int
	pipeline int
	log      string
	mode     session.Mode
}

func (p Program) parse(env tool.Env) (o options, status int, done bool) {
	kind := ""
	if p == rping {
		kind = "-w|-r "
	}
	f := tool.NewFlags(env, fmt.Sprintf("usage: %s -s|-c %s[options] ADDRESS[:PORT]    (port %d)\n%s", p.Name(), kind, defaultPort,
		p.about()))
	var client, polling, write bool
	f.BoolVar(&o.server, "s", false, "be the server")
	f.BoolVar(&client, "c", false, "be the client")
	f.BoolVar(&o.blocking, "b", false, "wait for completions by event")
	f.BoolVar(&polling, "p", false, "poll for completions (default)")
	f.Int(&o.sge, "n", 1, 1, maxSGE, "of scatter/gather entries of a request")
	f.StringVar(&o.log, "l", "", "`file` to which the lines are also written")
	o.pipeline = 1
	if p == ping || p == rping {
		f.Int(&o.pipeline, "q", 16, 1, maxPipeline, "of requests in flight (pipeline)")
	}
	if p == rping {
		f.BoolVar(&write, "w", false, "write to the server's memory")
		f.BoolVar(&o.read, "r", false, "read from the server's memory")
	}
	o.mode.Flag(f)
	o.mode.LocalFlag(f, "L")
	if status, done = f.Parse(); done {
		return o, status, true
	}
	var err error
	switch {
	case o.server == client:
		err = tool.Usagef("allowed: one of -s (server) and -c (client)")
	case o.blocking && polling:
		err = tool.Usagef("-b and -p exclude each other; allowed: -b (events) or -p (polling)")
	case p == rping && client && write == o.read:
		err = tool.Usagef("allowed: one of -w (write) and -r (read)")
	case p == rping && o.server && (write || o.read):
		err = tool.Usagef("-w and -r are the client's; allowed: with -c")
	case f.NArg() != 1:
		err = tool.Usagef("%d arguments; allowed: one, the server's ADDRESS[:PORT]", f.NArg())
	default:
		if o.at, err = tool.ParseEndpoint(f.Arg(0), defaultPort); err == nil {
			err = o.mode.Check(o.server, o.at.Addr())
		}
	}
	if err != nil {
		return o, f.Refuse(err), true
	}
	return o, tool.Success, false
}
