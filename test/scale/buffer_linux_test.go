package scale

import (
	"fmt"
	"testing"

	"github.com/softvpi/softvpi/internal/testbed"
)

// limitedBuffer is the usual net.core.rmem_max of Linux.
const limitedBuffer = 212992

// Many QPs that send to one receiver, whose socket has the usual receive buffer, reach most of the goodput of one QP.
func TestSmallReceiveBuffer(t *testing.T) {
	counts := []int{1, 100}
	if full() {
		counts = append(counts, 1000)
	}
	most := counts[len(counts)-1]
	addrs := testbed.Addrs()
	receiver, sender := spawn(t), spawn(t)
	receiver.call(t, "open", openArgs{Addr: addrs[0], ReceiveBuffer: limitedBuffer}, nil)
	sender.call(t, "open", openArgs{Addr: addrs[1], ReceiveBuffer: limitedBuffer}, nil)
	const message = 256 << 10
	args := endpointArgs{QPs: most, Depth: 4, Memory: 1 << 20}
	receiver.call(t, "endpoint", args, nil)
	sender.call(t, "endpoint", args, nil)
	pair(t, receiver, sender)

	best := map[int]float64{}
	for round := range size(4, 2) {
		for _, n := range counts {
			before := retransmissions(t, sender)
			var w written
			sender.call(t, "write", writeArgs{QPs: n, Size: message, Depth: max(1, 4/n), Seconds: float64(size(15, 3)) / 10}, &w)
			rate := float64(w.Bytes) * 8 / w.Seconds / 1e9
			best[n] = max(best[n], rate)
			after := retransmissions(t, sender)
			t.Logf("round %d, %4d QPs: %6.2f Gbit/s, messages per QP %d to %d, %v", round, n, rate, w.Least, w.Most, after.since(before))
		}
	}
	for _, n := range counts[1:] {
		ratio := best[n] / best[1]
		t.Logf("%d QPs: %.2f of the goodput of one", n, ratio)
		if full() && ratio < 0.7 { // this takes processor time that a busy machine does not have
			t.Errorf("%d QPs have %.2f Gbit/s, one has %.2f: ratio %.2f, want at least 0.7", n, best[n], best[1], ratio)
		}
	}
	var c map[string]uint64
	receiver.call(t, "counters", nil, &c)
	t.Logf("receiver: %d datagrams dropped for want of buffer, effective receive buffer %d bytes", c["Link receive buffer drops"],
		c["Link receive buffer"])
}

// pair connects all connections of two endpoints, and returns the seconds it took.
func pair(t testing.TB, listener, dialer *worker) (seconds float64) {
	t.Helper()
	var at string
	listener.call(t, "listen", nil, &at)
	dialer.call(t, "connect", at, &seconds)
	listener.call(t, "accepted", struct{}{}, nil)
	return seconds
}

// effort counts what a sender had to repeat.
type effort struct{ packets, timeouts, naks, resync, probes uint64 }

func retransmissions(t testing.TB, w *worker) effort {
	t.Helper()
	var c map[string]uint64
	w.call(t, "counters", nil, &c)
	return effort{c["Retransmitted packets"], c["Requester time out received"], c["Requester out of order sequence NAK"],
		c["Requester resync"], c["Probes"]}
}

func (e effort) since(b effort) effort {
	return effort{e.packets - b.packets, e.timeouts - b.timeouts, e.naks - b.naks, e.resync - b.resync, e.probes - b.probes}
}

func (e effort) String() string {
	return fmt.Sprintf("%d packets sent again, %d time-outs, %d sequence NAKs, %d steps back, %d probes", e.packets, e.timeouts, e.naks,
		e.resync, e.probes)
}
