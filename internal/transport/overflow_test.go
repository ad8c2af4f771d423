package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// goodput writes or reads 64 MB over a number of QPs. The receiver takes one packet a microsecond and its buffer
// holds 52 packets of 4096 bytes, as a socket buffer of 212,992 bytes does. It returns the time, the packets that
// overflowed and the packets sent again.
func goodput(t *testing.T, qps int, op ring.WROp) (time.Duration, uint64, uint64) {
	n := sim.New(1)
	n.Default.Delay = 5 * time.Microsecond
	ha, hb := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x10000})
	for _, h := range []*host{ha, hb} {
		h.port.Service, h.port.Buffer = time.Microsecond, 52
		if _, err := h.mem.Register(memory.Region{PD: testPD, Base: regionAt, Length: regionSize, Access: allowAll,
			Bytes: make([]byte, regionSize)}); err != nil {
			t.Fatal(err)
		}
	}
	c := defaultConnection()
	c.mtu, c.timeout = 4096, 14
	const size, total = 32768, 2000
	posted := make([]int, qps)
	ends := map[uint32]*end{}
	index := map[uint32]int{}
	sent, done := 0, 0
	post := func(x *end) {
		if sent < total {
			sent++
			posted[index[x.q.num]]++
			x.do(op, size)
		}
	}
	for i := range qps {
		a, b := ha.qp(command.RC, QPConfig{}), hb.qp(command.RC, QPConfig{})
		connect(a, b, c)
		ends[a.q.num], index[a.q.num] = a, i
	}
	ha.settle = func(clock.Time) {
		for _, c := range ha.comps {
			if c.Status != ring.Success {
				t.Fatalf("a completion failed: %+v", c.CQE)
			}
			done++
			post(ends[c.QPN])
		}
		ha.comps = ha.comps[:0]
	}
	for range max(1, 16/qps) {
		for _, x := range ends {
			post(x)
		}
	}
	n.Run(100*second, func() bool { return done == total })
	if done != total {
		t.Fatalf("%d of %d requests complete", done, total)
	}
	return time.Duration(n.Now()), n.Stats.Overflowed, ha.e.counters.RetransmittedPackets
}

// TestOverflowingReceiver: up to 1,000 QPs that share the window to one receiver keep at least 0.7 of the goodput of
// one QP.
func TestOverflowingReceiver(t *testing.T) {
	for _, op := range []ring.WROp{ring.OpWrite, ring.OpRead} {
		one, lost, again := goodput(t, 1, op)
		t.Logf("%v: 1 QP: %v, %d overflowed, %d packets sent again", op, one, lost, again)
		for _, qps := range []int{10, 100, 1000} {
			d, lost, again := goodput(t, qps, op)
			t.Logf("%v: %d QPs: %v, %.2f of one, %d overflowed, %d packets sent again", op, qps, d, float64(one)/float64(d), lost, again)
			if float64(one)/float64(d) < 0.7 {
				t.Errorf("%v: goodput of %d QPs is %.2f of one QP's, want at least 0.7", op, qps, float64(one)/float64(d))
			}
		}
	}
}
