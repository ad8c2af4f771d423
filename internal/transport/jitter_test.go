package transport

import (
	"bytes"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestReadUnderJitter reads over a path that delays each packet differently, so that hardly an answer comes in its
// turn. The requests for missing answers must be bounded by the window, small by then, and not ask for the rest of a
// chunk time and again.
func TestReadUnderJitter(t *testing.T) {
	n, a, b := newPair(t, 7, command.RC)
	n.Default.Delay, n.Default.Reorder, n.Default.ReorderBy = time.Millisecond, 1, 2*time.Millisecond
	c := defaultConnection()
	c.timeout = 18
	connect(a, b, c)
	const packets = 256
	into, from := make([]byte, packets*1024), pattern(packets*1024, 3)
	wr := ring.SendWR{Op: ring.OpRead, Flags: ring.Signaled, NumSGE: 1, RemoteAddr: 0x1000, RKey: b.region(0x1000, from, allowAll).Key}
	wr.SGE[0] = ring.SGE{Addr: 0x1000, Length: packets * 1024, LKey: a.region(0x1000, into, allowAll).Key}
	a.post(wr)
	n.Run(n.Now().Add(time.Minute), func() bool { return len(a.comps) > 0 })
	if len(a.comps) != 1 || a.comps[0].Status != ring.Success || !bytes.Equal(into, from) {
		t.Fatalf("completions %v, want one success and the right data", a.comps)
	}
	t.Logf("%v, %d packets of answers", time.Duration(n.Now()), b.e.counters.OutboundPackets)
	if sent := b.e.counters.OutboundPackets; sent > 16*packets {
		t.Errorf("the responder sent %d packets for %d of data, want at most %d", sent, packets, 16*packets)
	}
}
