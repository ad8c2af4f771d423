package ethernet

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// us is a number of microseconds.
func us(n int) clock.Time { return clock.Time(n) * clock.Time(time.Microsecond) }

// static is a configuration with static moderation, of 5 packets or 10 microseconds, and one queue.
func static(change ...func(*Config)) Config {
	return plain(macB, append([]func(*Config){func(c *Config) { c.InterruptModeration, c.RxIntModeration, c.NumRSSQueues = 1, 1, 1 }},
		change...)...)
}

// many lets n frames that are not joined arrive one after the other.
func (c *card) many(now clock.Time, n int) {
	for range n {
		c.arrive(now, tcpFlow().udp().frame(counting(20)))
	}
}

// TestModeration_Static: an interrupt comes after 5 packets, or 10 microseconds from the first (WinOF 5.50, 4.6.5:
// *InterruptModeration).
func TestModeration_Static(t *testing.T) {
	x := alone(t, static())
	if x.many(us(100), 4); len(x.host.packets) != 0 || x.Deadline() != us(110) {
		t.Errorf("%d packets before the interrupt, due at %v", len(x.host.packets), x.Deadline())
	}
	if x.many(us(105), 1); len(x.host.packets) != 5 || x.Deadline() != clock.Never {
		t.Errorf("%d packets after the fifth, due at %v", len(x.host.packets), x.Deadline())
	}
	x.many(us(200), 1)
	if x.Advance(us(209)); len(x.host.packets) != 5 {
		t.Error("an interrupt before its time")
	}
	if x.Advance(us(210)); len(x.host.packets) != 6 {
		t.Error("no interrupt at its time")
	}
	if c := x.ReceiveCounters(0); c.Interrupts != 2 || c.Packets != 6 || c.PacketsDPC != 6 || c.PacketsThread != 0 || c.Moderated != 5 ||
		c.Batches[0] != c.IndicationsDPC {
		t.Errorf("%+v", *c)
	}
}

// TestModeration_CountAndTime: the interrupt comes after as many packets, or as much time, as the keys say (WinOF 5.50, 4.6.5:
// RxIntModerationPacketCount, RxIntModerationPacketTime).
func TestModeration_CountAndTime(t *testing.T) {
	for _, c := range []struct{ count, time int }{{3, 10}, {5, 25}, {20, 40}} {
		x := alone(t, static(func(k *Config) { k.RxPacketCount, k.RxPacketTime = c.count, c.time }))
		if x.many(us(100), c.count-1); len(x.host.packets) != 0 || x.Deadline() != us(100+c.time) {
			t.Errorf("%+v: %d packets of %d indicated, the others due at %v", c, len(x.host.packets), c.count-1, x.Deadline())
		}
		if x.many(us(100), 1); len(x.host.packets) != c.count {
			t.Errorf("%+v: %d packets indicated", c, len(x.host.packets))
		}
		x.many(us(200), 1)
		if x.Advance(us(200 + c.time - 1)); len(x.host.packets) != c.count {
			t.Errorf("%+v: an interrupt before its time", c)
		}
		if x.Advance(us(200 + c.time)); len(x.host.packets) != c.count+1 {
			t.Errorf("%+v: no interrupt at its time", c)
		}
	}
}

// TestModeration_Adaptive: slow traffic is not moderated, fast traffic is, twice as much with the aggressive profile
// (WinOF 5.50, 4.6.3: RxIntModerationProfile; 4.6.5: RxIntModeration, pkt_rate_low, pkt_rate_high).
func TestModeration_Adaptive(t *testing.T) {
	x := alone(t, static(func(c *Config) { c.RxIntModeration, c.PktRateLow, c.PktRateHigh = 2, 1000, 20000 }))
	now := us(10000)
	for range 10 {
		x.many(now, 1)
		now += us(1000)
	}
	if n := len(x.host.packets); n != 10 {
		t.Errorf("%d of 10 packets that come slowly were indicated at once", n)
	}
	x.many(now, 100)
	now += us(1000)
	before := len(x.host.packets)
	if x.many(now, 9); len(x.host.packets) != before || x.Deadline() != now+us(20) {
		t.Errorf("%d packets that come fast were indicated before 10 have come", len(x.host.packets)-before)
	}
	if x.many(now, 1); len(x.host.packets) != before+10 {
		t.Errorf("%d packets were indicated after 10", len(x.host.packets)-before)
	}
}

// TestPolling: with RecvCompletionMethod polling the first packet starts polling, which ends after ThreadPoll turns without any
// (WinOF 5.50, 4.6.5).
func TestPolling(t *testing.T) {
	x := alone(t, static(func(c *Config) { c.RecvCompletionMethod, c.ThreadPoll = 0, 3 }))
	if x.Polls() {
		t.Error("it is polled before the first packet")
	}
	x.many(0, 2)
	for turn := range 4 {
		if len(x.host.packets) != 2 || x.Polls() != (turn < 4) {
			t.Errorf("turn %d: %d packets, polled: %t", turn, len(x.host.packets), x.Polls())
		}
		x.Advance(0)
	}
	if x.Polls() {
		t.Error("it is polled after 3 turns without a packet")
	}
	if c := x.ReceiveCounters(0); c.PacketsThread != 2 || c.PacketsDPC != 0 || c.Transitions != 1 || c.IndicationsThread != 2 ||
		c.Interrupts != 1 { // which begins the polling
		t.Errorf("%+v", *c)
	}
}

// TestPolling_Adaptive: with adaptive completion much traffic in a turn starts polling, and little ends it (AveragePollThreshold,
// ThisPollThreshold).
func TestPolling_Adaptive(t *testing.T) {
	x := alone(t, static(func(c *Config) { c.ThisPollThreshold = 50 }))
	x.many(0, 50)
	if x.Advance(0); x.Polls() {
		t.Error("50 packets in a turn start polling")
	}
	x.many(0, 51)
	if x.Advance(0); !x.Polls() || x.ReceiveCounters(0).Transitions != 1 {
		t.Error("51 packets in a turn do not start polling")
	}
	before := len(x.host.packets)
	if x.many(0, 1); len(x.host.packets) != before+2 { // the 101st, which waited for an interrupt, and this one
		t.Errorf("%d packets were indicated at once while polled", len(x.host.packets)-before)
	}
	for range 100 {
		x.Advance(0)
	}
	if x.Polls() {
		t.Error("it is polled after 100 turns without a packet")
	}
}

// TestPolling_Average: how long polling goes on without packets follows from the weight of the last turn in their average
// (WinOF 5.50, 4.6.5: AverageFactor, AveragePollThreshold).
func TestPolling_Average(t *testing.T) {
	for factor, want := range map[int]int{256: 0, 128: 2} { // an average of 80, then 0; or 40, 20 and 10
		x := alone(t, static(func(c *Config) { c.ThisPollThreshold, c.AveragePollThreshold, c.AverageFactor = 1000, 10, factor }))
		x.many(0, 160*128/factor)
		turns := 0
		for x.Advance(0); x.Polls(); x.Advance(0) {
			turns++
		}
		if x.ReceiveCounters(0).Transitions != 1 || turns != want+1 {
			t.Errorf("AverageFactor %d: it is polled for %d turns after the first, want %d", factor, turns-1, want)
		}
	}
}

// TestHostWithoutRoom: what a host has no room for waits in the ring, in order, and what the ring has no room for is lost and
// counted; other queues and functions are not concerned.
func TestHostWithoutRoom(t *testing.T) {
	x := alone(t, plain(macB, func(c *Config) { c.NumRSSQueues, c.ReceiveBuffers = 1, 256 }))
	x.host.room = 3
	for i := range 300 {
		x.arrive(0, tcpFlow().udp().frame(counting(i)))
	}
	if c := x.ReceiveCounters(0); len(x.host.packets) != 3 || c.NoBuffer != 300-3-256 || x.Counters().NoBuffer != c.NoBuffer ||
		x.Deadline() != x.checkDue {
		t.Fatalf("%d packets, %+v", len(x.host.packets), *c)
	}
	x.host.room = 100
	x.Ready(0, 0)
	x.host.room = -1
	x.Ready(0, 0)
	if n := x.ReceiveCounters(0).Skipped; len(x.host.packets) != 3+256 || n != 2 {
		t.Fatalf("%d packets, want 259; the host stopped taking them %d times, not twice", len(x.host.packets), n)
	}
	for i, p := range x.host.packets {
		if len(p.frame) != 42+i {
			t.Fatalf("packet %d has %d bytes", i, len(p.frame))
		}
	}
}

// TestBurst: with AsyncReceiveIndicate packets go through the ring, which has room for RfdReservationFactor more, and they take
// memory while they are there; 1 passes them on in interrupt mode and 2 in polling mode ("WinOF-2 Ethernet Network", Packet
// Burst Handling).
func TestBurst(t *testing.T) {
	for method, threads := range map[int]uint64{asyncThread: 0, asyncPolling: 1000} {
		x := alone(t, plain(macB, func(c *Config) {
			c.NumRSSQueues, c.ReceiveBuffers, c.AsyncReceiveIndicate, c.RfdReservationFactor = 1, 256, method, 744
		}))
		x.many(0, 1001)
		c := x.ReceiveCounters(0)
		if len(x.host.packets) != 0 || c.NoBuffer != 1 || c.Burst != 744 || x.Memory() < 1000*62 || x.Deadline() != 0 {
			t.Errorf("%d packets at once, %d bytes of memory, %+v", len(x.host.packets), x.Memory(), *c)
		}
		x.Advance(0)
		if len(x.host.packets) != 1000 || c.PacketsThread != threads || c.ConsumedMaxReceives != 7 || x.Deadline() != clock.Never {
			t.Errorf("%d packets afterwards, %+v", len(x.host.packets), *c)
		}
	}
}

// TestReturnPacketThreshold: the memory of so many packets that are gone is kept, and that of others given back at once; with 0 of
// two thirds of the ring (WinOF 5.50, 4.6.5).
func TestReturnPacketThreshold(t *testing.T) {
	for threshold, kept := range map[int]int{1: 1, 100: 100, 0: 400, 4096: 600} {
		x := alone(t, plain(macB, func(c *Config) {
			c.NumRSSQueues, c.ReceiveBuffers, c.AsyncReceiveIndicate, c.ReturnPacketThreshold = 1, 600, asyncThread, threshold
		}))
		x.many(0, 600)
		each := x.Memory() / 600
		if x.Advance(0); len(x.host.packets) != 600 || x.Memory()/each != kept {
			t.Errorf("ReturnPacketThreshold %d: memory of %d packets is kept, want %d", threshold, x.Memory()/each, kept)
		}
	}
}

// TestBalance: the closest-processor profile moves flows from a busy queue to idle ones after 100 ms, the static one does not.
func TestBalance(t *testing.T) {
	for profile, want := range map[int]bool{1: true, 2: false} {
		x := alone(t, plain(macB, func(c *Config) { c.RSSProfile = profile }))
		before := string(x.Table())
		x.Advance(0)
		for port := range uint16(400) {
			y := tcpFlow()
			y.src = netip4(y.src, port)
			if f := y.frame(nil); x.QueueFor(swap(y).frame(nil)) == 0 { // flows of one queue only
				for range 5 {
					x.arrive(0, f)
				}
			}
		}
		x.Advance(clock.Time(balanceGap))
		if moved := string(x.Table()) != before; moved != want {
			t.Errorf("*RSSProfile %d: the table changes: %t, want %t", profile, moved, want)
		}
	}
	x := alone(t, plain(macB, func(c *Config) { c.RSSProfile = 5 }))
	for _, q := range x.Table() {
		if q != 0 {
			t.Fatal("*RSSProfile 5: little traffic has several queues")
		}
	}
}

// swap returns the other direction of a flow.
func swap(x flow) flow {
	x.from, x.to, x.src, x.dst = x.to, x.from, x.dst, x.src
	return x
}
