package ethernet

import "testing"

// kept is a configuration of one queue whose packets wait in its ring, for interrupts, or to be polled.
func kept(async int, change func(*Config)) Config {
	return plain(macB, func(c *Config) { c.NumRSSQueues, c.AsyncReceiveIndicate = 1, async }, change)
}

// TestMaxNumberOfPacketsToIndicate: at most so many packets are indicated at once, in interrupt mode and in polling mode (WinOF 5.50,
// 5.5.3.9).
func TestMaxNumberOfPacketsToIndicate(t *testing.T) {
	for async, most := range map[int]int{asyncThread: 10, asyncPolling: 7} {
		x := alone(t, kept(async, func(c *Config) { c.MaxIndicateDPC, c.MaxIndicateThread = 10, 7 }))
		x.many(0, 25)
		x.Advance(0)
		if len(x.host.packets) != 25 || x.host.most != most || x.host.calls != (25+most-1)/most {
			t.Errorf("AsyncReceiveIndicate %d: %d packets in %d calls, at most %d at once, want %d", async, len(x.host.packets), x.host.calls,
				x.host.most, most)
		}
		if n := x.ReceiveCounters(0).ConsumedMaxReceives; n != uint64(25/most) {
			t.Errorf("AsyncReceiveIndicate %d: ConsumedMaxReceives %d, want %d", async, n, 25/most)
		}
	}
}

// TestMaxCallsToNdisIndicate: after so many calls a ring lets others have their turn, and goes on at once afterwards, without another
// interrupt. What arrives meanwhile stays behind what waits.
func TestMaxCallsToNdisIndicate(t *testing.T) {
	x := alone(t, static(func(c *Config) { c.MaxIndicateDPC, c.MaxCallsToNdisIndicate = 10, 2 }))
	x.host.room = 0
	x.many(0, 45)
	x.host.room, x.host.calls = -1, 0
	x.Ready(0, 0)
	if len(x.host.packets) != 20 || x.host.calls != 2 || x.Deadline() != 0 {
		t.Errorf("%d packets in %d calls, then due at %v", len(x.host.packets), x.host.calls, x.Deadline())
	}
	c := x.ReceiveCounters(0)
	before := c.Interrupts
	x.Advance(0)
	if len(x.host.packets) != 40 || c.Interrupts != before || x.Deadline() != 0 {
		t.Errorf("%d packets, %d interrupts more, then due at %v", len(x.host.packets), c.Interrupts-before, x.Deadline())
	}
	if c.Starved != 2 {
		t.Errorf("it had to leave packets %d times, want 2", c.Starved)
	}
	if x.Advance(0); len(x.host.packets) != 45 || x.Deadline() == 0 {
		t.Errorf("%d packets, then due at %v", len(x.host.packets), x.Deadline())
	}
}

// TestUponMaxConsumedReceivesMoveToDPC: a queue that has used up its share leaves polling, until the next interrupt; without it, it
// goes on.
func TestUponMaxConsumedReceivesMoveToDPC(t *testing.T) {
	for on, transitions := range []uint64{1, 5} {
		x := alone(t, plain(macB, func(c *Config) {
			c.NumRSSQueues, c.RecvCompletionMethod, c.MaxIndicateThread, c.ReceivesMoveToDPC = 1, pollingMethod, 1, on
		}))
		for range 5 {
			x.many(0, 1)
			x.Advance(0)
		}
		c := x.ReceiveCounters(0)
		if c.Transitions != transitions || c.Interrupts != transitions || len(x.host.packets) != 5 || x.Polls() != (on == 0) {
			t.Errorf("%d: %d changes to polling, %d interrupts, %d packets, polls: %v", on, c.Transitions, c.Interrupts, len(x.host.packets),
				x.Polls())
		}
	}
}

// TestNicMinRfd: a ring keeps memory for so many packets, even if ReturnPacketThreshold asks for fewer; changed at once.
func TestNicMinRfd(t *testing.T) {
	x := alone(t, kept(asyncThread, func(c *Config) { c.ReturnPacketThreshold, c.NicMinRfd = 10, 50 }))
	fill := func() int {
		x.many(0, 256)
		each := x.Memory() / 256
		x.Advance(0)
		return x.Memory() / each
	}
	if n := fill(); n != 50 {
		t.Errorf("memory of %d packets is kept, want 50", n)
	}
	c := x.Config()
	c.NicMinRfd = 5
	if err := x.Change(c); err != nil {
		t.Fatal(err)
	}
	if n := fill(); n != 10 {
		t.Errorf("memory of %d packets is kept, want 10", n)
	}
}

// TestMaxNumTxPacketsToIndicateComplete: at most so many sends are reported at once. Polled completions wait for the next sends, but for
// UponMaxConsumedTransmitsMoveToDPC, with which so many are an interrupt.
func TestMaxNumTxPacketsToIndicateComplete(t *testing.T) {
	for on, reported := range []int{0, 8} {
		x := alone(t, plain(macB, func(c *Config) {
			c.NumRSSQueues, c.SendCompletionMethod, c.MaxNumTxPacketsToIndicateComplete, c.TransmitsMoveToDPC = 1, pollingMethod, 4, on
		}))
		for range 2 {
			for range 5 {
				x.post(t, Send{Frame: tcpFlow().udp().frame(counting(20))})
			}
			leave(0, x.port)
		}
		before := x.host.total()
		x.Collect(0)
		if before < reported || before == 10 && on == 0 || x.host.total() != 10 {
			t.Errorf("%d: %d sends are reported before they are asked for, want %d; then %d", on, before, reported, x.host.total())
		}
		if on == 0 && x.host.most > 4 {
			t.Errorf("%d sends are reported at once, want 4", x.host.most)
		}
	}
}
