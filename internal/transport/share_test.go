package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestSharedWindow: QPs that share a window send bursts, not crumbs of it, ask for
// an acknowledgement of each before the others have their turn, and so have no
// cause to probe where nothing is lost.
func TestSharedWindow(t *testing.T) {
	n := sim.New(1)
	n.Default.Delay = 50 * time.Microsecond
	ha, hb := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x1000})
	const count, each, size = 100, 4, 100 << 10
	key := ha.region(regionAt, make([]byte, size), allowAll).Key
	hb.region(regionAt, make([]byte, size), allowAll)
	c := defaultConnection()
	c.timeout = 14
	var ends []*end
	for range count {
		a, b := ha.qp(command.RC, QPConfig{}), hb.qp(command.RC, QPConfig{})
		connect(a, b, c)
		ends = append(ends, a)
	}
	packets, runs, last, asked := 0, 0, ib.QPN(0), true
	n.Filter = func(from, _ *sim.Port, b []byte) bool {
		if from != ha.port {
			return true
		}
		bth := ib.BTH(b[:ib.BTHLen])
		if packets++; bth.DestQP() != last {
			if !asked {
				t.Errorf("packet %d: another QP's turn, and nothing asks for the acknowledgement of the turn before", packets)
			}
			runs++
			last = bth.DestQP()
		}
		asked = bth.AckReq()
		return true
	}
	for _, a := range ends {
		for range each {
			a.doWith(ring.OpWrite, size, func(w *ring.SendWR) { w.SGE[0].LKey = key })
		}
	}
	n.Run(10*second, func() bool { return len(ha.comps) == count*each })
	if len(ha.comps) != count*each {
		t.Fatalf("%d of %d complete", len(ha.comps), count*each)
	}
	// A message of 100 packets is two turns of 60 and 40.
	if packets/runs < 30 {
		t.Errorf("%d packets in %d turns", packets, runs)
	}
	if p := ha.e.counters.Probes; p != 0 {
		t.Errorf("%d probes where nothing was lost", p)
	}
}

// TestFewShareWindow: where a few QPs share a window, they do not ask for an acknowledgement of each turn, and what waits
// unacknowledged without having asked for it is less than half of the window.
func TestFewShareWindow(t *testing.T) {
	n := sim.New(1)
	n.Default.Delay = 50 * time.Microsecond
	ha, hb := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x1000})
	const count, each, size = 4, 40, 64 << 10
	key := ha.region(regionAt, make([]byte, size), allowAll).Key
	hb.region(regionAt, make([]byte, size), allowAll)
	c := defaultConnection()
	c.timeout, c.mtu = 14, 1024
	ends := make([]*end, count)
	for i := range ends {
		ends[i] = ha.qp(command.RC, QPConfig{})
		connect(ends[i], hb.qp(command.RC, QPConfig{}), c)
	}
	win := ends[0].q.win
	packets, asked, most := 0, 0, 0
	silent := map[ib.QPN]int{}
	n.Filter = func(from, _ *sim.Port, b []byte) bool {
		if from != ha.port {
			return true
		}
		bth := ib.BTH(b[:ib.BTHLen])
		packets++
		if silent[bth.DestQP()]++; bth.AckReq() {
			asked++
			silent[bth.DestQP()] = 0
		}
		all := 0
		for qp, k := range silent {
			if qp != bth.DestQP() { // whose turn is not over yet
				all += k
			}
		}
		if win.size == win.most {
			most = max(most, all)
		}
		return true
	}
	for _, a := range ends {
		for range each {
			a.doWith(ring.OpWrite, size, func(w *ring.SendWR) { w.SGE[0].LKey = key })
		}
	}
	n.Run(10*second, func() bool { return len(ha.comps) == count*each })
	if len(ha.comps) != count*each {
		t.Fatalf("%d of %d complete", len(ha.comps), count*each)
	}
	if most == 0 || most > win.most/2 {
		t.Errorf("up to %d packets of the others wait without having asked, want some and no more than %d", most, win.most/2)
	}
	if asked*40 > packets {
		t.Errorf("%d of %d packets ask for an acknowledgement, want one in 40 at most", asked, packets)
	}
	if p := ha.e.counters.Probes; p != 0 {
		t.Errorf("%d probes where nothing was lost", p)
	}
}
