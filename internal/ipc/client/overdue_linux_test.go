package client

import (
	"context"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

const looksOfPatience = int(Patience / lookTime)

func heardAtLast(c *Client) bool {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return c.calls.overdue.heard == c.calls.overdue.looks
}

// TestDriverThatHangs: a request waits as long as the driver answers anything at all, and times out after Patience if
// it does not, so that a hung driver cannot hold up its caller for ever.
func TestDriverThatHangs(t *testing.T) {
	_, c := pair(t, server.Config{}, Options{})
	slow := make(chan error, 1)
	go func() { slow <- c.CMListen(context.Background(), 1, 1) }()
	await.Eventually(
		t,
		"listen is under way",
		func() bool { c.calls.mu.Lock(); defer c.calls.mu.Unlock(); return len(c.calls.waiting) == 1 },
	)
	for range 3 * looksOfPatience { // the driver is slow with this request alone
		c.calls.look()
		c.calls.mu.Lock()
		asked := c.calls.overdue.looks-c.calls.overdue.heard > uint32(looksOfPatience)/2
		c.calls.mu.Unlock()
		if asked {
			await.Eventually(t, "the driver was asked and has answered", func() bool { return heardAtLast(c) })
		}
	}
	select {
	case err := <-slow:
		t.Fatalf("the request ended although the driver answers: %v", err)
	default:
	}
	c.calls.mu.Lock()
	c.calls.overdue.ask = func() {} // as if the driver did not answer
	c.calls.mu.Unlock()
	unheard := func() int { // looks since the last answer; on a slow machine the timer looks, too
		c.calls.mu.Lock()
		defer c.calls.mu.Unlock()
		return int(c.calls.overdue.looks - c.calls.overdue.heard)
	}
	for unheard() < looksOfPatience {
		c.calls.look()
	}
	if n := unheard(); n <= looksOfPatience && len(slow) > 0 {
		t.Fatalf("the request ended after %d looks, want %d", n, looksOfPatience+1)
	}
	c.calls.look()
	if err := <-slow; !fake.IsCode(err, command.TimedOut) {
		t.Errorf("error %v, want timed out", err)
	}
	if _, err := c.AllocPD(ctx, 0); err != nil {
		t.Errorf("a request afterwards: %v", err)
	}
}

// TestNothingIsOverdue: the timer that looks for overdue requests runs only while a request waits.
func TestNothingIsOverdue(t *testing.T) {
	c := newCalls(1)
	id, err := c.add(awaited{then: func(reply) {}})
	if err != nil || c.overdue.timer == nil {
		t.Fatalf("a request waits and no timer runs (error %v)", err)
	}
	c.take(id)
	if c.look(); c.overdue.timer != nil {
		t.Error("no request waits and the timer runs")
	}
}
