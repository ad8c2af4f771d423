package transport

import (
	"bytes"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// gathering returns a connection whose requester's memory is mapped and whose responder's memory takes many pieces in
// one call, the gatherer, and the bytes that are written.
func gathering(t *testing.T, bursts bool) (n *sim.Network, a, b *end, g *gatherer, from []byte) {
	n, a, b = newPair(t, 1, command.RC)
	c := defaultConnection()
	c.mtu, c.bursts = 4096, bursts
	connect(a, b, c)
	from = pattern(regionSize, 1)
	a.region(regionAt, from, allowAll)
	g = &gatherer{owner: owner{base: regionAt, bytes: make([]byte, regionSize)}}
	if _, err := b.mem.Register(memory.Region{PD: testPD, Base: regionAt, Length: regionSize, Access: allowAll, Remote: g}); err != nil {
		t.Fatal(err)
	}
	return n, a, b, g, from
}

// TestPacketsAreWrittenTogether delivers the eight packets of a write as one batch: one call writes all but the end
// of the message, and a second one its end. So it is if each packet is a message of its own, whose ends then are pieces too.
func TestPacketsAreWrittenTogether(t *testing.T) {
	for bursts, pieces := range map[bool]int{false: 9, true: 16} {
		_, a, b, g, from := gathering(t, bursts)
		a.do(ring.OpWrite, 8*4096)
		var out [16]frame.Out
		var in []frame.In
		for i := range a.e.Transmit(0, 0, out[:]) {
			in = append(in, frame.In{Data: flat(&out[i]), Src: a.addr, Dst: b.addr})
		}
		if len(in) != 8 {
			t.Fatalf("%d packets left, want 8", len(in))
		}
		b.e.Receive(0, in)
		if g.calls != 2 || g.pieces != pieces {
			t.Errorf("bursts %v: %d pieces were written with %d calls, want %d with 2", bursts, g.pieces, g.calls, pieces)
		}
		if !bytes.Equal(g.bytes[:8*4096], from[:8*4096]) {
			t.Errorf("bursts %v: the data differs", bursts)
		}
		if n := b.e.Transmit(0, 0, out[:]); n != 1 {
			t.Errorf("bursts %v: %d answers, want one ACK", bursts, n)
		}
	}
}

// TestGatheredPieceFails lets the write of each piece of a batch fail in turn: the message ends with a remote
// operational error, the request behind it is flushed, and nothing behind the failed piece is written.
func TestGatheredPieceFails(t *testing.T) {
	for fail := 1; fail <= regionSize/4096+1; fail++ {
		n, a, b, g, _ := gathering(t, fail%2 == 0)
		g.fail = fail
		a.do(ring.OpWrite, regionSize)
		a.do(ring.OpWrite, 4096)
		n.Run(n.Now().Add(time.Second), func() bool { return len(a.comps) == 2 })
		if len(a.comps) != 2 || a.comps[0].Status != ring.RemoteOperation || a.comps[1].Status != ring.WRFlush {
			t.Fatalf("piece %d fails: completions %v, want a remote operational error and a flush", fail, a.comps)
		}
		if behind := g.bytes[min(fail*4096, regionSize):]; !bytes.Equal(behind, make([]byte, len(behind))) {
			t.Errorf("piece %d fails: something behind it was written", fail)
		}
		if b.q.State() != command.Err {
			t.Errorf("piece %d fails: the responder is in %s, want the error state", fail, stateName(b.q.State()))
		}
	}
}
