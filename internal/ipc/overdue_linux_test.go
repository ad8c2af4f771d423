package ipc

import (
	"context"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
)

const looksOfPatience = int(Patience / lookTime)

func heardAtLast(c *Client) bool {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return c.calls.overdue.heard == c.calls.overdue.looks
}

// A request waits as long as the driver answers anything, and no longer than Patience where it does not: a request
// that nobody else ends must not hold its caller up for ever.
func TestDriverThatHangs(t *testing.T) {
	_, c := pair(t, ServerConfig{}, Options{})
	slow := make(chan error, 1)
	go func() { slow <- c.CMListen(context.Background(), 1, 1) }()
	eventually(t, "listen is under way", func() bool { c.calls.mu.Lock(); defer c.calls.mu.Unlock(); return len(c.calls.waiting) == 1 })
	for range 3 * looksOfPatience { // one that is slow with this alone
		c.calls.look()
		c.calls.mu.Lock()
		asked := c.calls.overdue.looks-c.calls.overdue.heard > uint32(looksOfPatience)/2
		c.calls.mu.Unlock()
		if asked {
			eventually(t, "the driver was asked and has answered", func() bool { return heardAtLast(c) })
		}
	}
	select {
	case err := <-slow:
		t.Fatalf("given up though the driver lives: %v", err)
	default:
	}
	c.calls.mu.Lock()
	c.calls.overdue.ask = func() {} // as if it were not answered
	c.calls.mu.Unlock()
	for i := 0; i <= looksOfPatience; i++ {
		if len(slow) > 0 {
			t.Fatalf("given up after %d looks, want %d", i, looksOfPatience+1)
		}
		c.calls.look()
	}
	if err := <-slow; !isCode(err, command.TimedOut) {
		t.Errorf("%v, want a time-out", err)
	}
	if _, err := c.AllocPD(ctx, 0); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Nothing is looked for while nothing waits.
func TestNothingIsOverdue(t *testing.T) {
	c := newCalls(1)
	id, err := c.add(awaited{then: func(reply) {}})
	if err != nil || c.overdue.timer == nil {
		t.Fatalf("a request waits and nobody looks: %v", err)
	}
	c.take(id)
	if c.look(); c.overdue.timer != nil {
		t.Error("nothing waits and somebody looks")
	}
}
