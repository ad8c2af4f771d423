package verbs

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/tools/clib"
	"github.com/softvpi/softvpi/verbs"
)

// exchangeProgram compiles testdata/exchange.c.
func exchangeProgram(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "exchange")
	if out, err := exec.Command("cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o", exe, "testdata/exchange.c",
		filepath.Join(libraries.dir, "libibverbs.so.1")).CombinedOutput(); err != nil {
		if strings.Contains(string(out), "infiniband/verbs.h") {
			t.Skip("libibverbs-dev is not installed")
		}
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// segments is b for programs whose page-aligned memory is allocated in segments.
func (b *bench) segments(t *testing.T) *bench {
	t.Helper()
	c := b.under(t)
	settings, err := clib.Settings(libraries.dir, b.socket, clib.Memory)
	if err != nil {
		t.Fatal(err)
	}
	c.env = append([]string{}, b.env...)
	for _, s := range settings {
		c.env = append(c.env, s.Name+"="+s.Value)
	}
	return c
}

// exchanger is one end of an exchange.
type exchanger interface {
	line() string   // its whereabouts
	join(at string) // begins to connect to the peer whose line is at
	joined()        // waits until it is connected
	begin()         // begins the traffic; both must have joined
	wait() error    // waits until it has done and received everything
	leave()         // disconnects; both must have waited
}

// programEnd is an end in a program of the C library.
type programEnd struct {
	p   *program
	in  io.WriteCloser
	out *bufio.Reader
	t   *testing.T
}

func (b *bench) exchange(args ...string) *programEnd {
	b.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	e := &programEnd{out: bufio.NewReader(r), t: b.t}
	e.p = b.startAs(func(c *exec.Cmd) {
		c.Stdout = w
		e.in, err = c.StdinPipe()
	}, nil, args...)
	w.Close()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { r.Close() })
	return e
}

func (e *programEnd) line() string {
	s, err := e.out.ReadString('\n')
	if err != nil {
		<-e.p.done
		e.t.Fatalf("%v: %v\n%s", e.p.args, err, e.p.out.String())
	}
	return s
}

func (e *programEnd) join(at string) { _, _ = io.WriteString(e.in, at) }

func (e *programEnd) joined() {
	if s := e.line(); s != "ready\n" {
		e.t.Errorf("%v says %q, want ready", e.p.args, s)
	}
}

func (e *programEnd) begin() { _, _ = io.WriteString(e.in, "begin\n") }

func (e *programEnd) wait() error {
	s, err := e.out.ReadString('\n')
	if err != nil || !strings.HasPrefix(s, "done ") {
		<-e.p.done
		return fmt.Errorf("%v: %q, %v\n%s", e.p.args, s, e.p.err, e.p.out.String())
	}
	return nil
}

func (e *programEnd) leave() { e.in.Close() }

// start connects two ends and lets them begin. Both are connected before either begins: a connection that is never at
// rest after a first message, sent before the peer was ready, may stay on the wire.
func start(a, b exchanger) {
	atA, atB := a.line(), b.line()
	a.join(atB)
	b.join(atA)
	a.joined()
	b.joined()
	a.begin()
	b.begin()
}

// between runs an exchange between two ends until it is finished.
func between(t *testing.T, a, b exchanger) {
	t.Helper()
	start(a, b)
	errs := make(chan error, 2)
	for _, e := range []exchanger{a, b} {
		go func() { errs <- e.wait() }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	a.leave()
	b.leave()
}

// directMessages returns how many messages programs that have ended carried out themselves; the driver counts them
// when it takes a connection back.
func (b *bench) directMessages() (n uint64) {
	b.t.Helper()
	b.settled()
	host, err := verbs.Attach(b.t.Context(), b.socket)
	if err != nil {
		b.t.Fatal(err)
	}
	defer host.Close()
	devices, err := host.Devices(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, d := range devices {
		list, err := d.Counters()
		if err != nil {
			b.t.Fatal(err)
		}
		for _, c := range list {
			if c.Name == "Direct messages" {
				n += c.Value
			}
		}
	}
	return n
}

// end makes an end of an exchange at an adapter of the bench.
func (b *bench) end(exe string, device int, seed uint32, args ...string) *programEnd {
	b.t.Helper()
	return b.exchange(append([]string{exe, fmt.Sprintf("softvpi%d", device), fmt.Sprint(seed), exchangeRequests}, args...)...)
}

const exchangeRequests = "30000"

// Both ends use a connection in every way at once, and all data is as it was sent: between programs of the C library
// and of Go, polling and with events, with memory in segments and elsewhere, and with a child that takes over. What
// can go directly does.
func TestExchange(t *testing.T) {
	b := newBench(t)
	exe := exchangeProgram(t)
	seed := rand.Uint32() % (1 << 30)
	t.Logf("seed %d", seed)
	for _, c := range []struct {
		name         string
		a, b         []string // arguments of the ends; nil: an end in Go
		aOwn, bOwn   bool     // has only its own memory, no segments
		none         bool     // nothing can go directly
		few          bool     // or only some of it
		aEnvironment []string
	}{
		{name: "C and C", a: []string{}, b: []string{}},
		{name: "C and Go", a: []string{}},
		{name: "events", a: []string{"events"}, b: []string{"events"}},
		{name: "events and polling", a: []string{"events"}, b: []string{}},
		{name: "events and Go", a: []string{"events"}},
		{name: "fork", a: []string{"fork"}, b: []string{}},
		{name: "fork, both", a: []string{"fork"}, b: []string{"fork", "events"}},
		{name: "fork and Go", a: []string{"fork"}},
		{name: "one without segments", a: []string{}, b: []string{}, aOwn: true, few: true},
		{name: "without segments", a: []string{}, b: []string{}, aOwn: true, bOwn: true, few: true},
		{name: "one stays out", a: []string{}, b: []string{}, aEnvironment: []string{"SOFTVPI_DIRECT=off"}, none: true},
		{name: "one has the copier", a: []string{}, b: []string{}, aEnvironment: []string{"SOFTVPI_MEMORY_PATH=copier"}, none: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			side := func(args []string, own bool, device int, env []string) exchanger {
				if args == nil {
					return newGoEnd(t, b.socket, device, seed+uint32(device))
				}
				at := b.segments(t)
				if own {
					at = b.under(t)
				}
				at.env = append(at.env, env...)
				return at.end(exe, device, seed+uint32(device), args...)
			}
			before := b.directMessages()
			between(t, side(c.a, c.aOwn, 0, c.aEnvironment), side(c.b, c.bOwn, 1, nil))
			n := b.directMessages() - before
			t.Logf("%d messages went directly", n)
			if !c.few && (n == 0) != c.none {
				t.Errorf("%d messages went directly", n)
			}
		})
	}
}

// Programs on the direct path are killed at any moment; their peers are told, and others notice nothing.
func TestKilledOnTheDirectPath(t *testing.T) {
	b := newBench(t)
	exe := exchangeProgram(t)
	seed := rand.Uint32() % (1 << 30)
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 3))
	var stop atomic.Bool
	killed := make(chan int, 1)
	go func() {
		n, at := 0, b.segments(t)
		defer func() { stop.Store(true); killed <- n }()
		for end := time.Now().Add(stressFor); time.Now().Before(end) && !t.Failed(); n++ {
			victim := at.end(exe, n%2, seed+uint32(n))
			var other exchanger = at.end(exe, 1-n%2, seed)
			if n%3 == 0 {
				other.(*programEnd).p.stop()
				other = newGoEnd(t, b.socket, 1-n%2, seed)
			}
			start(victim, other)
			time.Sleep(time.Duration(r.IntN(150)) * time.Millisecond)
			victim.p.stop()
			// It has learned of the peer's end, or had everything that it needed before.
			if err := other.wait(); err != nil && n%3 != 0 && !strings.Contains(err.Error(), "exchange: ") {
				t.Error(err)
			}
			other.leave()
		}
	}()
	rounds := 0
	for ; (!stop.Load() || rounds == 0) && !t.Failed(); rounds++ {
		between(t, b.segments(t).end(exe, 0, seed+7), newGoEnd(t, b.socket, 1, seed+8))
	}
	stop.Store(true)
	t.Logf("%d programs were killed while %d exchanges ran to their end", <-killed, rounds)
	b.settled()
}

// perftest's bandwidth servers stay in RTR, because they only receive; their clients go directly all the same.
// The driver introduces the two programs while their first messages go through it. With other work on the processors that
// takes a while, so there are many messages; -N leaves out the search for the peak, whose time grows with their square.
func TestPerftestGoesDirectly(t *testing.T) {
	b := newBench(t)
	for _, p := range []pair{
		measured("ib_send_bw -x 0 -s 64 -N -n 1000000", 64, 1000000),
		measured("ib_write_bw -x 0 -s 64 -N -n 1000000", 64, 1000000),
		measured("ib_read_bw -x 0 -s 64 -N -n 1000000", 64, 1000000),
		measured("ib_atomic_bw -x 0 -N -n 1000000", 8, 1000000),
		measured("ib_send_bw -x 0 -s 64 -N -n 125000 -q 8", 64, 1000000),
		connected("ib_send_bw -s 64 -N -n 1000000", 64, 1000000),
	} {
		t.Run(p.name, func(t *testing.T) {
			before := b.directMessages()
			b.segments(t).talk(p)
			if n := b.directMessages() - before; n == 0 {
				t.Error("no message went directly")
			}
		})
	}
}

// Sockets have their buffers in memory that the driver shares, without a flag: between two programs of one driver their
// messages go directly.
func TestSocketsGoDirectly(t *testing.T) {
	b := newBench(t)
	for _, p := range []pair{
		{name: "rstream", server: "rstream -p PORT -S 64 -C 1 -I 50000", client: "rstream -s ADDR0 -p PORT -S 64 -C 1 -I 50000",
			says: `(?m)^\w+ +64 +1 +50k `},
	} {
		t.Run(p.name, func(t *testing.T) {
			before := b.directMessages()
			b.talk(p)
			// How many go through the driver before it has introduced the two is the machine's business.
			if n := b.directMessages() - before; n < 5000 {
				t.Errorf("%d of more than 100000 messages went directly", n)
			}
		})
	}
}
