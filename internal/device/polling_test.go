package device

import (
	"testing"

	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/loopback"
)

// TestPollerGoesOn: an adapter is polled again until Rounds rounds had no packet, and while the packets of the last
// round, or their average over the rounds, are above their limits.
func TestPollerGoesOn(t *testing.T) {
	for _, c := range []struct {
		name    string
		polling Polling
		packets []int // of each round
		on      string
	}{
		{"rounds without a packet", Polling{Rounds: 2, Average: 1000, Last: 1000}, []int{0, 0, 1, 0, 0, 0}, "+-++--"},
		{"the last round", Polling{Average: 1000, Last: 2}, []int{2, 3, 0, 3}, "-+-+"},
		{"the average, of the last round alone", Polling{Weight: 256, Average: 10, Last: 1000}, []int{10, 11, 0}, "-+-"},
		{"the average, in which the last round has a weight of half", Polling{Weight: 128, Average: 10, Last: 1000}, []int{40, 0, 0, 30},
			"+--+"},
		{"no weight", Polling{Average: 0, Last: 1000}, []int{1000, 0}, "--"},
		{"nothing", Polling{}, []int{0, 1, 0}, "-+-"},
	} {
		var p poller
		on := ""
		for _, n := range c.packets {
			if p.round(&c.polling, n) {
				on += "+"
			} else {
				on += "-"
			}
		}
		if on != c.on {
			t.Errorf("%s: %v goes on %s, want %s", c.name, c.packets, on, c.on)
		}
	}
}

// TestPollerEnds: the average falls to 0 without packets, so that polling ends.
func TestPollerEnds(t *testing.T) {
	c := Polling{Weight: 1, Average: 0, Last: 1000}
	var p poller
	p.round(&c, 1000)
	for rounds := 0; p.round(&c, 0); rounds++ {
		if rounds > 10000 {
			t.Fatal("the loop still polls after 10000 rounds without packets")
		}
	}
}

// TestLoopPollsBeforeItSleeps: the loop of an adapter that polls looks Rounds times without a packet before it
// sleeps.
func TestLoopPollsBeforeItSleeps(t *testing.T) {
	const rounds = 2000
	h := newHost(t, Config{Seed: 1, GIDInterval: -1, Spin: -1})
	index := h.add(t, AdapterConfig{Addr: loopback.Addr(), Polling: Polling{On: true, Rounds: rounds, Average: 1000, Last: 1000}})
	// The loop may still sleep from before the adapter was added, and a command counts as a round too. What matters
	// is that the loop reaches that many rounds by itself, and then sleeps.
	looked := func() (n uint32, asleep bool) {
		h.lock()
		defer h.unlock()
		return h.adapters[index].poller.empty, h.sleep.asleep.Load()
	}
	var n uint32
	var asleep bool
	if !await.Until(func() bool { n, asleep = looked(); return asleep && n >= rounds }) {
		t.Fatalf("%d rounds without a packet, asleep: %v; want it asleep after %d", n, asleep, rounds)
	}
}
