package sim_test

import (
	"slices"
	"testing"
	"time"

	fabric "github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

// dcqcn is an incast of a simulator written elsewhere at 40 Gb/s with links of 1 us, and what it had there: the share of what the port
// can carry from 20 to 50 ms, Jain's index from 10 to 20 ms, and the KB in the queue in the middle of all times, 0: not compared.
type dcqcn struct {
	name    string
	senders int
	p       congestion.Parameters
	ecn     fabric.ECN
	share   float64
	jain    float64
	queue   float64
}

// TestSwitches_DCQCN: RC engines with DCQCN behind a switch that marks share a port as those of a simulator written elsewhere do: the
// sum of their rates within 3 %, Jain's index within 0.05, and the queue within 30 %. Nothing is lost. What a run shows of these is one
// draw: in the middle of the queue, those of different seeds are up to 40 % apart. So there are three; with -short the first one alone, and
// its first 30 ms, in which the steady state is reached as well.
func TestSwitches_DCQCN(t *testing.T) {
	const us = time.Microsecond
	paper := congestion.Parameters{LineRate: 40000, ClampTargetAfterTime: true, TimeReset: 55 * us, Threshold: 5, AIRate: 40, HAIRate: 200,
		AlphaShift: 11, MinDecrease: 0.5, MinRate: 100, G: 1.0 / 256, AlphaPeriod: 55 * us, ReducePeriod: 50 * us, InitialAlpha: 1}
	vendor := congestion.Parameters{LineRate: 40000, ClampTargetAfterTime: true, TimeReset: 300 * us, Threshold: 1, AIRate: 8, HAIRate: 80,
		AlphaShift: 11, MinDecrease: 0.5, MinRate: 100, G: 1.0 / 256, AlphaPeriod: us, ReducePeriod: 4 * us, InitialAlpha: 1}
	// There packets are marked when they leave.
	early := fabric.ECN{Kmin: 5000, Kmax: 200_000, Pmax: 0.01, Leaving: true}
	late := fabric.ECN{Kmin: 160_000, Kmax: 640_000, Pmax: 0.2, Leaving: true}
	for _, c := range []dcqcn{
		{"paper, 2 to 1", 2, paper, early, 38.1 / 38.17, 0.987, 30},
		{"vendor, 2 to 1", 2, vendor, late, 37.99 / 38.17, 0.9975, 84},
		{"vendor, 4 to 1", 4, vendor, late, 1, 1, 0}, // not recorded: fair and full
		{"vendor, 16 to 1", 16, vendor, late, 38.02 / 38.17, 0.9972, 199},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.compare(t)
		})
	}
}

func (c dcqcn) compare(t *testing.T) {
	var queue []int
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		queue = append(queue, c.run(t, seed)...)
	}
	slices.Sort(queue)
	middle := float64(queue[len(queue)/2]) / 1000
	t.Logf("queue %.0f KB (99 %%: %d)", middle, queue[len(queue)*99/100]/1000)
	if c.queue > 0 && (middle < 0.7*c.queue || middle > 1.3*c.queue) {
		t.Errorf("%.0f KB are in the queue, want %.0f", middle, c.queue)
	}
}

// run returns how many bytes were in the queue, all the time.
func (c dcqcn) run(t *testing.T, seed uint64) (queue []int) {
	wire := pausing()
	wire.Groups[3] = fabric.Group{}
	wire.Queues[3].ECN = c.ecn
	n, f, all := funnelOf(t, c.senders, wire, seed)
	for _, p := range all {
		if err := p.e.SetCongestion(congestion.Settings{React: 1 << 3, Reaction: c.p, Slack: 1}); err != nil {
			t.Fatal(err)
		}
		for range 127 {
			p.post()
		}
	}
	pass := func(until time.Duration) (sum, jain float64) {
		start, before := n.Now(), make([]uint64, len(all))
		for i, p := range all {
			before[i] = p.completed
		}
		for n.Now() < start.Add(until) {
			n.Pass(10 * time.Microsecond)
			_, bytes := f.Switch(0).Port(c.senders).Queued(3)
			queue = append(queue, bytes)
		}
		squares := 0.
		for i, p := range all {
			rate := float64(p.completed-before[i]) * messageSize * 8 / until.Seconds() / 1e9
			sum += rate
			squares += rate * rate
		}
		return sum, sum * sum / squares / float64(len(all))
	}
	pass(10 * time.Millisecond)
	early, jain := pass(10 * time.Millisecond)
	steady := 30 * time.Millisecond
	if testing.Short() {
		steady = 10 * time.Millisecond
	}
	sum, _ := pass(steady)
	// A message of four packets has 1,024 bytes of payload in each, 16 of RETH in the first, and 82 of headers and gaps.
	const limit = 40. * messageSize / (messageSize + 4*82 + 16)
	t.Logf("%.3f and %.3f of %.2f Gb/s, Jain %.4f", early/limit, sum/limit, limit, jain)
	if share := sum / limit; share < c.share-0.03 || share > c.share+0.03 {
		t.Errorf("%.3f of the port are used, want %.3f", share, c.share)
	}
	if jain < c.jain-0.05 {
		t.Errorf("Jain's index is %.4f, want %.4f", jain, c.jain)
	}
	for i, p := range all {
		if again := p.e.Counters().RetransmittedPackets; again > 0 {
			t.Errorf("sender %d has sent %d packets again", i, again)
		}
	}
	if got := f.Switch(0).Port(c.senders).Counters(n.Now()).Priority[3]; got.Marked == 0 || got.Marked == got.OutFrames {
		t.Errorf("%d of %d packets are marked", got.Marked, got.OutFrames)
	}
	return queue
}
