package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
)

// TestLossless: at a lossless priority nothing that is late is sent again before the ACK timer ends, however early a probe would be; what a
// responder reports as missing is, at once; and the timer brings back what nobody reports, as with a network card.
func TestLossless(t *testing.T) {
	for _, c := range []struct {
		name     string
		lossless uint8
		late     time.Duration // how much later the answers come
		probes   bool
		again    uint64 // packets sent again at least
	}{
		{"late answers", 1, 30 * time.Millisecond, false, 0},
		{"late answers at another priority", 2, 30 * time.Millisecond, true, 1},
		{"answers after the ACK timer", 1, 80 * time.Millisecond, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, a, b := newPair(t, 1, command.RC)
			p := defaultConnection()
			p.timeout = 14 // 67 ms
			connect(a, b, p)
			a.e.SetLossless(c.lossless)
			a.region(regionAt, make([]byte, regionSize), allowAll)
			b.region(regionAt, make([]byte, regionSize), allowAll)
			for range 20 {
				a.do(ring.OpWrite, 4000)
			}
			n.Pass(time.Second / 10)
			slow := n.Default
			slow.Delay = c.late
			n.Link(b.port, a.port).Set(slow)
			for range 8 {
				a.do(ring.OpWrite, 4000)
			}
			n.Run(n.Now()+clock.Time(time.Second), func() bool { return len(a.comps) == 28 })
			k := a.e.Counters()
			again := k.RetransmittedPackets
			if len(a.comps) != 28 || k.Probes > 0 != c.probes || again < c.again || c.again == 0 && again > 0 {
				t.Errorf("%d completions, %d probes, %d packets sent again", len(a.comps), k.Probes, again)
			}
		})
	}
	t.Run("losses", func(t *testing.T) {
		n, a, b := newPair(t, 1, command.RC)
		p := defaultConnection()
		p.timeout = 14
		connect(a, b, p)
		a.e.SetLossless(1)
		a.region(regionAt, make([]byte, regionSize), allowAll)
		b.region(regionAt, make([]byte, regionSize), allowAll)
		lose := func() {
			lost := n.Default
			lost.Loss = 1
			n.Link(a.port, b.port).Set(lost)
			a.do(ring.OpWrite, 100)
			n.Pass(10 * time.Microsecond)
			n.Link(a.port, b.port).Set(n.Default)
		}
		lose()
		for range 7 {
			a.do(ring.OpWrite, 4000)
		}
		n.Pass(10 * time.Millisecond)
		if k := a.e.Counters(); len(a.comps) != 8 || k.RequesterTimeouts > 0 {
			t.Errorf("a gap: %d completions, %d time-outs", len(a.comps), k.RequesterTimeouts)
		}
		lose()
		if n.Pass(60 * time.Millisecond); len(a.comps) != 8 {
			t.Error("the end of what was sent is sent again before its time")
		}
		n.Pass(time.Second)
		if k := a.e.Counters(); len(a.comps) != 9 || k.RequesterTimeouts != 1 || k.Probes > 0 {
			t.Errorf("the end: %d completions, %d time-outs, %d probes", len(a.comps), k.RequesterTimeouts, k.Probes)
		}
	})
}
