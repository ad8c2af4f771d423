package port

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// greedy is a function that always has frames of 1500 bytes to send, or nothing.
type greedy struct {
	route   frame.Route
	payload [1500]byte
	sent    int
	lent    bool
	idle    bool
}

func (g *greedy) Receive(clock.Time, []frame.In) {}
func (g *greedy) Advance(clock.Time)             {}
func (g *greedy) Deadline() clock.Time           { return clock.Never }
func (g *greedy) Lent() bool                     { return g.lent }

func (g *greedy) Pending() uint8 {
	if g.idle {
		return 0
	}
	return 1
}

func (g *greedy) Transmit(_ clock.Time, _ uint8, out []frame.Out) int {
	g.lent = len(out) > 0
	for i := range out {
		out[i].Reset(&g.route)
		out[i].Payload = g.payload[:]
		g.sent += out[i].Len() + socketHeaders(false)
	}
	return len(out)
}

// carry drives a port on a wire of 1 GB/s for a time.
func carry(p *Port, from clock.Time, d time.Duration) clock.Time {
	now := from
	out := make([]frame.Out, 64)
	for end := now.Add(d); now < end; {
		n := p.Transmit(now, out)
		if n == 0 {
			if now = max(p.Deadline(), now+1); now == clock.Never {
				return end
			}
			continue
		}
		for i := range out[:n] {
			now += clock.Time(out[i].Len() + socketHeaders(false))
		}
	}
	return now
}

// TestShare: stations have their most and no more, those with a least have that whatever the others want, and the rest is shared
// evenly.
func TestShare(t *testing.T) {
	const mb = 1e6
	for _, x := range []struct {
		name   string
		shares []Share
		want   []float64 // MB/s on a wire of 1000
	}{
		{"nothing is said", []Share{{}, {}}, []float64{500, 500}},
		{"a most", []Share{{Most: 100 * mb}, {}}, []float64{100, 900}},
		{"eight with the same", []Share{{Most: 20 * mb}, {Most: 20 * mb}, {Most: 20 * mb}, {Most: 20 * mb}, {Most: 20 * mb}, {Most: 20 * mb},
			{Most: 20 * mb}, {Most: 20 * mb}}, []float64{20, 20, 20, 20, 20, 20, 20, 20}},
		{"eight different, and one without", []Share{{Most: 1 * mb}, {Most: 5 * mb}, {Most: 10 * mb}, {Most: 20 * mb}, {Most: 40 * mb}, {Most: 60 * mb},
			{Most: 80 * mb}, {Most: 84 * mb}, {}}, []float64{1, 5, 10, 20, 40, 60, 80, 84, 700}},
		{"a least for eight", []Share{{Least: 10 * mb}, {Least: 20 * mb}, {Least: 30 * mb}, {Least: 40 * mb}, {Least: 100 * mb}, {Least: 200 * mb},
			{Least: 250 * mb}, {Least: 350 * mb}}, []float64{10, 20, 30, 40, 100, 200, 250, 350}},
		{"a least", []Share{{Least: 700 * mb}, {}, {}}, []float64{700, 150, 150}},
		{"two of them", []Share{{Least: 500 * mb}, {Least: 300 * mb}, {}}, []float64{500, 300, 200}},
		{"a least below its part", []Share{{Least: 100 * mb}, {}}, []float64{500, 500}},
		{"both", []Share{{Most: 300 * mb, Least: 200 * mb}, {Least: 600 * mb}}, []float64{300, 700}},
	} {
		p, list := &Port{}, []*greedy{}
		for _, s := range x.shares {
			g := &greedy{}
			list = append(list, g)
			p.Attach(g, Station{}).SetShare(0, s)
		}
		const span = 2 * time.Second
		carry(p, 0, span)
		for i, g := range list {
			got := float64(g.sent) / span.Seconds() / mb
			if got < 0.97*x.want[i] || got > 1.03*x.want[i] {
				t.Errorf("%s: station %d has %.1f MB/s, want %.1f", x.name, i, got, x.want[i])
			}
		}
	}
}

// TestShare_Joint: stations that have joined one have its share together: what one sends the others cannot, also after it was changed, and
// none of it is left when they are gone.
func TestShare_Joint(t *testing.T) {
	const mb = 1e6
	p, list := &Port{}, []*greedy{{}, {}, {}}
	var stations []*Station
	for _, g := range list {
		stations = append(stations, p.Attach(g, Station{}))
	}
	stations[1].Join(stations[0])
	now, rest := clock.Time(0), list[2]
	for _, x := range []struct {
		most, both, other float64 // MB/s on a wire of 1000
	}{{100, 100, 900}, {40, 40, 960}, {0, 667, 333}} {
		stations[0].SetShare(now, Share{Most: uint64(x.most * mb)})
		before := [2]int{list[0].sent + list[1].sent, rest.sent}
		const span = 2 * time.Second
		now = carry(p, now, span)
		for i, want := range []float64{x.both, x.other} {
			sent := [2]int{list[0].sent + list[1].sent, rest.sent}[i] - before[i]
			if got := float64(sent) / span.Seconds() / mb; got < 0.97*want || got > 1.03*want {
				t.Errorf("most %g: %d has %.1f MB/s, want %.1f", x.most, i, got, want)
			}
		}
	}
	stations[0].SetShare(now, Share{Most: mb})
	p.Detach(stations[1])
	p.Detach(stations[0])
	if len(p.shared) != 0 {
		t.Errorf("%d stations have a share still", len(p.shared))
	}
}

// TestShare_IdleSavesNothingUp: a station that was silent sends no more than its burst at once; one with a slow rate still gets it.
func TestShare_IdleSavesNothingUp(t *testing.T) {
	p, g := &Port{}, &greedy{idle: true}
	s := p.Attach(g, Station{})
	s.SetShare(0, Share{Most: 1e6})
	if p.Deadline() != clock.Never {
		t.Error("a port with nothing to send wants to be driven")
	}
	now := carry(p, 0, time.Hour)
	g.idle = false
	carry(p, now, 10*time.Millisecond)
	if most := rateBurst + fewPackets*1600 + 10000; g.sent > most {
		t.Errorf("%d bytes at once after an hour, want at most %d", g.sent, most)
	}
	if s.Share() != (Share{Most: 1e6}) {
		t.Errorf("the share is %+v", s.Share())
	}
}

// TestShare_GivesBack: a station that may send no more gets its packets back, and the port waits for its time.
func TestShare_GivesBack(t *testing.T) {
	p, g := &Port{}, &greedy{}
	s := p.Attach(g, Station{})
	s.SetShare(0, Share{Most: 1e3})
	out := make([]frame.Out, 64)
	for i := 0; p.Transmit(1, out) > 0; i++ {
		if i > 1000 {
			t.Fatal("a thousand bursts at once")
		}
	}
	if g.lent {
		t.Error("it has its packets no more")
	}
	if due := p.Deadline(); due <= 1 || due == clock.Never {
		t.Errorf("the port is due at %v", due)
	}
	p.Detach(s)
	if len(p.shared) != 0 || p.Deadline() != clock.Never {
		t.Error("a station that left has its share still")
	}
}
