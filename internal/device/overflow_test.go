package device

import (
	"runtime"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestRequestsBeyondTheEvents: a connection request that finds no room among a program's events is refused and leaves
// nothing behind, because the program would never learn its id and so never destroy it.
func TestRequestsBeyondTheEvents(t *testing.T) {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	a, b := overMemory(false)(t, AdapterConfig{})
	q := a.qp(command.CreateQP{}, a.cq(16))
	listener, err := b.c.CMCreate(bg, command.CMCreate{Adapter: b.adapter, Space: command.TCP})
	b.check(err)
	at, err := b.c.CMBind(bg, listener, command.Endpoint{Addr: command.AddrFrom(b.addr)})
	b.check(err)
	b.check(b.c.CMListen(bg, listener, 0))
	// The goroutine that takes the events puts them into a channel that nobody reads. When the channel is full it
	// keeps the events in hand and takes no more.
	pushed, waiting := 0, 0
	for deadline := time.Now().Add(await.Limit); pushed-waiting <= cap(b.events); waiting, _ = b.c.events.Peek(0) {
		for b.c.events.Push(command.Event{Type: command.EventPortActive}) {
			pushed++
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d events were pushed and %d of them wait: the reader's channel has not filled up", pushed, waiting)
		}
		runtime.Gosched()
	}
	for b.c.events.Push(command.Event{Type: command.EventPortActive}) { // in place of the last ones taken
	}
	count := func() (live int, lost uint64) {
		b.host.lock()
		defer b.host.unlock()
		return b.c.live(), b.host.eventOverflows
	}
	t.Cleanup(func() { // before b is closed
		go func() {
			for {
				select {
				case <-b.events:
				case <-ended:
					return
				}
			}
		}()
	})
	before, _ := count()
	id, err := a.c.CMCreate(bg, command.CMCreate{Adapter: command.AnyAdapter, Space: command.TCP})
	a.check(err)
	a.dial(command.CMConnect{ID: id, QP: q.q.Handle, Remote: at, Param: usualParam})
	if e := a.event(command.EventRejected); e.Object != id {
		t.Errorf("the rejected id is %#x, want %#x", e.Object, id)
	}
	if live, lost := count(); live != before || lost == 0 {
		t.Errorf("%d objects and %d lost events; want %d objects, as before, and some lost", live, lost, before)
	}
}
