package driver

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/counters"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/wire/eth"
)

// value returns a counter of an instance; false: the instance is not there.
func value(t *testing.T, d *Driver, path string) (n uint64, there bool) {
	t.Helper()
	s, err := d.counters.Snapshot(path)
	if err != nil || len(s.Instances) == 0 {
		return 0, false
	}
	for _, in := range s.Instances {
		for _, v := range in.Values {
			if v.Raw != nil {
				n += *v.Raw
			}
		}
	}
	return n, true
}

// TestRSSCountersBegin: the Adapter RSS set is there with RssMonitoringEnabled, and counts from the adapter's start with
// RssCountersActivatedAtStartup, else from when somebody reads it (WinOF 5.50, 4.9.4.4.2.1).
func TestRSSCountersBegin(t *testing.T) {
	t.Parallel()
	cfg := overSockets(t)
	a, b := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
	cfg[1].Adapters[0].Generation = "mlx4"
	d, far := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, far)
	const misc = `\adapter_rss(port, Total)\nonrss_misc_packets` // what the guests send is not IP
	send := func() { b.gets(t, "a frame", func() { a.send(t, a.frame(b.mac, "a frame")) }) }
	if _, there := value(t, far, misc); there {
		t.Error("the set is there with RssMonitoringEnabled 0")
	}
	set(t, far, "port", "RssMonitoringEnabled", "1")
	restart(t, far, "port")
	send()
	if s, err := far.counters.Snapshot(); err != nil || !has(s, "adapter_rss") { // of all sets: nobody watches this one
		t.Error("the set is not there with RssMonitoringEnabled 1", err)
	}
	if n, there := value(t, far, misc); n != 0 || !there {
		t.Errorf("%d frames before anybody looked", n)
	}
	counts := func() bool { // a frame is counted once it has been handed over
		n, _ := value(t, far, misc)
		return n > 0
	}
	send()
	await.Eventually(t, "it counts, since somebody looks", counts)
	set(t, far, "port", "RssCountersActivatedAtStartup", "1")
	restart(t, far, "port")
	send()
	await.Eventually(t, "RssCountersActivatedAtStartup 1: it counts from the start", counts)
	if cpu, _ := value(t, far, `\adapter_rss(port, CPU 0)\nonrss_misc_packets`); cpu == 0 {
		t.Error("the processor of the first queue has none of them")
	}
}

func has(s counters.Snapshot, set string) bool {
	for _, in := range s.Instances {
		if in.Set == set {
			return true
		}
	}
	return false
}

// TestPerfstatsOfMethods: packets are counted in the mode in which they are received, whatever RecvCompletionMethod says, by queue
// and in all (WinOF 5.50, 5.5.3.10: PacketsReceivedDPC, PacketsReceivedThread, NumTrafficProfileTransitions).
func TestPerfstatsOfMethods(t *testing.T) {
	t.Parallel()
	cfg := overSockets(t)
	a, b := withGuest(t, &cfg[0], "02:00:00:00:00:01"), withGuest(t, &cfg[1], "02:00:00:00:00:02")
	cfg[1].Adapters[0].Generation = "mlx4"
	d, far := start(t, cfg[0]), start(t, cfg[1])
	defer stop(t, d)
	defer stop(t, far)
	for _, c := range []struct{ method, moderation, mode, other string }{
		{"0", "1", "thread", "dpc"}, {"1", "1", "dpc", "thread"}, {"1", "0", "dpc", "thread"}, {"2", "1", "dpc", "thread"},
	} {
		set(t, far, "port", "RecvCompletionMethod", c.method)
		set(t, far, "port", "*InterruptModeration", c.moderation)
		restart(t, far, "port")
		for i := range 3 { // each has its own, since one that was sent again comes twice
			text := fmt.Sprintf("frame %d with method %s, moderation %s", i, c.method, c.moderation)
			b.gets(t, text, func() { a.send(t, a.frame(b.mac, text)) })
		}
		var in uint64
		await.Eventually(t, "three packets in "+c.mode+" mode", func() bool { // a frame is counted once it has been handed over
			in, _ = value(t, far, `\datapath(port)\`+c.mode+`_received_packets`)
			return in >= 3
		})
		if other, _ := value(t, far, `\datapath(port)\`+c.other+`_received_packets`); other != 0 {
			t.Errorf("RecvCompletionMethod %s: %d packets in %s mode, %d in the other", c.method, in, c.mode, other)
		}
		if n, _ := value(t, far, `\datapath(port)\traffic_profile_transitions`); (n > 0) != (c.mode == "thread") {
			t.Errorf("RecvCompletionMethod %s: %d changes to polling", c.method, n)
		}
		var batches uint64
		await.Eventually(t, "indications are counted, no more than packets", func() bool { // of which another, sent again, may come now
			batches, _ = value(t, far, `\datapath(port)\batches_of_0`)
			in, _ = value(t, far, `\datapath(port)\`+c.mode+`_received_packets`)
			return batches > 0 && batches <= in
		})
		await.Eventually(t, "each queue counts its packets", func() bool {
			n, _ := value(t, far, `\receive_queues(port, *)\received_packets`)
			all, _ := value(t, far, `\datapath(port)\*_received_packets`)
			return n == all
		})
	}
	b.send(t, b.frame(eth.Broadcast, "sent"))
	await.Eventually(t, "sends are counted", func() bool {
		n, _ := value(t, far, `\send_path(port)\ring_sent_packets`)
		each, _ := value(t, far, `\send_queues(port, *)\sent_packets`)
		return n > 0 && n == each
	})
}
