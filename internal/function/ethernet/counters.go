package ethernet

import "github.com/softvpi/softvpi/internal/function/ethernet/filter"

// Traffic counts frames of one direction, and their bytes from the destination address on, without FCS.
type Traffic struct {
	Frames, Bytes                  uint64
	Directed, Multicast, Broadcast uint64
	DirectedBytes, MulticastBytes  uint64
	BroadcastBytes                 uint64
	Large                          uint64 // frames of several segments, which count once
	ChecksumGood, ChecksumBad      uint64 // received frames whose checksums were checked
	ChecksumNone, ChecksumMade     uint64 // received frames with none to check; sent ones with checksums made here
	Segments                       uint64 // made of large sends for a wire
	Priorities, PriorityBytes      [8]uint64
}

// Counters are those of a function, kept for its life.
type Counters struct {
	Received, Sent Traffic
	// Filtered are frames that were dropped, by verdict.
	Filtered [filter.Verdicts]uint64
	// Malformed are frames without a whole Ethernet header, or that say of themselves what cannot be.
	Malformed uint64
	// Control are MAC control frames, which no host gets.
	Control uint64
	// ControlUnknown are those of them that are not pause frames of any kind.
	ControlUnknown uint64
	// BadFCS are frames with a wrong frame check sequence; with IgnoreFCS they are passed on.
	BadFCS uint64
	// Fragments are those of them that are shorter than an Ethernet frame may be, Jabbers those that are longer than *JumboPacket.
	Fragments, Jabbers uint64
	// NoBuffer are received frames for which their ring had no room ("Packets Received Discarded").
	NoBuffer uint64
	// Asleep are frames dropped because the host sleeps.
	Asleep uint64
	// Woken is how often a frame has woken it.
	Woken uint64
	// RSC has the four counters of coalescing.
	RSC RSC
	// RingFull are sends for which the ring had no room ("TX Ring Is Full Packets"), Refused those that were refused for
	// another reason ("Packets Outbound Errors").
	RingFull, Refused uint64
}

// RSC counts receive segment coalescing (WinOF 5.50, 4.1.8.2).
type RSC struct {
	Aborts, Events, Octets, Packets uint64
}

// ReceiveCounters are those of one receive queue (WinOF 5.50, 5.5.3.10: show perfstats).
type ReceiveCounters struct {
	Packets, Bytes uint64
	// PacketsDPC and PacketsThread were indicated in interrupt mode and in polling mode, in so many Indications.
	PacketsDPC, PacketsThread         uint64
	IndicationsDPC, IndicationsThread uint64
	// Skipped is how often the host stopped taking packets while they were indicated (SkipReceiveDueToControlChanges).
	Skipped uint64
	// ConsumedMaxReceives is how often the most packets allowed at once were indicated.
	ConsumedMaxReceives uint64
	// Starved is how often the queue had to leave packets in interrupt mode, for others to have their turn (MaxCallsToNdisIndicate).
	Starved uint64
	// Transitions are changes from interrupt mode to polling mode (NumTrafficProfileTransitions).
	Transitions uint64
	// Batches are indications by how many packets they had: 0 to 39, 40 to 79 and so on.
	Batches [7]uint64
	// Interrupts are those raised, and Moderated the packets that had to wait for one.
	Interrupts, Moderated uint64
	// NoBuffer are packets that were lost for want of room, Burst those that only the reserve had room for.
	NoBuffer, Burst uint64
	// LowResources are indications of packets where the wire has them, which the host may not keep.
	LowResources uint64
}

// QueueCounters are those of a receive queue and of the send queues of its flows.
type QueueCounters struct {
	Receive ReceiveCounters
	Send    SendCounters
}

// SendCounters are those of one send queue.
type SendCounters struct {
	Packets, Bytes uint64
	// Completions were reported, by so many Interrupts or, with SendCompletionMethod polling, without.
	Completions, Interrupts uint64
	// Bursts are how often frames of the queue were passed on at once.
	Bursts   uint64
	RingFull uint64
}

// Add adds those of another function.
func (c *Counters) Add(o *Counters) {
	c.Received.add(&o.Received)
	c.Sent.add(&o.Sent)
	for i := range c.Filtered {
		c.Filtered[i] += o.Filtered[i]
	}
	c.Malformed += o.Malformed
	c.Control += o.Control
	c.ControlUnknown += o.ControlUnknown
	c.BadFCS += o.BadFCS
	c.Fragments += o.Fragments
	c.Jabbers += o.Jabbers
	c.NoBuffer += o.NoBuffer
	c.Asleep += o.Asleep
	c.Woken += o.Woken
	c.RSC.Aborts += o.RSC.Aborts
	c.RSC.Events += o.RSC.Events
	c.RSC.Octets += o.RSC.Octets
	c.RSC.Packets += o.RSC.Packets
	c.RingFull += o.RingFull
	c.Refused += o.Refused
}

func (t *Traffic) add(o *Traffic) {
	t.Frames += o.Frames
	t.Bytes += o.Bytes
	t.Directed += o.Directed
	t.Multicast += o.Multicast
	t.Broadcast += o.Broadcast
	t.DirectedBytes += o.DirectedBytes
	t.MulticastBytes += o.MulticastBytes
	t.BroadcastBytes += o.BroadcastBytes
	t.Large += o.Large
	t.ChecksumGood += o.ChecksumGood
	t.ChecksumBad += o.ChecksumBad
	t.ChecksumNone += o.ChecksumNone
	t.ChecksumMade += o.ChecksumMade
	t.Segments += o.Segments
	for p := range t.Priorities {
		t.Priorities[p] += o.Priorities[p]
		t.PriorityBytes[p] += o.PriorityBytes[p]
	}
}

// Add adds those of another queue.
func (c *ReceiveCounters) Add(o *ReceiveCounters) {
	c.Packets += o.Packets
	c.Bytes += o.Bytes
	c.PacketsDPC += o.PacketsDPC
	c.PacketsThread += o.PacketsThread
	c.IndicationsDPC += o.IndicationsDPC
	c.IndicationsThread += o.IndicationsThread
	c.Skipped += o.Skipped
	c.ConsumedMaxReceives += o.ConsumedMaxReceives
	c.Starved += o.Starved
	c.Transitions += o.Transitions
	for i := range c.Batches {
		c.Batches[i] += o.Batches[i]
	}
	c.Interrupts += o.Interrupts
	c.Moderated += o.Moderated
	c.NoBuffer += o.NoBuffer
	c.Burst += o.Burst
	c.LowResources += o.LowResources
}

// Add adds those of another queue.
func (c *QueueCounters) Add(o *QueueCounters) {
	c.Receive.Add(&o.Receive)
	c.Send.Add(&o.Send)
}

// Add adds those of another queue.
func (c *SendCounters) Add(o *SendCounters) {
	c.Packets += o.Packets
	c.Bytes += o.Bytes
	c.Completions += o.Completions
	c.Interrupts += o.Interrupts
	c.Bursts += o.Bursts
	c.RingFull += o.RingFull
}
