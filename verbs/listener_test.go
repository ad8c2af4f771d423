package verbs_test

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
	"github.com/softvpi/softvpi/verbs"
)

// A request beyond the backlog is refused for lack of resources; the others wait.
func TestBacklog(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		ctx := testbed.Context(t)
		server := b.Device(t, 0)
		l := must(server.Listen(netip.AddrPortFrom(server.Addr(), 0), 2))(t)
		defer l.Close()
		results := make(chan error, 3)
		for range 3 {
			s := newSide(t, b, 1, verbs.RC)
			s.id = must(s.dev.NewID())(t)
			go func() { results <- s.id.Connect(ctx, l.Addr(), s.qp, param) }()
		}
		var r *verbs.RejectedError
		if err := <-results; !errors.As(err, &r) || r.Reason != verbs.RejectNoResources {
			t.Fatalf("the first to be refused: %v, want a reject for want of resources", err)
		}
		for range 2 {
			id := must(l.Request(ctx))(t)
			ok(t, id.Reject(nil))
			ok(t, id.Close())
		}
		for range 2 {
			if err := <-results; !errors.As(err, &r) || r.Reason != verbs.RejectConsumer {
				t.Errorf("refused with %v, want the program's reject", err)
			}
		}
		wantErr(t, l.Listen(-1), verbs.ErrInvalid)
		ok(t, l.Close())
		_, err := l.Request(ctx)
		wantErr(t, err, verbs.ErrClosed)
	})
}

// A backlog of 0 means 128.
func TestDefaultBacklog(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		const backlog = 128
		ctx := testbed.Context(t)
		server := b.Device(t, 0)
		l := must(server.Listen(netip.AddrPortFrom(server.Addr(), 0), 0))(t)
		defer l.Close()
		results := make(chan error, backlog+1)
		for range backlog + 1 {
			s := newSide(t, b, 1, verbs.RC)
			s.id = must(s.dev.NewID())(t)
			go func() { results <- s.id.Connect(ctx, l.Addr(), s.qp, param) }()
		}
		var r *verbs.RejectedError
		if err := <-results; !errors.As(err, &r) || r.Reason != verbs.RejectNoResources {
			t.Fatalf("the first to be refused: %v, want a reject for want of resources", err)
		}
		for range backlog {
			id := must(l.Request(ctx))(t)
			ok(t, id.Reject(nil))
			ok(t, id.Close())
		}
		for range backlog {
			if err := <-results; !errors.As(err, &r) || r.Reason != verbs.RejectConsumer {
				t.Fatalf("refused with %v, want the program's reject", err)
			}
		}
	})
}

// Several goroutines post to one QP and poll one CQ: nothing is lost or reported twice.
func TestConcurrentPostsAndPolls(t *testing.T) {
	testbed.Each(t, func(t *testing.T, b *testbed.Bed) {
		server, client := connected(t, b)
		const posters, each = 4, 300
		var mu sync.Mutex
		seen := make(map[uint64]int)
		var wg sync.WaitGroup
		for p := range posters {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range each {
					wr := verbs.SendWR{
						ID: uint64(p*each + i), Op: verbs.OpWrite, Flags: verbs.Signaled,
						SGE: []verbs.SGE{client.mr.SGE(0, 64)}, RemoteAddr: server.mr.RemoteAddr(), RKey: server.mr.RKey(),
					}
					err := client.qp.PostSend(&wr)
					for verbs.IsQueueFull(err) {
						collect(t, client.cq, &mu, seen)
						err = client.qp.PostSend(&wr)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		wg.Wait()
		for ctx := testbed.Context(t); len(seen) < posters*each; {
			if ctx.Err() != nil {
				t.Fatalf("%d of %d requests completed", len(seen), posters*each)
			}
			collect(t, client.cq, &mu, seen)
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("request %d completed %d times", id, n)
			}
		}
	})
}

func collect(t *testing.T, cq *verbs.CQ, mu *sync.Mutex, seen map[uint64]int) {
	var wc [16]verbs.WC
	n, err := cq.Poll(wc[:])
	if err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, c := range wc[:n] {
		if c.Status != verbs.Success {
			t.Errorf("request %d: %v", c.ID, c.Status)
		}
		seen[c.ID]++
	}
}

func TestOpen(t *testing.T) {
	ctx := testbed.Context(t)
	nobody := filepath.Join(t.TempDir(), "none")
	addrs := testbed.Addrs()
	embed := verbs.Config{Adapters: testbed.Adapters(addrs)}

	h := must(verbs.Open(ctx, verbs.Options{Socket: nobody, Embed: embed}))(t)
	if h.Mode() != verbs.Embedded {
		t.Errorf("without a driver the mode is %v", h.Mode())
	}
	_, err := verbs.Open(ctx, verbs.Options{Mode: verbs.Embedded, Embed: embed})
	wantErr(t, err, verbs.ErrInUse) // h has the addresses
	ok(t, h.Close())

	if _, err := verbs.Open(ctx, verbs.Options{Mode: verbs.Attached, Socket: nobody}); err == nil {
		t.Error("attaching to nobody succeeds")
	}
	_, err = verbs.Open(ctx, verbs.Options{Mode: 9})
	wantErr(t, err, verbs.ErrInvalid)
	_, err = verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: addrs[0], MaxFrameSize: -1}}})
	wantErr(t, err, verbs.ErrInvalid)
	_, err = verbs.Embed(verbs.Config{Adapters: []verbs.AdapterConfig{{Addr: netip.MustParseAddr("192.0.2.1")}}})
	wantErr(t, err, verbs.ErrAddrNotAvailable)

	socket := testbed.Socket(t, addrs)
	h = must(verbs.Open(ctx, verbs.Options{Socket: socket, Name: "test"}))(t)
	defer h.Close()
	if h.Mode() != verbs.Attached {
		t.Errorf("with a driver the mode is %v", h.Mode())
	}
	d := must(h.DeviceByAddr(addrs[1]))(t)
	wantErr(t, d.SetEnabled(false), verbs.ErrUnsupported)
	if same := must(h.Device(d.Name()))(t); same.Index() != d.Index() {
		t.Errorf("Device(%q) is adapter %d, want %d", d.Name(), same.Index(), d.Index())
	}
	_, err = h.Device("Ethernet 99")
	wantErr(t, err, verbs.ErrNotFound)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = verbs.Open(canceled, verbs.Options{Socket: socket})
	wantErr(t, err, context.Canceled)
}
