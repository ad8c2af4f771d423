package nd_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/nd"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const maxTransfer = 64 << 10

// place is the pair of adapters on which a case runs.
type place struct {
	*testbed.Bed
	server, client *nd.Adapter
}

// each runs test in every mode.
func each(t *testing.T, test func(t *testing.T, p *place)) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) { test(t, newPlace(t, b)) })
}

func newPlace(t testing.TB, b *testbed.Bed) *place {
	p := &place{Bed: b}
	server := nd.NewProvider(b.Server)
	client := nd.NewProvider(b.Client)
	t.Cleanup(func() { ok(t, server.Close()); ok(t, client.Close()) })
	p.server = must(server.OpenAdapterAt(b.Addrs[0]))(t)
	p.client = must(client.OpenAdapterAt(b.Addrs[1]))(t)
	return p
}

var ok, wantErr = testbed.OK, testbed.WantErr

func must[T any](v T, err error) func(testing.TB) T { return testbed.Must(v, err) }

// end is one side of a connection, with everything that it needs.
type end struct {
	adapter   *nd.Adapter
	cq        *nd.CompletionQueue
	mr        *nd.MemoryRegion
	qp        *nd.QueuePair
	connector *nd.Connector
}

type endConfig struct {
	depth  int
	size   int
	flags  nd.MRFlags
	inline int
}

func newEnd(t testing.TB, a *nd.Adapter, c endConfig) *end {
	t.Helper()
	if c.depth == 0 {
		c.depth = 16
	}
	if c.size == 0 {
		c.size = maxTransfer
	}
	e := &end{adapter: a}
	e.cq = must(a.CreateCompletionQueue(4 * c.depth))(t)
	e.mr = must(a.CreateMemoryRegion())(t)
	ok(t, e.mr.Register(testbed.Context(t), make([]byte, c.size), c.flags|nd.MRFlagAllowLocalWrite))
	e.qp = must(a.CreateQueuePair(nd.QueuePairConfig{
		ReceiveCompletionQueue: e.cq, InitiatorCompletionQueue: e.cq, Context: e,
		ReceiveQueueDepth: c.depth, InitiatorQueueDepth: c.depth,
		MaxReceiveRequestSGE: 4, MaxInitiatorRequestSGE: 4, InlineDataSize: c.inline,
	}))(t)
	e.connector = must(a.CreateConnector())(t)
	t.Cleanup(func() { e.close(t) })
	return e
}

func (e *end) close(t testing.TB) {
	t.Helper()
	ok(t, e.connector.Close())
	ok(t, e.qp.Close())
	ok(t, e.cq.Close())
	ok(t, e.mr.Close())
}

var full = nd.ConnectParams{InboundReadLimit: 16, OutboundReadLimit: 16}

// listen starts a listener at a port that the adapter chooses.
func listen(t testing.TB, a *nd.Adapter) (*nd.Listener, netip.AddrPort) {
	t.Helper()
	list := must(a.QueryAddressList())(t)
	l := must(a.Listen(netip.AddrPortFrom(list[0], 0), 0))(t)
	t.Cleanup(func() { ok(t, l.Close()) })
	return l, must(l.GetLocalAddress())(t)
}

// later starts a call that waits, and returns a function that waits for its error.
func later(f func() error) func() error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return func() error { return <-ch }
}

// accept serves one request in the background with e.
func (e *end) accept(ctx context.Context, l *nd.Listener, p nd.ConnectParams) func() error {
	return later(func() error {
		if err := l.GetConnectionRequest(ctx, e.connector); err != nil {
			return err
		}
		return e.connector.Accept(ctx, e.qp, p)
	})
}

// connect connects two ends.
func connect(t testing.TB, server, client *end) {
	t.Helper()
	ctx := testbed.Context(t)
	l, addr := listen(t, server.adapter)
	accepted := server.accept(ctx, l, full)
	ok(t, client.connector.Connect(ctx, client.qp, addr, full))
	ok(t, client.connector.CompleteConnect(ctx))
	ok(t, accepted())
}

// next returns the next result of e.
func (e *end) next(t testing.TB) nd.Result {
	t.Helper()
	var r [1]nd.Result
	if _, err := e.cq.WaitResults(testbed.Context(t), r[:]); err != nil {
		t.Fatal(err)
	}
	return r[0]
}

// want takes the next result, which must be of this kind and status.
func (e *end) want(t testing.TB, kind nd.RequestType, status nd.Status) nd.Result {
	t.Helper()
	r := e.next(t)
	if r.Status != status || r.RequestType != kind {
		t.Fatalf("result is %v of %v, want %v of %v", r.Status, r.RequestType, status, kind)
	}
	if r.QueuePairContext != any(e) {
		t.Fatalf("result has the context of another queue pair")
	}
	return r
}
