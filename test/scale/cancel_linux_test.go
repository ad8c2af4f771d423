package scale

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/nd"
)

// Waiting calls are cancelled at any moment, and objects are closed while others use them. Every call returns, with
// an error of the interface, and when everything is closed nothing is left (goroutines are counted when the tests
// end).
func TestCancelAndCloseAtAnyMoment(t *testing.T) {
	beside(t)
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		server, client := nd.NewProvider(b.Server), nd.NewProvider(b.Client)
		at, err := server.OpenAdapterAt(b.Addrs[0])
		check(t, err)
		from, err := client.OpenAdapterAt(b.Addrs[1])
		check(t, err)
		l, err := at.Listen(netip.AddrPortFrom(b.Addrs[0], 0), 0)
		check(t, err)
		to, err := l.GetLocalAddress()
		check(t, err)

		seconds := float64(size(30, 1))
		end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
		var wg sync.WaitGroup
		var did tally
		more := func() bool { // on a busy machine it goes on until it has done what it is for
			now := time.Now()
			return now.Before(end) || !did.everything() && now.Before(end.Add(await.Limit))
		}
		for i := range 4 {
			for side := range 2 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					r := rand.New(rand.NewPCG(seed, uint64(2*i+side)))
					for more() && !t.Failed() {
						if side == 0 {
							life(t, r, at, &did, func(ctx context.Context, x *ndEnd) error {
								if err := l.GetConnectionRequest(ctx, x.connector); err != nil {
									return err
								}
								return x.connector.Accept(ctx, x.qp, nd.ConnectParams{})
							})
						} else {
							life(t, r, from, &did, func(ctx context.Context, x *ndEnd) error {
								if err := x.connector.Connect(ctx, x.qp, to, nd.ConnectParams{}); err != nil {
									return err
								}
								return x.connector.CompleteConnect(ctx)
							})
						}
					}
				}()
			}
		}
		finished := make(chan struct{})
		go func() {
			wg.Wait()
			close(finished)
		}()
		select {
		case <-finished:
		case <-time.After(time.Until(end) + 2*await.Limit):
			stacks := make([]byte, 1<<20)
			t.Fatalf("calls do not return:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
		t.Logf("%d lives, %d connected, %d messages, %d calls cancelled", did.lives.Load(), did.connected.Load(), did.messages.Load(),
			did.cancelled.Load())
		if !did.everything() {
			t.Error("the test did not do what it is for")
		}
		check(t, l.Close())
		check(t, server.Close())
		check(t, client.Close())
	})
}

// tally counts what happened.
type tally struct{ lives, connected, messages, cancelled atomic.Int64 }

// everything reports whether all of it has happened.
func (t *tally) everything() bool {
	return t.connected.Load() > 0 && t.messages.Load() > 0 && t.cancelled.Load() > 0
}

// ndEnd is one end of a connection.
type ndEnd struct {
	cq        *nd.CompletionQueue
	mr        *nd.MemoryRegion
	qp        *nd.QueuePair
	connector *nd.Connector
}

// life creates an end, connects it, sends and receives a little, and closes it, while another goroutine interferes.
func life(t *testing.T, r *rand.Rand, a *nd.Adapter, did *tally, connect func(context.Context, *ndEnd) error) {
	did.lives.Add(1)
	x, err := newNDEnd(a)
	if err != nil {
		t.Errorf("make: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var wg sync.WaitGroup
	wg.Add(1)
	what, when := r.IntN(8), time.Duration(r.IntN(3000))*time.Microsecond
	go func() {
		defer wg.Done()
		time.Sleep(when)
		x.interfere(t, what, cancel)
	}()
	note := func(err error) bool {
		if errors.Is(err, nd.ErrCanceled) {
			did.cancelled.Add(1)
		}
		expected(t, err)
		return err == nil
	}
	if note(connect(ctx, x)) {
		did.connected.Add(1)
		x.talk(ctx, r, did, note)
	}
	if r.IntN(2) == 0 {
		note(x.connector.Disconnect(ctx))
	}
	if r.IntN(2) == 0 {
		wg.Wait()
	}
	x.close(t, r)
	wg.Wait()
}

func newNDEnd(a *nd.Adapter) (x *ndEnd, err error) {
	x = &ndEnd{}
	if x.cq, err = a.CreateCompletionQueue(64); err != nil {
		return nil, err
	}
	if x.mr, err = a.CreateMemoryRegion(); err != nil {
		return nil, err
	}
	if err = x.mr.Allocate(context.Background(), 4096, nd.MRFlagAllowLocalWrite); err != nil {
		return nil, err
	}
	if x.qp, err = a.CreateQueuePair(nd.QueuePairConfig{
		ReceiveCompletionQueue: x.cq, InitiatorCompletionQueue: x.cq, ReceiveQueueDepth: 16, InitiatorQueueDepth: 16,
	}); err != nil {
		return nil, err
	}
	x.connector, err = a.CreateConnector()
	return x, err
}

// interfere does one of several unexpected things.
func (x *ndEnd) interfere(t *testing.T, what int, cancel context.CancelFunc) {
	switch what {
	case 0:
		cancel()
	case 1:
		expected(t, x.connector.CancelOverlappedRequests())
	case 2:
		expected(t, x.cq.CancelOverlappedRequests())
	case 3:
		expected(t, x.qp.Close())
	case 4:
		expected(t, x.connector.Close())
	case 5:
		expected(t, x.qp.Flush())
	case 6:
		expected(t, x.mr.Close())
	}
}

// talk posts receives and sends and takes results for as long as that works.
func (x *ndEnd) talk(ctx context.Context, r *rand.Rand, did *tally, note func(error) bool) {
	for i := range 8 {
		if !note(x.qp.Receive(uint64(i), []nd.SGE{x.mr.SGE(0, 1024)})) {
			return
		}
	}
	for i := range 1 + r.IntN(8) {
		if !note(x.qp.Send(uint64(i), []nd.SGE{x.mr.SGE(2048, 1+r.IntN(1024))}, 0)) {
			return
		}
	}
	var results [16]nd.Result
	for range r.IntN(6) {
		step, cancel := context.WithTimeout(ctx, time.Duration(r.IntN(2000))*time.Microsecond)
		var n int
		var err error
		if r.IntN(2) == 0 {
			n, err = x.cq.WaitResults(step, results[:])
		} else if err = x.cq.Notify(step, nd.NotifyAny); err == nil {
			n, err = x.cq.GetResults(results[:])
		}
		cancel()
		did.messages.Add(int64(n))
		note(err)
	}
}

// close closes everything, each time in another order, but objects that others use after those.
func (x *ndEnd) close(t *testing.T, r *rand.Rand) {
	first := []func() error{x.connector.Close, x.qp.Close, x.mr.Close}
	r.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
	for _, f := range append(first, x.cq.Close) {
		if err := f(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// expected accepts only errors of the interface.
func expected(t *testing.T, err error) {
	t.Helper()
	var typed *nd.Error
	if err != nil && !errors.As(err, &typed) {
		t.Errorf("%T: %v", err, err)
	}
	if typed != nil && (typed.Status == nd.StatusInternalError || typed.Status == nd.StatusUnsuccessful) {
		t.Errorf("unexpected: %v (%v)", err, typed.Cause)
	}
}
