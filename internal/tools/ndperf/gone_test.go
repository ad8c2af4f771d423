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

	"github.com/softvpi/softvpi/internal/bed"
	"github.com/softvpi/softvpi/internal/tools/session"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// A client that fails after the server is ready does not leave it waiting.
func TestServerEndsWhenTheClientFails(t *testing.T) {
	addrs := bed.Addrs()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	test := Test{Write, Bandwidth}
	serving, announce := make(chan struct{}), sync.Once{}
	out := writer(func() { announce.Do(func() { close(serving) }) })
	var errs bytes.Buffer
	status := make(chan int, 1)
	go func() {
		status <- test.Main(ctx, tool.Env{Name: test.Name(), Args: []string{"-S", addrs[0].String(), "--mode", "embedded"}, Stdout: out, Stderr: &errs})
	}()
	<-serving
	env := tool.Env{Name: test.Name(), Args: []string{"-C", addrs[0].String(), "-L", addrs[1].String(), "--mode", "embedded"}, Stdout: io.Discard, Stderr: io.Discard}
	o, code, done := test.parse(env)
	if done {
		t.Fatalf("options: status %d", code)
	}
	s, err := session.Dial(ctx, o.mode, netip.AddrPortFrom(o.Addr, o.Port))
	if err != nil {
		t.Fatal(err)
	}
	if err := untilReady(ctx, test, s, &o); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if code := <-status; code != tool.Failure || !strings.Contains(errs.String(), "ND_CONNECTION_ABORTED") || ctx.Err() != nil {
		t.Errorf("the server ends with status %d after %v: %s", code, time.Since(start), errs.String())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// untilReady is a client that leaves when the server is ready.
func untilReady(ctx context.Context, test Test, s *session.Session, o *Options) (err error) {
	e, err := newEndpoint(ctx, test, s, o.QPs, o.Depth)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if e.control, err = e.newLink(controlDepth, 0); err != nil {
		return err
	}
	if err := errors.Join(e.allocate(ctx, o.Size), e.postControlReceives()); err != nil {
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

// writer is told of every write.
type writer func()

func (w writer) Write(b []byte) (int, error) { w(); return len(b), nil }
