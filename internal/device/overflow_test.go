package device

import (
	"runtime"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// Where no event of a program's has room any more, a connection request is refused, and nothing stays of it: the program would never
// know of its id, and so never destroy it.
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
	// Whoever takes the events puts them into a channel that nobody reads: when more have been taken than there is room for, he holds the rest and takes no more.
	pushed, waiting := 0, 0
	for deadline := time.Now().Add(patience); pushed-waiting <= cap(b.events); waiting, _ = b.c.events.Peek(0) {
		for b.c.events.Push(command.Event{Type: command.EventPortActive}) {
			pushed++
		}
		if time.Now().After(deadline) {
			t.Fatalf("of %d events %d wait", pushed, waiting)
		}
		runtime.Gosched()
	}
	for b.c.events.Push(command.Event{Type: command.EventPortActive}) { // in place of the last that were taken
	}
	count := func() (live int, lost uint64) {
		b.host.lock()
		defer b.host.unlock()
		return b.c.live(), b.host.eventOverflows
	}
	t.Cleanup(func() { // before b ends
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
		t.Errorf("rejected is %#x, want %#x", e.Object, id)
	}
	if live, lost := count(); live != before || lost == 0 {
		t.Errorf("%d objects, %d events lost; want %d as before, and some", live, lost, before)
	}
}
