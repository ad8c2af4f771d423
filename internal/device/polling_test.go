package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
	"github.com/softvpi/softvpi/internal/wait"
)

// TestLoopPollsBeforeItSleeps: the loop of an adapter that polls looks Rounds times without a packet before it
// sleeps.
func TestLoopPollsBeforeItSleeps(t *testing.T) {
	const rounds = 200 // after each of which it yields, to whoever needs the processor
	h := newHost(t, Config{Seed: 1, GIDInterval: -1, Spin: -1})
	index := h.add(t, AdapterConfig{Addr: loopback.Addr(), Polling: wait.Polling{On: true, Rounds: rounds, Average: 1000, Last: 1000}})
	// The loop may still sleep from before the adapter was added, and a command counts as a round too. What matters
	// is that the loop reaches that many rounds by itself, and then sleeps.
	looked := func() (n uint32, asleep bool) {
		h.lock()
		defer h.unlock()
		return h.adapters[index].emptyRounds(), h.sleep.asleep.Load()
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
	poll, owed := &h.policy.poll, &h.contention
	if owed.Due(poll, 1) {
		t.Fatal("it yields after the first poll although nobody used a yield")
	}
	many := 0 // unused yields that end it
	for owed.Yielded(true); owed.Due(poll, 1); many++ {
		owed.Yielded(false)
	}
	// One yield is left. If that of a poll was used by somebody on this machine, many are; if not, none; and one if there was none.
	for n := range poll.Looks - 1 {
		owed.Yielded(true)
		for range many - 1 {
			owed.Yielded(false)
		}
		c.Poll(0)
		if !owed.Due(poll, 1) {
			continue
		}
		if owed.Yielded(false); !owed.Due(poll, 1) {
			t.Fatalf("no yield after poll %d, though yields are used", n)
		}
		for range many - 1 {
			owed.Yielded(false)
		}
	}
	for c.idle.Store(0); c.idle.Load() < poll.Looks-1; {
		if c.Poll(0); owed.Due(poll, 1) {
			t.Fatalf("a yield after poll %d, though nobody used the last ones", c.idle.Load())
		}
	}
}
