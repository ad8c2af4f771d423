package device

// RingCounters count the work of the port's rings; here the link is the ring of each direction. An Ethernet function has rings
// of its own (EthernetStatus.Queues). Interrupt
// mode means that the packets ended the loop's sleep, whoever slept; polling mode that somebody, the loop's own
// goroutine or a program, was awake and looked for them (WinOF 5.50, 5.5.3.10: PacketsReceivedDPC and
// PacketsReceivedThread).
type RingCounters struct {
	// Received packets, and the batches in which they were passed to the engine, by mode.
	InterruptPackets, InterruptBatches uint64
	PollingPackets, PollingBatches     uint64
	// FullBatches are those of the maximum size; Transitions the changes from interrupt to polling mode.
	FullBatches, Transitions uint64
	// Sizes counts the batches by number of packets: less than 40, less than 80 and so on.
	Sizes [RingSizes]uint64

	polling bool // mode of the previous batch
}

const (
	// RingSizes is the number of size classes of batches, RingStep their width in packets (WinOF 5.50,
	// 5.5.3.10: the histogram of perfstats).
	RingSizes = receiveBatch/RingStep + 1
	RingStep  = 40
)

// received counts a batch of packets.
func (r *RingCounters) received(packets, most int, polling bool) {
	if polling {
		r.PollingPackets += uint64(packets)
		r.PollingBatches++
		if !r.polling {
			r.Transitions++
		}
	} else {
		r.InterruptPackets += uint64(packets)
		r.InterruptBatches++
	}
	r.polling = polling
	if packets == most {
		r.FullBatches++
	}
	r.Sizes[uint(packets)/RingStep%RingSizes]++
}
