package device

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/wait"
)

// TestLoopPollsBeforeItSleeps: the loop of an adapter that polls looks Rounds times without a packet before it
// sleeps.
func TestLoopPollsBeforeItSleeps(t *testing.T) {
	const rounds = 2000
	h := newHost(t, Config{Seed: 1, GIDInterval: -1, Spin: -1})
	index := h.add(t, AdapterConfig{Addr: loopback.Addr(), Polling: wait.Polling{On: true, Rounds: rounds, Average: 1000, Last: 1000}})
	// The loop may still sleep from before the adapter was added, and a command counts as a round too. What matters
	// is that the loop reaches that many rounds by itself, and then sleeps.
	looked := func() (n uint32, asleep bool) {
		h.lock()
		defer h.unlock()
		return h.adapters[index].poller.Empty(), h.sleep.asleep.Load()
	}
	var n uint32
	var asleep bool
	if !await.Until(func() bool { n, asleep = looked(); return asleep && n >= rounds }) {
		t.Fatalf("%d rounds without a packet, asleep: %v; want it asleep after %d", n, asleep, rounds)
	}
}

// TestPoll_YieldsEachTimeWhileYieldsAreUsed: a program that polls while others need its processor yields after each poll
// without work, and only now and then once nobody uses its yields any more.
func TestPoll_YieldsEachTimeWhileYieldsAreUsed(t *testing.T) {
	h := newHost(t, Config{Seed: 1, NoBackground: true, GIDInterval: -1})
	c, err := h.NewClient(ClientConfig{Name: "poller"})
	if err != nil {
		t.Fatal(err)
	}
	poll := &h.policy.poll
	if h.contention.Due(poll, 1) {
		t.Fatal("it yields after the first poll although nobody used a yield")
	}
	// Only if a yield follows each of fewer polls than Looks can they show that they are not used.
	await.Eventually(t, "yields that nobody uses become few", func() bool {
		h.contention.Yielded(time.Second)
		used := h.contention.Due(poll, 1)
		c.idle.Store(0)
		for range poll.Looks - 1 {
			c.Poll(0)
		}
		return used && !h.contention.Due(poll, 1)
	})
}
