package interop

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/retry"
)

// programLimit is how long a program may take; those of the guest run on an emulated processor.
var programLimit = 2 * await.Limit

// testDistribution runs the distribution's programs against each other: here attached to a driver, with the libraries
// of clib instead of the distribution's; in the guest with the distribution's, on the kernel's rxe. Both ends have to
// succeed, with the data and the counts that they check themselves.
func testDistribution(t *testing.T, g *guest) {
	g.drive(t)
	f, list := families[0], exchanges()
	if g.mtu > 1500 {
		f, list = families[1], exchangesIPv6()
	}
	us, them := here(g, f), there(t, g, f)
	for i, x := range list {
		port := fmt.Sprint(18600 + i)
		t.Run(x.name+"/client", func(t *testing.T) { x.run(t, g, them, us, port) })
		t.Run(x.name+"/server", func(t *testing.T) { x.run(t, g, us, them, port) })
	}
}

// place is one side of an exchange.
type place struct {
	addr, v4, dev, gid string
	start              func(t testing.TB, words ...string) program
	// listens waits until a program listens, at a TCP port or (0) at the connection manager. If that cannot be
	// seen it waits for settle.
	listens func(t testing.TB, port int, settle time.Duration)
}

// program runs on either side.
type program interface {
	text() string
	running() bool
	// status waits until it ends; an error means that it did not succeed.
	status(t testing.TB) error
	stop()
}

func here(g *guest, f family) place {
	p := place{listens: listensHere, addr: f.ours.String(), v4: ours.v4.String(), dev: "softvpi0", gid: "0",
		start: func(t testing.TB, words ...string) program {
			return g.softvpiAs(t, append([]string{"verbs", "run", "--"}, words...)...)
		}}
	if f.ours.Is6() {
		p.dev = "softvpi1" // the driver's second adapter
	}
	return p
}

func there(t testing.TB, g *guest, f family) place {
	t.Helper()
	return place{listens: g.listensAt, addr: f.theirs.String(), v4: theirs.v4.String(), dev: "rxe0", gid: g.gidOf(t, f.theirs),
		start: func(t testing.TB, words ...string) program {
			return g.program(t, words...)
		}}
}

// gidOf returns the index of an address among the GIDs of rxe0. The kernel enters an address when it hears of it or when it hears of rxe0,
// whichever comes first, so that their order is not always the same.
func (g *guest) gidOf(t testing.TB, addr netip.Addr) (index string) {
	t.Helper()
	gid := netip.AddrFrom16(addr.As16()).StringExpanded()
	await.Eventually(t, "a GID "+gid, func() bool {
		rows := strings.Fields(g.sh(t, "cat /sys/class/infiniband/rxe0/ports/1/gids/{0..7}"))
		i := slices.Index(rows, gid)
		index = fmt.Sprint(i)
		return i >= 0
	})
	return index
}

// awaits waits until the server of an exchange accepts clients.
func (p place) awaits(t testing.TB, s program, x *exchange, port string, settle time.Duration) {
	t.Helper()
	n := 0
	if ofTCP.MatchString(x.server) {
		n, _ = strconv.Atoi(port)
	}
	if x.joins {
		says(t, s, "joined dgid")
	} else {
		p.listens(t, n, settle)
	}
}

// ofTCP matches servers whose clients come by TCP.
var ofTCP = regexp.MustCompile(`^(ibv_|ib_.* -d \$ADAPTER |qperf|env )`)

// listensHere cannot see listeners at the driver. A server on this machine gets ready within milliseconds, and a
// client in the guest takes much longer to connect. On a busy machine fio needs longer than its peer: every further
// try doubles settle.
func listensHere(t testing.TB, port int, settle time.Duration) {
	t.Helper()
	row := fmt.Sprintf(":%04X 00000000", port)
	for end := time.Now().Add(programLimit); port > 0; time.Sleep(5 * time.Millisecond) {
		v4, _ := os.ReadFile("/proc/" + ownThread + "/net/tcp")
		v6, _ := os.ReadFile("/proc/" + ownThread + "/net/tcp6")
		if strings.Contains(string(v4)+string(v6), row) || time.Now().After(end) {
			return // if it does not listen the client will find out
		}
	}
	time.Sleep(settle)
}

func (g *guest) listensAt(t testing.TB, port int, _ time.Duration) {
	t.Helper()
	if port == 0 {
		g.listens(t)
		return
	}
	g.sh(t, fmt.Sprintf(`until [[ $(</proc/net/tcp)$(</proc/net/tcp6) == *":%04X 00000000"* ]]; do sleep 0.05; done`, port))
}

// words returns the words of a command at p.
func (p place) words(command string, server place, port string) []string {
	values := map[string]string{"SERVER4": server.v4, "SERVER": server.addr, "OWN": p.addr, "ADAPTER": p.dev, "GID": p.gid, "PORT": port}
	return strings.Fields(os.Expand(command, func(name string) string { return values[name] }))
}

func (p *tool) running() bool             { return open(p.done) }
func (p *tool) status(t testing.TB) error { t.Helper(); return p.ends(t, programLimit) }

// stop ends the tool: as it is asked to if it can, because fio takes its worker, a session of its own, with it then.
func (p *tool) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (r *run) running() bool { return open(r.Done()) }
func (r *run) stop()         { _ = r.Kill(); <-r.Done() }
func (r *run) status(t testing.TB) error {
	t.Helper()
	status, err := r.ends(t, programLimit)
	raced := status == 255 && strings.HasPrefix(r.name, "rping") && strings.Contains(r.text(), rpingRace)
	if status != 0 && !raced {
		return errors.Join(err, fmt.Errorf("status %d", status))
	}
	return err
}

func open(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// tries is how often an exchange is started again because the client found no listener. perftest's servers with -R
// stop listening and start again between their two connections, and qperf's tell their clients the port before they
// listen at it: a client that is much faster than its server comes too early.
const tries = 8

// firstSettle is how long a server may take to listen before the first try, if its listening cannot be seen.
const firstSettle = 100 * time.Millisecond

// stuckInOrder is why ib_send_lat -e hangs in the guest now and then. It waits for the event of its message before that of
// the answer. The retransmission timer of Soft-RoCE runs on from message to message, so it may fire for one that has just
// left; that one is sent again and completes by the second acknowledgement only, behind the answer.
const stuckInOrder = "Soft-RoCE sends a message again at once, whose completion then follows that of its answer"

// orderLimit is how long such an exchange takes at most; otherwise it takes less than a second.
const orderLimit = 10 * time.Second

// stuck reports whether a client hangs because of that: it is the guest's turn, since the last message of the two was
// ours, and it has acknowledged it. If it is ours, the fault is.
func (g *guest) stuck(t *testing.T, client program) bool {
	t.Helper()
	for end := time.Now().Add(orderLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if !client.running() {
			return false
		}
	}
	const send, acknowledge = "4", "17" // RC SEND Only, RC Acknowledge
	out, err := exec.Command("tshark", "-n", "-r", g.capture, "-Y", "infiniband.bth.opcode", "-T", "fields", "-e", "ip.src",
		"-e", "infiniband.bth.opcode").Output()
	ok(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < 2 {
		return false
	}
	return lines[len(lines)-2] == ours.v4.String()+"\t"+send && lines[len(lines)-1] == theirs.v4.String()+"\t"+acknowledge
}

// run runs the two programs to their ends.
func (x *exchange) run(t *testing.T, g *guest, server, client place, port string) {
	var s, c program
	var err error
	for try := range tries {
		s = server.start(t, server.words(x.server, server, port)...)
		server.awaits(t, s, x, port, firstSettle<<try)
		c = client.start(t, client.words(x.client, server, port)...)
		if x.ordered && try < tries-1 && g.stuck(t, c) {
			retry.Count(t, strings.Fields(x.client)[0]+" -e", stuckInOrder)
			c.stop()
			s.stop()
			continue
		}
		if err = c.status(t); !refused.MatchString(c.text()) || try == tries-1 {
			break
		}
		retry.Count(t, strings.Fields(x.client)[0], "its server cannot be seen to listen, and did not listen yet")
		s.stop()
	}
	if err != nil {
		t.Errorf("the client: %v", err)
	}
	if x.endless || t.Failed() {
		s.stop()
	} else if err := s.status(t); err != nil {
		t.Errorf("the server: %v", err)
	}
	for _, o := range []struct{ side, says, said string }{{"client", x.says, c.text()}, {"server", x.serverSays, s.text()}} {
		if !regexp.MustCompile(o.says).MatchString(o.said) {
			t.Errorf("the %s does not say %q", o.side, o.says)
		}
	}
	if t.Failed() {
		t.Logf("the client said\n%s\nthe server said\n%s", tail(c.text()), tail(s.text()))
	}
}

// refused matches what clients print if nobody listens. rstream prints the system's error of an earlier call instead.
var refused = regexp.MustCompile(`(?i)refused|rejected|couldn't connect|unexpected CM event|^rpoll: `)

// says waits until p has printed something.
func says(t testing.TB, p program, what string) {
	t.Helper()
	for end := time.Now().Add(programLimit); !strings.Contains(p.text(), what); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) || !p.running() {
			t.Fatalf("it does not say %q, but\n%s", what, p.text())
		}
	}
}
