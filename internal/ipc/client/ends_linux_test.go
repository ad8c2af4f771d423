package client

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/fake"
	"github.com/softvpi/softvpi/internal/ipc/server"
	"github.com/softvpi/softvpi/internal/testbed/await"
)

// TestDriverGoes: when the driver ends, every wait of a program ends with the reason.
func TestDriverGoes(t *testing.T) {
	h := &fake.Host{}
	srv, path := fake.Serve(t, h, server.Config{})
	c := dial(t, path, Options{})
	q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 16})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 3)
	go func() { _, err := c.WaitCQ(ctx, q.Handle, 0); errs <- err }()
	go func() { _, err := c.Events(ctx, make([]command.Event, 1)); errs <- err }()
	go func() { errs <- c.CMListen(ctx, 1, 1) }()
	await.Eventually(
		t,
		"listen is under way",
		func() bool { c.calls.mu.Lock(); defer c.calls.mu.Unlock(); return len(c.calls.waiting) == 1 },
	)
	srv.Close()
	for range 3 {
		if err := <-errs; !fake.IsCode(err, command.Removed) && !fake.IsCode(err, command.Canceled) {
			t.Errorf("error %v, want removed or canceled", err)
		}
	}
	_, err = c.AllocPD(ctx, 0)
	if !fake.IsCode(err, command.Removed) || !bytes.Contains([]byte(err.Error()), []byte("stopping")) {
		t.Errorf("a command after the driver stopped: error %v, want removed: stopping", err)
	}
	if n := h.Count(); n != 0 {
		t.Errorf("%d sessions left", n)
	}
}

// TestCancelReachesTheDriver: a canceled context cancels the command in the driver, and the caller gets the driver's
// answer to that.
func TestCancelReachesTheDriver(t *testing.T) {
	_, c := pair(t, server.Config{}, Options{})
	cctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.CMListen(cctx, 1, 1) }()
	await.Eventually(
		t,
		"listen is under way",
		func() bool { c.calls.mu.Lock(); defer c.calls.mu.Unlock(); return len(c.calls.waiting) == 1 },
	)
	if _, err := c.AllocPD(ctx, 0); err != nil { // another request meanwhile
		t.Error(err)
	}
	cancel()
	if err := <-done; err == nil || err.Error() != "canceled: listen was canceled" {
		t.Errorf("%v: want the driver's answer", err)
	}
}

// TestUseAfterClose: what the client has mapped stays readable after Close, for goroutines that still look at it, and
// calls return that it was closed.
func TestUseAfterClose(t *testing.T) {
	_, c := pair(t, server.Config{}, Options{})
	q, err := c.CreateCQ(ctx, command.CreateCQ{Depth: 4})
	if err != nil {
		t.Fatal(err)
	}
	_, mem, err := c.AllocSegment(ctx, 4096)
	if err != nil {
		t.Fatal(err)
	}
	a := slices.Clone(*c.arenas.Load())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if a[0][0] != 0 || mem[0] != 0 {
		t.Error("mapped memory is not cleared after Close")
	}
	c.Doorbell(1)
	if _, err := c.WaitCQ(ctx, q.Handle, 0); !fake.IsCode(err, command.Canceled) {
		t.Errorf("WaitCQ after Close: error %v, want canceled", err)
	}
	if _, _, err := c.AllocSegment(ctx, 1); !fake.IsCode(err, command.Canceled) {
		t.Errorf("AllocSegment after Close: error %v, want canceled", err)
	}
}
