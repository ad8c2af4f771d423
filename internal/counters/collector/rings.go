package collector

import (
	"strconv"
	"sync"

	"github.com/softvpi/softvpi/internal/catalogue"
	"github.com/softvpi/softvpi/internal/device"
	"github.com/softvpi/softvpi/internal/function/ethernet"
)

// datapathWords are those of the receive rings: of an adapter's Ethernet function, or of its link if it has none.
func datapathWords() map[string]func(*device.Counters) uint64 {
	m := map[string]func(*device.Counters) uint64{
		"dpc_received_packets":        ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.PacketsDPC }),
		"dpc_batches":                 ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.IndicationsDPC }),
		"thread_received_packets":     ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.PacketsThread }),
		"thread_batches":              ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.IndicationsThread }),
		"consumed_maximum_receives":   ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.ConsumedMaxReceives }),
		"dpc_starvations":             ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.Starved }),
		"skipped_receives":            ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.Skipped }),
		"traffic_profile_transitions": ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.Transitions }),
		"low_resource_packets":        ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.LowResources }),
		"ring_bits":                   ofRings(func(r *ethernet.ReceiveCounters) uint64 { return 8 * r.Bytes }),
	}
	m["packets_per_dpc"] = averageOf(m["dpc_received_packets"], m["dpc_batches"])
	m["packets_per_thread"] = averageOf(m["thread_received_packets"], m["thread_batches"])
	for i := range device.RingSizes {
		m["batches_of_"+strconv.Itoa(i*device.RingStep)] = ofRings(func(r *ethernet.ReceiveCounters) uint64 { return r.Batches[i] })
	}
	return m
}

// ofRings reads a counter of all receive rings of an adapter.
func ofRings(at func(*ethernet.ReceiveCounters) uint64) func(*device.Counters) uint64 {
	return func(c *device.Counters) uint64 {
		if c.Ethernet == nil {
			r := &c.Rings
			return at(&ethernet.ReceiveCounters{
				Bytes: receivedBytes(c), PacketsDPC: r.InterruptPackets, IndicationsDPC: r.InterruptBatches,
				PacketsThread: r.PollingPackets, IndicationsThread: r.PollingBatches,
				ConsumedMaxReceives: r.FullBatches, Transitions: r.Transitions, Batches: r.Sizes,
			})
		}
		n := uint64(0)
		for i := range c.Ethernet.Queues {
			n += at(&c.Ethernet.Queues[i].Receive)
		}
		return n
	}
}

// averageOf divides one counter by another.
func averageOf(sum, n func(*device.Counters) uint64) func(*device.Counters) uint64 {
	return func(c *device.Counters) uint64 { return average(sum(c), n(c)) }
}

// ofSends reads a counter of all send rings of an adapter: of its Ethernet function, or of its link if it has none.
func ofSends(at func(*ethernet.SendCounters) uint64) func(*device.Counters) uint64 {
	return func(c *device.Counters) uint64 {
		if c.Ethernet == nil {
			l := &c.Link
			return at(&ethernet.SendCounters{Packets: l.SentPackets, Bytes: sentBytes(c), Bursts: l.SentBursts, RingFull: l.SendBlocked})
		}
		n := uint64(0)
		for i := range c.Ethernet.Queues {
			n += at(&c.Ethernet.Queues[i].Send)
		}
		return n
	}
}

func sendPackets(s *ethernet.SendCounters) uint64 { return s.Packets }

func sendBursts(s *ethernet.SendCounters) uint64 { return s.Bursts }

// partWords says where the counters of sets are read that have an instance for each part of an adapter's Ethernet function: its
// queues, or the processors of these.
var partWords = sync.OnceValue(func() map[string]map[string]func(e *device.EthernetStatus, part int) uint64 {
	return map[string]map[string]func(e *device.EthernetStatus, part int) uint64{
		"adapter_rss": rssWords(),
		"receive_queues": {
			"received_packets":       ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.Packets }),
			"received_bytes":         ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.Bytes }),
			"dpc_received_packets":   ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.PacketsDPC }),
			"thread_packets":         ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.PacketsThread }),
			"dpc_indications":        ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.IndicationsDPC }),
			"thread_indications":     ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.IndicationsThread }),
			"receive_interrupts":     ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.Interrupts }),
			"polling_starts":         ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.Transitions }),
			"moderated_packets":      ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.Moderated }),
			"burst_packets":          ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.Burst }),
			"dropped_buffer_packets": ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Receive.NoBuffer }),
		},
		"send_queues": {
			"sent_packets":    ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Send.Packets }),
			"sent_bytes":      ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Send.Bytes }),
			"reported_sends":  ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Send.Completions }),
			"send_interrupts": ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Send.Interrupts }),
			"full_ring_sends": ofQueue(func(c *ethernet.QueueCounters) uint64 { return c.Send.RingFull }),
		},
	}
})

// total is the part that is all of them.
const total = -1

// ofQueue reads a counter of a queue.
func ofQueue(at func(*ethernet.QueueCounters) uint64) func(*device.EthernetStatus, int) uint64 {
	return func(e *device.EthernetStatus, q int) (n uint64) {
		if q >= len(e.Queues) {
			return 0
		}
		return at(&e.Queues[q])
	}
}

// rssWords are those of RSS monitoring, by processor or of all.
func rssWords() map[string]func(*device.EthernetStatus, int) uint64 {
	m := map[string]func(*device.EthernetStatus, int) uint64{}
	set, _ := catalogue.CounterSetNamed("adapter_rss")
	for i := range set.Counters {
		m[set.Counters[i].Short] = func(e *device.EthernetStatus, cpu int) (n uint64) {
			for p := range e.RSS {
				if cpu == p || cpu == total {
					n += e.RSS[p][i]
				}
			}
			return n
		}
	}
	return m
}

// readPart reads the totals of a part of an adapter's Ethernet function since the adapter was restarted or the set was reset.
func readPart(set string, a *Adapter, b *base, part int) readTotal {
	from := a.Before
	if b != nil && b.restarts == a.Restarts {
		from = &b.words
	}
	return func(short string) (now, before uint64) {
		at := partWords()[set][short]
		if from != nil && from.Ethernet != nil {
			before = at(from.Ethernet, part)
		}
		return at(a.Ethernet, part), before
	}
}
