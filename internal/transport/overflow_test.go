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

// goodput is how long it takes to write 64 MB over a number of QPs to a receiver
// that needs a microsecond a packet and holds 52 of 4096 bytes, what a socket
// buffer of 212,992 bytes holds.
func goodput(t *testing.T, qps int, op ring.WROp) (time.Duration, uint64, uint64) {
	n := sim.New(1)
	n.Default.Delay = 5 * time.Microsecond
	ha, hb := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x10000})
	for _, h := range []*host{ha, hb} {
		h.port.Service, h.port.Buffer = time.Microsecond, 52
		if _, err := h.mem.Register(memory.Region{PD: testPD, Base: regionAt, Length: regionSize, Access: allowAll, Bytes: make([]byte, regionSize)}); err != nil {
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
				t.Fatalf("%+v", c.CQE)
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
		t.Fatalf("%d of %d", done, total)
	}
	return time.Duration(n.Now()), n.Stats.Overflowed, ha.e.counters.RetransmittedPackets
}

// TestOverflowingReceiver: the window that the QPs to one receiver share keeps
// 1,000 of them from collapsing where one does well: at least 0.7 of its goodput.
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
