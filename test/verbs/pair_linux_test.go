package verbs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/testbed/retry"
)

// pair is a server and a client that talk to each other.
type pair struct {
	name           string
	server, client string
	env            []string
	says           string // a regular expression that the client's output matches; empty: any
	server2        string // the same for the server
	ready          string // what the server prints once clients may come; empty: it listens
	endless        bool   // the server keeps running after the client has ended
	not            string // why the pair does not run yet
}

// port returns a TCP port that nobody else uses, nor the same RDMA port.
func port() string { return fmt.Sprint(loopback.Port()) }

// listens tells whether somebody listens at a TCP port in the program's namespace.
func (p *program) listens(port string) bool {
	var n int
	fmt.Sscan(port, &n)
	for _, file := range []string{"tcp", "tcp6"} {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", p.cmd.Process.Pid, file)) // the program may have ended
		if regexp.MustCompile(fmt.Sprintf(`(?m)^ *\d+: [0-9A-F]+:%04X [0-9A-F]+:0000 0A `, n)).Match(b) {
			return true
		}
	}
	return false
}

// attempts is how often a client looks for its server: listeners of the connection manager cannot be seen by others.
const attempts = 40

// talk runs a pair. A client that comes before its server fails, and is run again.
func (b *bench) talk(p pair) { b.talkTo(b, p) }

// talkTo runs the server of a pair on b, and its client on another bench.
func (b *bench) talkTo(other *bench, p pair) {
	b.t.Helper()
	if p.not != "" {
		b.t.Skip(p.not)
	}
	s, c := b.meet(other, p)
	for range rematches {
		if c.err == nil && !p.endless {
			<-s.done // it may still crash
		}
		why := fault(s, c)
		if why == "" {
			break
		}
		retry.Count(b.t, strings.Fields(p.client)[0], why)
		s.stop()
		s, c = b.meet(other, p)
	}
	b.succeeded(c.program)
	if p.endless || b.t.Failed() {
		s.stop()
	} else {
		b.succeeded(s)
	}
	for _, o := range []struct{ side, says, said string }{{"client", p.says, c.out.String()}, {"server", p.server2, s.out.String()}} {
		if !regexp.MustCompile(o.says).MatchString(o.said) {
			b.t.Errorf("the %s does not say %q, but\n%s", o.side, o.says, o.said)
		}
	}
	if b.t.Failed() {
		b.t.Logf("server: %s\n%s\nclients before: %s", strings.Join(s.args, " "), s.out.String(), c.met)
	}
}

// early matches what a client of perftest -R prints that asked for its second connection before its server listened
// for it: nothing between the two keeps that order. The server has taken the first connection, and is useless to
// another client.
var early = regexp.MustCompile(`Event: RDMA_CM_EVENT_REJECTED; error: 8\.`)

// untimed matches what programs of perftest print that could not measure the frequency of the processor's counter,
// because they were interrupted while measuring: their figures are infinite then.
var untimed = regexp.MustCompile(`Correlation coefficient r\^2: [0-9.]+ <`)

// unread matches what programs of perftest print about a completion that they have not got. With -e they have one channel for both of
// their completion queues and take whatever event comes for that of their send; in XRC that and the answer belong to different queue pairs,
// which nothing keeps in order. They poll the empty queue then, and report what happens to be on their stack: no status of verbs.
var unread = regexp.MustCompile(`Failed status -?[0-9]{3,}:`)

// unlistened matches what a client of dapltest prints that asked for a connection before its server listened, which says before that it
// is ready.
var unlistened = regexp.MustCompile(`dapl_cma_active: non-consumer REJ, reason=8,`)

// closed matches what fi_pingpong prints that has crashed within libfabric after all its messages had been exchanged. When the peer has
// disconnected, libfabric's rxm closes its endpoint and handles what had arrived there only then: it posts the buffer again, to the
// endpoint that it has just freed (ofiwg/libfabric, commit 697688386).
var closed = regexp.MustCompile(`(?s)^\s*fi_pingpong:\d+ terminated with signal 11 at PC=[^\n]*\n\S*libfabric\.so.*\n64k +50 +=50 `)

// fault returns the reason to run a pair again, or an empty text.
func fault(s *program, c meeting) string {
	switch {
	case unread.MatchString(s.out.String()), unread.MatchString(c.out.String()):
		return "with -e it takes an event of its other completion queue for that of its send, and reads a completion that is not there"
	case early.MatchString(c.met):
		return "with -R the client asks for its second connection before the server listens for it"
	case unlistened.MatchString(c.out.String()):
		return "the client asks for a connection before the server, which says that it is ready, listens for it"
	case closed.MatchString(s.out.String()), closed.MatchString(c.out.String()):
		return "after its last message it uses an endpoint that it has closed"
	case untimed.MatchString(c.out.String()):
		return "interrupted while it measures the frequency of the processor's counter, it prints infinite figures"
	}
	return ""
}

// rematches is how often a pair is run again because of a fault of its programs. A client of perftest -R is early each other time while
// many programs want the processors, as a client is that need not wait for its turn when its server does: nine times in a row were seen.
const rematches = 30

// meeting is a client that has ended, with the output of earlier ones that did not find the server.
type meeting struct {
	*program
	met string
}

// meet starts the server of a pair, and runs its client until one finds the server.
func (b *bench) meet(other *bench, p pair) (s *program, c meeting) {
	b.t.Helper()
	at := port()
	server, client := b.expand(p.server, at), b.expand(p.client, at)
	b.need(server[0], client[0])
	s = b.start(p.env, server...)
	b.await(s, p.ready, at)
	for i := range attempts {
		if i > 0 {
			retry.Count(b.t, filepath.Base(client[0]), "its server's listener of the connection manager cannot be seen, and did not listen yet")
			time.Sleep(50 * time.Millisecond)
		}
		c.program = other.start(p.env, client...)
		<-c.done
		if c.err == nil {
			break
		}
		if c.met += c.out.String(); !s.running() || early.MatchString(c.met) || closed.MatchString(c.out.String()) {
			break // it has found its server, or there is none any more
		}
	}
	return s, c
}

// await waits until a server is ready: it has printed that, or listens at a port, or else has an identifier of the connection
// manager, with which it will listen at once. What shows none of these is given a fifth of a second.
func (b *bench) await(s *program, ready, at string) {
	if ready != "" {
		waitFor(b.t, s, ready)
		return
	}
	driver := api.NewClient(b.socket)
	for i := 0; i < 20 && s.running() && !s.listens(at); i++ {
		if status, err := driver.Status(b.t.Context()); err == nil && slices.ContainsFunc(status.Programs, func(p api.ProgramStatus) bool {
			return p.PID == s.cmd.Process.Pid && p.Objects["cm"] > 0
		}) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (b *bench) talkAll(t *testing.T, pairs []pair) {
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) { b.under(t).talk(p) })
	}
}
