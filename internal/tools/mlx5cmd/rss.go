package mlx5cmd

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/api"
)

// queue is what a receive queue of an Ethernet function, and the send queues of its flows, have carried.
type queue struct {
	Processor       int    `json:"processor"`
	ReceivedPackets uint64 `json:"received_packets"`
	ReceivedBytes   uint64 `json:"received_bytes"`
	Dropped         uint64 `json:"dropped_packets"`
	SentPackets     uint64 `json:"sent_packets"`
	SentBytes       uint64 `json:"sent_bytes"`
}

func (q queue) String() string {
	return fmt.Sprintf("processor %d, received %d packets %d bytes, dropped %d, sent %d packets %d bytes", q.Processor, q.ReceivedPackets,
		q.ReceivedBytes, q.Dropped, q.SentPackets, q.SentBytes)
}

// queues shows the queues of Ethernet functions.
func (r *run) queues() (report, error) {
	if err := r.only("Name="); err != nil {
		return nil, err
	}
	return r.each("Queues of adapter", func(b *block, a *api.AdapterStatus) error {
		if a.Ethernet == nil {
			b.add("Queues", "none: the adapter has no host")
			return nil
		}
		var all queue
		for i, x := range a.Ethernet.Rings {
			b.add(fmt.Sprintf("Queue[%d]", i), queue(x))
			all.ReceivedPackets += x.ReceivedPackets
			all.Dropped += x.Dropped
			all.SentPackets += x.SentPackets
		}
		b.add("Received packets", all.ReceivedPackets)
		b.add("Dropped packets", all.Dropped)
		b.add("Sent packets", all.SentPackets)
		return nil
	})
}
