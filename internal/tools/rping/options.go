package rping

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const (
	defaultPort = 7174
	defaultSize = 100
	// minSize has room for the name of any ping; maxSize is rping's limit.
	minSize = 26
	maxSize = 64<<10 - 1
)

type options struct {
	server, client bool
	persistent     bool
	addr           netip.Addr // zero for a server: all adapters
	port           uint16
	count          int // 0: unlimited
	size           int
	limit          int // maximum ping size that a server accepts
	verbose        bool
	validate       bool
	debug          bool
	mode           session.Mode
}

func parse(env tool.Env) (o options, status int, done bool) {
	f := tool.NewFlags(env, fmt.Sprintf(
		"usage: %[1]s -s [-v -V -d -P] [-S size] [-C count] [-a address] [-p port]    server\n"+
			"       %[1]s -c [-v -V -d] [-S size] [-C count] [-I address] -a address [-p port]    client\n"+
			"RDMA ping, the counterpart of rping on Linux.", env.Name))
	f.BoolVar(&o.server, "s", false, "be the server")
	f.BoolVar(&o.client, "c", false, "be the client")
	f.BoolVar(&o.persistent, "P", false, "server: keep running after a client has left, and serve several at a time")
	f.Addr(&o.addr, "a", "of the server (server: default every adapter)")
	f.Port(&o.port, "p", defaultPort, "of the server")
	f.Int(&o.count, "C", 0, 1, math.MaxInt32, "of pings (default: until stopped)")
	f.Int(&o.size, "S", defaultSize, minSize, maxSize, "of bytes in a ping")
	f.BoolVar(&o.verbose, "v", false, "print the data of every ping")
	f.BoolVar(&o.validate, "V", false, "check the data of every ping")
	f.BoolVar(&o.debug, "d", false, "print every step")
	o.mode.Flag(f)
	o.mode.LocalFlag(f, "I")
	if status, done = f.Parse(); done {
		return o, status, true
	}
	var err error
	switch {
	case f.NArg() > 0:
		err = f.NoArguments()
	case o.server == o.client:
		err = tool.Usagef("allowed: one of -s (server) and -c (client)")
	case o.client && !o.addr.IsValid():
		err = tool.Usagef("-a is missing; allowed: the address of the server")
	case o.client && o.persistent:
		err = tool.Usagef("-P is not for a client; allowed: with -s")
	default:
		err = o.mode.Check(o.server, o.addr)
	}
	if err != nil {
		return o, f.Refuse(err), true
	}
	o.limit = maxSize
	if f.Given("S") {
		o.limit = o.size
	}
	return o, tool.Success, false
}
