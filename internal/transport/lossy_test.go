package transport

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

var lossTable = flag.Bool("losstable", false, "print what TestGoodput measures for more cases, and hold it to nothing")

// lossyPath is a path to a receiver that takes one packet a microsecond.
type lossyPath struct {
	loss    float64
	qps     int
	delay   time.Duration
	buffer  int  // packets that may wait for the receiver; 0: no limit
	forgets bool // the responder keeps no packet that comes ahead of its turn
}

// goodput keeps 16 writes of 64 KB outstanding for the virtual time d. It returns the packets of completed messages
// and the packets sent again, each as a share of what the receiver can take.
func (p lossyPath) goodput(t testing.TB, d time.Duration) (good, again float64) {
	const size = 64 << 10
	n := sim.New(uint64(p.qps)*1000 + uint64(p.loss*1e5))
	n.Default.Delay, n.Default.Loss = p.delay, p.loss
	ha, hb := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x1000})
	hb.port.Service, hb.port.Buffer = time.Microsecond, p.buffer
	if p.forgets {
		hb.e.kept.used = maxEarly
	}
	key := ha.region(regionAt, make([]byte, size), allowAll).Key
	hb.region(regionAt, make([]byte, size), allowAll)
	c := defaultConnection()
	c.timeout = 14
	ends := map[uint32]*end{}
	post := func(x *end) { x.doWith(ring.OpWrite, size, func(w *ring.SendWR) { w.SGE[0].LKey = key }) }
	done := 0
	ha.settle = func(clock.Time) {
		for _, e := range ha.comps {
			if e.Status != ring.Success {
				t.Fatalf("a completion failed: %+v", e)
			}
			done++
			post(ends[e.QPN])
		}
		ha.comps = ha.comps[:0]
	}
	for range p.qps {
		a, b := ha.qp(command.RC, QPConfig{}), hb.qp(command.RC, QPConfig{})
		connect(a, b, c)
		ends[a.q.num] = a
		for range max(16/p.qps, 2) {
			post(a)
		}
	}
	n.Run(clock.Time(d), nil)
	most := float64(d / time.Microsecond)
	return float64(done*size/int(c.mtu)) / most, float64(ha.e.counters.RetransmittedPackets) / most
}

// TestGoodput: a lost packet costs little more than sending that packet again, however many queue pairs share the
// window, and a small receive buffer is not overrun.
func TestGoodput(t *testing.T) {
	if *lossTable {
		printLossTable(t)
		return
	}
	const us = time.Microsecond
	for _, c := range []struct {
		lossyPath
		good, again float64 // at least, at most
	}{
		// For a time, the answer to a packet that was sent again in vain may be taken for another gap.
		{lossyPath{qps: 1, delay: 10 * us, loss: 0.001}, 0.97, 0.015},
		{lossyPath{qps: 4, delay: 10 * us, loss: 0.001}, 0.98, 0.005},
		{lossyPath{qps: 1, delay: 100 * us, loss: 0.001}, 0.85, 0.01},
		{lossyPath{qps: 4, delay: 100 * us, loss: 0.001}, 0.95, 0.005},
		{lossyPath{qps: 1, delay: 10 * us, loss: 0.01}, 0.85, 0.05},
		{lossyPath{qps: 4, delay: 10 * us, loss: 0.01}, 0.95, 0.03},
		{lossyPath{qps: 1, delay: 10 * us, loss: 0.05}, 0.5, 0.2},
		{lossyPath{qps: 4, delay: 10 * us, loss: 0.05}, 0.65, 0.15},
		{lossyPath{qps: 1, delay: 10 * us, loss: 0.001, forgets: true}, 0.9, 0.1},
		{lossyPath{qps: 4, delay: 10 * us, loss: 0.01, forgets: true}, 0.5, 0.3},
		{lossyPath{qps: 1, delay: 10 * us, buffer: 90}, 0.85, 0.1},
		{lossyPath{qps: 100, delay: 10 * us, buffer: 90}, 0.9, 0.05},
		{lossyPath{qps: 500, delay: 10 * us, buffer: 90}, 0.75, 0.05},
	} {
		good, again := c.goodput(t, 100*time.Millisecond)
		t.Logf("%+v: %.3f, sent again %.3f", c.lossyPath, good, again)
		if good < c.good || again > c.again {
			t.Errorf("%+v: %.3f of what the receiver can take, want %.2f; sent again %.3f, want at most %.3f", c.lossyPath, good, c.good,
				again, c.again)
		}
	}
}

func printLossTable(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		for _, delay := range []time.Duration{10 * time.Microsecond, 100 * time.Microsecond} {
			for _, qps := range []int{1, 4, 100} {
				line := fmt.Sprintf("forgets %v, delay %v, %d QPs:", forgets, delay, qps)
				for _, loss := range []float64{0, 0.001, 0.01, 0.05} {
					good, again := lossyPath{loss: loss, qps: qps, delay: delay, forgets: forgets}.goodput(t, 400*time.Millisecond)
					line += fmt.Sprintf("  %g %%: %.3f (%.3f)", loss*100, good, again)
				}
				t.Log(line)
			}
		}
		for _, buffer := range []int{90, 400} {
			line := fmt.Sprintf("forgets %v, buffer of %d:", forgets, buffer)
			for _, qps := range []int{1, 4, 100, 500} {
				good, again := lossyPath{qps: qps, delay: 10 * time.Microsecond, buffer: buffer, forgets: forgets}.goodput(t,
					400*time.Millisecond)
				line += fmt.Sprintf("  %d QPs: %.3f (%.3f)", qps, good, again)
			}
			t.Log(line)
		}
	}
}
