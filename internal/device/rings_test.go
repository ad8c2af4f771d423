package device

import "testing"

func TestRingCounters(t *testing.T) {
	var r RingCounters
	for _, b := range []struct {
		packets int
		polling bool
	}{{1, false}, {39, true}, {40, true}, {255, false}, {receiveBatch, true}} {
		r.received(b.packets, receiveBatch, b.polling)
	}
	want := RingCounters{
		InterruptPackets: 256, InterruptBatches: 2, PollingPackets: 79 + receiveBatch, PollingBatches: 3, FullBatches: 1, Transitions: 2,
		Sizes: [RingSizes]uint64{0: 2, 1: 1, 6: 2}, polling: true,
	}
	if r != want {
		t.Errorf("ring counters %+v, want %+v", r, want)
	}
}
