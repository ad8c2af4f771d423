package notify

import (
	"slices"
	"testing"
	"time"
)

// TestSettle: Settle waits until the subscribers have got all changes. If they are slower than the changes the oldest
// are lost, and the last are not.
func TestSettle(t *testing.T) {
	var l Subscribers
	l.Report(Change{Flags: Up})
	l.Settle() // no subscriber to wait for
	var got []uint32
	cancel := l.Subscribe(func(c Change) {
		time.Sleep(100 * time.Microsecond)
		got = append(got, c.Adapter)
	})
	for i := range uint32(3 * most) {
		l.Report(Change{Adapter: i})
	}
	l.Settle()
	seen := slices.Clone(got) // the subscriber is done: its goroutine told Settle
	if len(seen) == 0 || seen[len(seen)-1] != 3*most-1 || !slices.IsSorted(seen) {
		t.Errorf("told of the changes %v, want the last of them, in order", seen)
	}
	cancel()
	cancel()
	l.Report(Change{Adapter: 3 * most})
	if len(got) != len(seen) {
		t.Error("a change was told after the subscription ended")
	}
}

// TestSettleWhileFull: a mark that is dropped because the queue is full counts as told: Settle ends although the
// subscriber does not continue.
func TestSettleWhileFull(t *testing.T) {
	var l Subscribers
	block := make(chan struct{})
	cancel := l.Subscribe(func(Change) { <-block })
	l.Report(Change{})
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		l.Settle()
	}()
	for waiting := true; waiting; {
		l.Report(Change{})
		select {
		case <-settled:
			waiting = false
		case <-time.After(time.Millisecond):
		}
	}
	close(block)
	cancel()
}
