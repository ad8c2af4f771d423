package eventqueue

import (
	"context"
	"errors"
	"testing"
	"unsafe"

	"github.com/softvpi/softvpi/internal/budget"
	"github.com/softvpi/softvpi/internal/command"
)

func event(object command.Handle) command.Event { return command.Event{Object: object} }

// TestOrder: events come in the order in which they were pushed, however few are read at a time; a dropped one does
// not come.
func TestOrder(t *testing.T) {
	q := New(nil)
	const all = 5000
	for i := range command.Handle(all) {
		if !q.Push(event(i)) {
			t.Fatal("the queue is full")
		}
	}
	q.Drop(func(e *command.Event) bool { return e.Object%3 == 0 })
	out := make([]command.Event, 7)
	next, got := command.Handle(1), 0
	for got < all-all/3-1 {
		n, err := q.Wait(t.Context(), out)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		for _, e := range out[:n] {
			if e.Object != next {
				t.Fatalf("event %d, want %d", e.Object, next)
			}
			if next++; next%3 == 0 {
				next++
			}
		}
		got += n
	}
	if waiting, first := q.Peek(9); waiting != 0 || len(first) != 0 {
		t.Errorf("%d wait: %v", waiting, first)
	}
}

// TestBounds: a full queue refuses events and keeps what it has; a closed one is read to its end and then returns an
// error to all waiters.
func TestBounds(t *testing.T) {
	q := New(nil)
	for i := range command.Handle(Most) {
		if !q.Push(event(i)) {
			t.Fatalf("full at %d", i)
		}
	}
	if q.Push(event(1)) {
		t.Error("there was room for one more")
	}
	if waiting, first := q.Peek(2); waiting != Most || len(first) != 2 || first[1].Object != 1 {
		t.Errorf("%d wait: %v", waiting, first)
	}
	q.Close()
	if !q.Push(event(1)) {
		t.Error("a closed queue counts what it drops as lost")
	}
	out := make([]command.Event, Most)
	if n, err := q.Wait(t.Context(), out); n != Most || err != nil {
		t.Errorf("%d events: %v", n, err)
	}
	for range 2 {
		if _, err := q.Wait(t.Context(), out); !errors.Is(err, &command.Error{Code: command.Canceled}) {
			t.Errorf("closed: %v", err)
		}
	}
}

// TestWait: a waiter is woken by an event and by the end of its context.
func TestWait(t *testing.T) {
	q := New(nil)
	out := make([]command.Event, 1)
	if _, err := q.Wait(t.Context(), nil); !errors.Is(err, &command.Error{Code: command.Invalid}) {
		t.Errorf("no room: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := q.Wait(t.Context(), out)
		done <- err
	}()
	q.Push(event(7))
	if err := <-done; err != nil || out[0].Object != 7 {
		t.Errorf("the wait ends with %v and %v, want the event of object 7", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Wait(ctx, out); !errors.Is(err, &command.Error{Code: command.Canceled}) {
		t.Errorf("canceled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 1)
	defer cancel()
	if _, err := q.Wait(ctx, out); !errors.Is(err, &command.Error{Code: command.TimedOut}) {
		t.Errorf("its time has passed: %v", err)
	}
}

// TestTakeNow: events that a reader has taken come before those taken without waiting: TakeNow returns none until the
// reader is back.
func TestTakeNow(t *testing.T) {
	q := New(nil)
	out := make([]command.Event, 2)
	for i := range command.Handle(5) {
		q.Add(event(i))
	}
	if n := q.TakeNow(out); n != 2 || out[1].Object != 1 {
		t.Errorf("%d events: %v", n, out)
	}
	if n, err := q.Wait(t.Context(), out[:1]); n != 1 || err != nil || out[0].Object != 2 {
		t.Errorf("%d events: %v, %v", n, out, err)
	}
	if n := q.TakeNow(out); n != 0 || q.Empty() {
		t.Errorf("%d events before the reader is back", n)
	}
	if n, err := q.Wait(t.Context(), out); n != 2 || err != nil || out[0].Object != 3 {
		t.Errorf("%d events: %v, %v", n, out, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	if _, err := q.Wait(ctx, out); err == nil || !q.Empty() {
		t.Error("the queue is not empty after all events were taken")
	}
	q.Add(event(5))
	if n := q.TakeNow(out); n != 1 || out[0].Object != 5 {
		t.Errorf("%d events: %v", n, out)
	}
}

// TestUnreadEventsAreCharged: a queue takes memory for its events from the account, except for the first ones; without
// memory it refuses further events and keeps those that it has. What was read, or was left in a closed queue, is not
// charged any more.
func TestUnreadEventsAreCharged(t *testing.T) {
	const size = uint64(unsafe.Sizeof(command.Event{}))
	limit := budget.Limits{Program: 2000 * size, User: 2000 * size, Total: 2000 * size}
	l := budget.New(limit, limit)
	q, other := New(l.Open(1)), New(l.Open(2))
	used := func() uint64 { return l.Usage(budget.Memory).Used }
	n := 0
	for q.Push(event(command.Handle(n))) {
		n++
	}
	if n <= free || n > 2000+free || used() < uint64(n-free)*size {
		t.Errorf("%d events, %d bytes charged, limit %d", n, used(), limit.Program)
	}
	if other.Add(event(0)); used() > limit.Total {
		t.Error("more is charged than allowed")
	}
	for i := 1; i < free; i++ { // whatever others have used up
		if !other.Push(event(command.Handle(i))) {
			t.Fatalf("event %d of a program that has hardly any is dropped", i)
		}
	}
	out := make([]command.Event, n)
	if got, err := q.Wait(t.Context(), out); got != n || err != nil || out[n-1].Object != command.Handle(n-1) {
		t.Errorf("%d events: %v", got, err)
	}
	if n > 1024 && used() != 0 {
		t.Errorf("%d bytes are charged for an empty queue", used())
	}
	for i := range 500 {
		q.Push(event(command.Handle(i)))
	}
	q.Close()
	if used() != 0 {
		t.Errorf("%d bytes are charged for a closed queue", used())
	}
}
