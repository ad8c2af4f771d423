package device

// RingCounters count what the port's rings did: its link is the ring of each direction. Interrupt mode is when the
// loop's own goroutine runs it, having been woken; polling mode is when a program that polls or waits does.
type RingCounters struct {
	// Received packets, and the batches in which they were handed to the engine, by the mode.
	InterruptPackets, InterruptBatches uint64
	PollingPackets, PollingBatches     uint64
	// FullBatches are those that were as large as may be; Transitions the changes from interrupt to polling mode.
	FullBatches, Transitions uint64
	// Sizes are the batches by the number of their packets: less than 40, less than 80 and so on.
	Sizes [RingSizes]uint64

	polling bool // the batch before
}

const (
	// RingSizes is how many sizes of batches are told apart, RingStep the packets from one to the next (WinOF 5.50,
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
