package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/wait"
)

// TestSharedPort_IdleFunctionIsNotAsked: of two functions at one port, both of which are polled, the one without work falls asleep while
// the other has some, and works again when something is for it. They count turns without a packet together.
func TestSharedPort_IdleFunctionIsNotAsked(t *testing.T) {
	one, two, third := threeEnds(t)
	h := one.host
	port := h.adapters[one.adapter].port
	h.lock()
	for _, a := range port.functions {
		a.cfg.Polling = wait.Polling{On: true, Weight: 256, Average: 1, Last: 2}
	}
	port.listPolling()
	if n := len(port.polling); n != 1 {
		t.Errorf("%d ways of polling, want 1 of equal settings", n)
	}
	h.unlock()

	busy := connect(one.idleQP(), third.idleQP())
	asleep := func(p *program) bool {
		h.lock()
		defer h.unlock()
		return h.adapters[p.adapter].station.Asleep()
	}
	if !await.Until(func() bool { exchange(t, busy, 20000); return asleep(two) }) {
		t.Fatal("a function without work is asked in all turns of a port where another works")
	}
	exchange(t, connect(two.idleQP(), third.idleQP()), 20000)
	exchange(t, busy, 20000)
}
