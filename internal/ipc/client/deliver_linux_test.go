package client

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestDeliveredInOrder: however many events a delivery takes at a time, each is delivered once and in order.
func TestDeliveredInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const all = 5000
	q := newEventQueue(all)
	var mu sync.Mutex
	var got []command.Handle
	see := func(e *command.Event) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, e.Object)
	}
	q.deliver(func(e *command.Event) bool {
		if e.Type == command.EventDeviceFatal {
			return false
		}
		see(e)
		return true
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		out := make([]command.Event, 5)
		for {
			n, _, err := q.wait(ctx, out)
			if err != nil {
				return
			}
			for i := range out[:n] {
				see(&out[i])
			}
		}
	}()
	for sent := 0; sent < all; {
		batch := make([]command.Event, min(1+r.IntN(9), all-sent))
		for i := range batch {
			batch[i] = command.Event{Type: command.EventEstablished, Object: command.Handle(sent)}
			if r.IntN(20) == 0 {
				batch[i].Type = command.EventDeviceFatal
			}
			sent++
		}
		if _, err := q.push(batch); err != nil {
			t.Fatal(err)
		}
	}
	await.Eventually(t, "all events are there", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == all })
	stop()
	<-done
	if !slices.IsSorted(got) {
		t.Error("the events were delivered out of order")
	}
}

// TestDeliveryGrantsCredit: delivered events return their credit to the driver as taken ones do, and a push beyond
// the credit is an error.
func TestDeliveryGrantsCredit(t *testing.T) {
	q := newEventQueue(64)
	q.deliver(func(*command.Event) bool { return true })
	owed := 0
	for i := range 1000 {
		free, err := q.push(make([]command.Event, 1))
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if owed += 1 - free; owed > 16 {
			t.Fatalf("%d events without credit", owed)
		}
	}
	q.deliver(nil)
	if _, err := q.push(make([]command.Event, 65)); err == nil {
		t.Error("more events than the driver had credit for")
	}
}

// TestBegin: the result of a command that was begun is reported once: the answer, a refusal, or that the driver is
// gone.
func TestBegin(t *testing.T) {
	h := &fake.Host{}
	s, path := fake.Serve(t, h, server.Config{})
	c := dial(t, path, Options{})
	type result struct {
		h   command.Handle
		err error
	}
	told := make(chan result, 2*proto.MaxInFlight)
	for range proto.MaxInFlight {
		if err := c.BeginConnect(t.Context(), command.CMConnect{}, func(h command.Handle, err error) {
			told <- result{h,
				err}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range proto.MaxInFlight {
		if r := <-told; r.err != nil || r.h == 0 {
			t.Fatal(r)
		}
	}
	if err := c.BeginAccept(t.Context(), command.CMAccept{}, func(err error) { told <- result{1, err} }); err != nil {
		t.Fatal(err)
	}
	if r := <-told; r.err != nil {
		t.Fatal(r.err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.BeginAccept(ended, command.CMAccept{}, func(error) { t.Error("a command that was not begun had a result") }); !fake.IsCode(
		err,
		command.Canceled,
	) {
		t.Errorf("begin with a context that has ended: error %v, want canceled", err)
	}
	// A command that has no answer when the driver ends gets an error, and none can be begun after that.
	waits := make(chan error, 1)
	if err := c.begin(t.Context(), proto.OpCMListen, proto.Encode(proto.ListenArgs{ID: 1, Backlog: 1}),
		func(r reply) { waits <- r.err }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; !fake.IsCode(err, command.Removed) && !fake.IsCode(err, command.Canceled) {
		t.Errorf("the driver ended: error %v, want removed or canceled", err)
	}
	await.Eventually(t, "the driver is gone", func() bool { return c.calls.failure() != nil })
	if err := c.BeginAccept(t.Context(), command.CMAccept{},
		func(error) { t.Error("a command that was not begun had a result") }); !fake.IsCode(
		err,
		command.Removed,
	) {
		t.Errorf("begin after the driver ended: error %v, want removed", err)
	}
}

// TestAwait: a goroutine in Await, which waits for something other than an answer, takes frames from the driver
// meanwhile. Those that wait for answers are served whoever leaves first, and every Await ends.
func TestAwait(t *testing.T) {
	_, c := pair(t, server.Config{}, Options{})
	var all sync.WaitGroup
	for g := range 6 {
		r := rand.New(rand.NewPCG(uint64(g), 5))
		all.Go(func() {
			for range 300 {
				if _, err := c.AllocPD(t.Context(), 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
		all.Go(func() {
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(300))*time.Microsecond)
				closed, token := make(chan struct{}), make(chan struct{}, 1)
				switch r.IntN(3) {
				case 0:
					go close(closed)
					if err := c.Await(t.Context(), closed); err != nil {
						t.Error(err)
					}
				case 1:
					token <- struct{}{}
					if err := c.Await(t.Context(), token); err != nil || len(token) != 0 {
						t.Errorf("awaiting a token: error %v, %d tokens left", err, len(token))
					}
				case 2:
					if err := c.Await(ctx, closed); err != context.DeadlineExceeded {
						t.Error(err)
					}
				}
				cancel()
			}
		})
	}
	all.Wait()
	if c.tracks.owner.Followed() {
		t.Error("goroutines still wait")
	}
}
