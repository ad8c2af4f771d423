package verbs_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/leaks"
	"github.com/softvpi/softvpi/verbs"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var ok, wantErr = testbed.OK, testbed.WantErr

func must[T any](v T, err error) func(testing.TB) T { return testbed.Must(v, err) }

// side is one program's objects.
type side struct {
	dev *verbs.Device
	pd  *verbs.PD
	cq  *verbs.CQ
	mr  *verbs.MR
	srq *verbs.SRQ // closed after the QP, if there is one
	qp  *verbs.QP
	id  *verbs.ID
}

const (
	memory     = 64 << 10
	everything = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.WindowBind |
		verbs.FlushGlobal
)

func newSide(t testing.TB, b *testbed.Bed, n int, typ verbs.QPType) *side {
	t.Helper()
	s := &side{dev: b.Device(t, n)}
	s.pd = must(s.dev.AllocPD())(t)
	s.cq = must(s.dev.CreateCQ(256))(t)
	s.mr = must(s.pd.Allocate(memory, everything))(t)
	s.qp = must(s.pd.CreateQP(verbs.QPConfig{
		Type: typ, SendCQ: s.cq, RecvCQ: s.cq, SendDepth: 64, RecvDepth: 64, SendSGE: 4, RecvSGE: 4, Inline: 128, Context: 77,
	}))(t)
	t.Cleanup(func() {
		if s.id != nil {
			ok(t, s.id.Close())
		}
		ok(t, s.qp.Close())
		if s.srq != nil {
			ok(t, s.srq.Close())
		}
		ok(t, s.cq.Close())
		ok(t, s.mr.Deregister())
		ok(t, s.pd.Close())
	})
	return s
}

// connected returns two sides whose RC QPs have been connected by the connection manager.
func connected(t testing.TB, b *testbed.Bed) (server, client *side) {
	t.Helper()
	server, client = newSide(t, b, 0, verbs.RC), newSide(t, b, 1, verbs.RC)
	connect(t, server, client)
	return server, client
}

var param = verbs.ConnParam{ResponderResources: 16, InitiatorDepth: 16}

func connect(t testing.TB, server, client *side) {
	t.Helper()
	ctx := testbed.Context(t)
	l := must(server.dev.Listen(netip.AddrPortFrom(server.dev.Addr(), 0), 0))(t)
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		id, err := l.Request(ctx)
		if err == nil {
			server.id = id
			err = id.Accept(ctx, server.qp, param)
		}
		accepted <- err
	}()
	client.id = must(client.dev.NewID())(t)
	ok(t, client.id.Connect(ctx, l.Addr(), client.qp, param))
	ok(t, client.id.Establish())
	ok(t, <-accepted)
}

// next returns the next completion.
func (s *side) next(t testing.TB) verbs.WC {
	t.Helper()
	var wc [1]verbs.WC
	if _, err := s.cq.Next(testbed.Context(t), wc[:]); err != nil {
		t.Fatal(err)
	}
	return wc[0]
}

// want takes the next completion, which must be of this operation and status.
func (s *side) want(t testing.TB, op verbs.CompletionOp, status verbs.Status) verbs.WC {
	t.Helper()
	wc := s.next(t)
	if wc.Op != op || wc.Status != status {
		t.Fatalf("completion of %v with %v, want %v with %v", wc.Op, wc.Status, op, status)
	}
	if wc.QPN != s.qp.Number() || wc.Context != 77 {
		t.Fatalf("completion of QP %#x with context %d, want %#x with 77", wc.QPN, wc.Context, s.qp.Number())
	}
	return wc
}

func (s *side) send(t testing.TB, wr verbs.SendWR) {
	t.Helper()
	wr.Flags |= verbs.Signaled
	ok(t, s.qp.PostSend(&wr))
}

func (s *side) recv(t testing.TB, id uint64, sge ...verbs.SGE) {
	t.Helper()
	ok(t, s.qp.PostRecv(&verbs.RecvWR{ID: id, SGE: sge}))
}

func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
