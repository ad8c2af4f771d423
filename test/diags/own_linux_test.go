package diags

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/fabric/live"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/internal/ibsim"
)

// newOwnFabric starts a fabric of this repository with its own subnet manager. It needs nothing of Debian's.
func newOwnFabric(t *testing.T, netlist string) *fabricOf {
	t.Helper()
	in, err := os.Open(netlist)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	top, err := topology.ReadNetlist(in)
	if err != nil {
		t.Fatal(err)
	}
	return serveOwn(t, top, "-f", "opensm.log")
}

// serveOwn serves a topology and runs the subnet manager at its first node, with options.
func serveOwn(t *testing.T, topology *topology.Topology, options ...string) *fabricOf {
	t.Helper()
	f := &fabricOf{t: t, dir: t.TempDir(), socket: fmt.Sprintf("softvpi-test-%d-%x", os.Getpid(), rand.Uint32())}
	listener, err := ibsim.ListenLocal(f.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	r := live.New(fabric.New(topology, rand.Uint64), live.Options{})
	s := ibsim.NewServer(r)
	f.own, f.rack = s, r
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		<-ended
		r.Close()
	})
	sm := f.tool("opensm", options...)
	sm.Env = append(sm.Env, "SIM_HOST="+topology.Nodes[0].ID)
	f.start(sm, filepath.Join(f.dir, "opensm.out"))
	f.wait(filepath.Join(f.dir, "opensm.out"), "SUBNET UP")
	return f
}

// Tables of subnet administration arrive complete, in segments, and the tools agree about the fabric.
func TestOnOwnFabric(t *testing.T) {
	f := newOwnFabric(t, "testdata/small.net")
	count := func(what, line string, want int) {
		t.Helper()
		w := strings.Fields(line)
		r := f.ours("host-b", w[0], w[1:]...)
		if n := len(regexp.MustCompile(`(?m)`+what).FindAllString(r.out, -1)); n != want || r.status != 0 || r.errs != "" {
			t.Errorf("%s: %d times %q, want %d; status %d, %s\n%s", line, n, what, want, r.status, r.errs, r.out)
		}
	}
	count("^NodeRecord dump:", "saquery", 7) // one for each port
	count("^PathRecord dump:", "saquery PR", 49)
	count("^LinkRecord dump:", "saquery LR", 14)
	count("^IsSM ports\nPortInfoRecord dump:", "saquery -s", 1)
	count("^GUIDInfo Record dump:", "saquery -t 5000 GIR 1", 1)
	count("SMINFO_MASTER", "sminfo", 1)
	count("^(?:Ca|Switch)\t", "ibnetdiscover", 6)
	count("Active/  LinkUp", "iblinkinfo", 14)
	count("-> ", "ibtracert -G 0x0002c90300001001 0x0002c90300001005", 3)
	count("0 ports have errors", "ibqueryerrors", 1)
	count("-I- All of them end where they should", "ibdiagnet -r -o out", 1)
	count("-I- No illegal", "ibdiagpath -n host-a,host-c", 2)
	count("6 nodes cleared 0 errors", "ibclearerrors", 1)
	count("^State: Active\n", "ibstat ibsim0 1", 1)
	count("port_state=PORT_ACTIVE", "vstat", 1)
	count("PortXmitWait:", "perfquery", 1)
}
