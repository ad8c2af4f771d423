package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
	"github.com/softvpi/softvpi/wire/ib"
)

// sharers are QPs of one host that share a window, each connected with a QP of one other host.
type sharers struct {
	net  *sim.Network
	host *host
	ends []*end
	key  uint32
	size int // bytes of a message
}

func newSharers(t *testing.T, count, size int, c connection) *sharers {
	n := sim.New(1)
	n.Default.Delay = 50 * time.Microsecond
	ha, hb := newHost(t, n, "10.0.0.1", Config{}), newHost(t, n, "10.0.0.2", Config{FirstQPN: 0x1000})
	s := &sharers{net: n, host: ha, size: size, key: ha.region(regionAt, make([]byte, size), allowAll).Key}
	hb.region(regionAt, make([]byte, size), allowAll)
	for range count {
		a := ha.qp(command.RC, QPConfig{})
		connect(a, hb.qp(command.RC, QPConfig{}), c)
		s.ends = append(s.ends, a)
	}
	return s
}

// write has each QP write the given number of messages and calls see for each packet that the host sends.
func (s *sharers) write(t *testing.T, each int, see func(ib.BTH)) {
	t.Helper()
	s.net.Filter = func(from, _ *sim.Port, b []byte) bool {
		if from == s.host.port {
			see(ib.BTH(b[:ib.BTHLen]))
		}
		return true
	}
	for _, a := range s.ends {
		for range each {
			a.doWith(ring.OpWrite, s.size, func(w *ring.SendWR) { w.SGE[0].LKey = s.key })
		}
	}
	all := len(s.ends) * each
	s.net.Run(10*second, func() bool { return len(s.host.comps) == all })
	if len(s.host.comps) != all {
		t.Fatalf("%d of %d complete", len(s.host.comps), all)
	}
}

// TestSharedWindow: 100 QPs that share a window send long bursts, not a few packets each, ask for an acknowledgement
// at the end of each burst, and send no probes where nothing is lost.
func TestSharedWindow(t *testing.T) {
	c := defaultConnection()
	c.timeout = 14
	s := newSharers(t, 100, 100<<10, c)
	packets, runs, last, asked := 0, 0, ib.QPN(0), true
	s.write(t, 4, func(bth ib.BTH) {
		if packets++; bth.DestQP() != last {
			if !asked {
				t.Errorf("packet %d: the turn of another QP begins, but the last one's end did not ask for an acknowledgement", packets)
			}
			runs++
			last = bth.DestQP()
		}
		asked = bth.AckReq()
	})
	// A message of 100 packets takes two turns, of 64 and 36 packets.
	if packets/runs < 30 {
		t.Errorf("%d packets in %d turns, want 30 or more a turn", packets, runs)
	}
	if p := s.host.e.counters.Probes; p != 0 {
		t.Errorf("%d probes where nothing was lost", p)
	}
}

// TestFewShareWindow: a few QPs that share a window do not ask for an acknowledgement of each turn, and the packets
// for which none has been asked stay below half of the window.
func TestFewShareWindow(t *testing.T) {
	c := defaultConnection()
	c.timeout, c.mtu = 14, 1024
	s := newSharers(t, 3, 100<<10, c)
	win := s.ends[0].q.win
	packets, asked, most := 0, 0, 0
	silent := map[ib.QPN]int{}
	s.write(t, 40, func(bth ib.BTH) {
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
	})
	if most == 0 || most > win.most/2 {
		t.Errorf("up to %d packets of the others wait without having asked, want some and no more than %d", most, win.most/2)
	}
	if asked*40 > packets {
		t.Errorf("%d of %d packets ask for an acknowledgement, want one in 40 at most", asked, packets)
	}
	if p := s.host.e.counters.Probes; p != 0 {
		t.Errorf("%d probes where nothing was lost", p)
	}
}

// TestWholeTurns: a message that fits into a turn is sent whole, whatever was sent before it and however many QPs
// share the window, and asks for one acknowledgement.
func TestWholeTurns(t *testing.T) {
	c := defaultConnection()
	c.timeout, c.mtu = 14, 1024
	for _, size := range []int{64 << 10, 40 << 10} {
		s := newSharers(t, 4, size, c)
		win := s.ends[0].q.win
		win.grow(128, 128)
		run, runs, asked, last := 0, 0, 0, ib.QPN(0)
		s.write(t, 20, func(bth ib.BTH) {
			if last != 0 && last != bth.DestQP() {
				if runs++; run%(size>>10) != 0 {
					t.Errorf("%d KB: turn %d has %d packets, want whole messages", size>>10, runs, run)
				}
				run = 0
			}
			if last = bth.DestQP(); bth.AckReq() {
				asked++
			}
			run++
		})
		if runs < 4 || asked > 4*20 {
			t.Errorf("%d KB: %d turns, %d acknowledgements asked for, want no more than %d", size>>10, runs, asked, 4*20)
		}
	}
}
