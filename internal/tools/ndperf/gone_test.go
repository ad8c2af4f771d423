package ndperf

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// The server ends with ND_CONNECTION_ABORTED when its client fails after the server has said that it is ready; it
// does not wait on.
func TestServerEndsWhenTheClientFails(t *testing.T) {
	addrs := testbed.Addrs()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	test := Test{Write, Bandwidth}
	server := startServer(ctx, test, addrs[0])
	o, s := dialled(ctx, t, test, addrs)
	if err := untilReady(ctx, test, s, &o); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if code := <-server.status; code != tool.Failure || !strings.Contains(server.errs.String(), "ND_CONNECTION_ABORTED") ||
		ctx.Err() != nil {
		t.Errorf("the server ends with status %d after %v: %s; want 1 and ND_CONNECTION_ABORTED", code, time.Since(start),
			server.errs.String())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Both sides cycle through as much memory as the client's --cycle says; the server's own value does not count.
func TestBothSidesCycleThroughTheClientsMemory(t *testing.T) {
	test := Test{Send, Bandwidth}
	for _, cycle := range []string{"1", "100000", "16777216"} {
		addrs := testbed.Addrs()
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		server := startServer(ctx, test, addrs[0], "--cycle", "77")
		o, s := dialled(ctx, t, test, addrs, "-s", "5000", "-n", "10", "--cycle", cycle)
		e, err := newEndpoint(ctx, test, s, o.QPs, o.Depth)
		if err != nil {
			t.Fatal(err)
		}
		e.stop = ctx
		if err := e.allocate(ctx, o.Size, o.Cycle); err != nil {
			t.Fatal(err)
		}
		remote, err := e.connect(ctx, &o)
		if err != nil {
			t.Fatal(err)
		}
		if want := uint64(o.Cycle + o.Size); remote.Length != want || uint64(len(e.mem)) != want {
			t.Errorf("--cycle %s: %d bytes here, %d at the server; want %d", cycle, len(e.mem), remote.Length, want)
		}
		if at, want := e.newCycle(o.Size), max(o.Cycle/5056, 1); at.slots != want || at.block != 5056 {
			t.Errorf("--cycle %s: %+v; want %d slots", cycle, at, want)
		}
		if err := errors.Join(e.close(), s.Close()); err != nil {
			t.Error(err)
		}
		if <-server.status; !strings.Contains(server.errs.String(), "that is run instead of -s 65536 -n 1000 -q 1 --cycle 77") {
			t.Errorf("the server says %s; want that it runs the client's test instead of its own", server.errs.String())
		}
	}
}

// running is a server in this process: its exit status when it ends, and its error output.
type running struct {
	status chan int
	errs   bytes.Buffer
}

// startServer starts a server and returns when it serves, which is when it first prints something.
func startServer(ctx context.Context, test Test, addr netip.Addr, options ...string) *running {
	serving, announce := make(chan struct{}), sync.Once{}
	out := writer(func() { announce.Do(func() { close(serving) }) })
	r := &running{status: make(chan int, 1)}
	args := append([]string{"-S", addr.String(), "--mode", "embedded"}, options...)
	go func() {
		r.status <- test.Main(ctx, tool.Env{Name: test.Name(), Args: args, Stdout: out, Stderr: &r.errs})
	}()
	<-serving
	return r
}

// dialled returns the options of a client and its session with the server.
func dialled(ctx context.Context, t *testing.T, test Test, addrs [2]netip.Addr, options ...string) (options, *session.Session) {
	t.Helper()
	args := append([]string{"-C", addrs[0].String(), "-L", addrs[1].String(), "--mode", "embedded"}, options...)
	o, code, done := test.parse(tool.Env{Name: test.Name(), Args: args, Stdout: io.Discard, Stderr: io.Discard})
	if done {
		t.Fatalf("options: status %d", code)
	}
	s, err := session.Dial(ctx, o.mode, netip.AddrPortFrom(o.Addr, o.Port))
	if err != nil {
		t.Fatal(err)
	}
	return o, s
}

// untilReady runs a client that leaves as soon as the server is ready.
func untilReady(ctx context.Context, test Test, s *session.Session, o *options) (err error) {
	e, err := newEndpoint(ctx, test, s, o.QPs, o.Depth)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if e.control, err = e.newLink(controlDepth, 0); err != nil {
		return err
	}
	if err := errors.Join(e.allocate(ctx, o.Size, defaultCycle), e.postControlReceives()); err != nil {
		return err
	}
	if err := e.control.dial(ctx, netip.AddrPortFrom(o.Addr, o.Port), hello{test: test, session: 7}); err != nil {
		return err
	}
	ask := message{Type: "params", Buffer: e.buffer(), Params: &params{QPs: o.QPs, Depth: o.Depth, MaxSize: e.maxSize, Sizes: o.words()}}
	if err := e.tell(ctx, &ask); err != nil {
		return err
	}
	_, err = e.hear(ctx, "ready")
	return err
}

// writer calls the function at every write.
type writer func()

func (w writer) Write(b []byte) (int, error) { w(); return len(b), nil }
