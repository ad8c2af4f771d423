package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/sim"
)

// announced tells its engine of packets before it receives them, in all steps, and of packets that never come.
type announced struct {
	sim.Engine
	e   *Engine
	qpn uint32
}

func (x *announced) Receive(now clock.Time, in []frame.In) {
	for i := range in {
		x.announce(in[i].Data)
	}
	x.lie()
	x.Engine.Receive(now, in)
	x.lie()
}

func (x *announced) announce(packet []byte) {
	for step := range 8 {
		x.e.Prefetch(step, packet)
	}
}

// lie announces packets of all kinds, cut off anywhere, to the queue pair and to others.
func (x *announced) lie() {
	for _, op := range []byte{0x04, 0x06, 0x0a, 0x0d, 0x11, 0x64, 0xff} {
		for _, number := range []uint32{0, 1, x.qpn, 0xffffff} {
			packet := make([]byte, 64)
			packet[0], packet[5], packet[6], packet[7] = op, byte(number>>16), byte(number>>8), byte(number)
			for n := range packet {
				x.announce(packet[:n])
			}
		}
	}
}

// TestPrefetch_ChangesNothing: prefetching takes any packet, also one that is cut off or for nobody, at an engine in any
// state, and traffic is the same with it.
func TestPrefetch_ChangesNothing(t *testing.T) {
	run := func(announce bool) (comps [2][]Completion, counters [2]Counters) {
		n, a, b := newPair(t, 1, command.RC)
		n.Default.Loss = 0.05
		ends := [2]*end{a, b}
		for _, x := range ends {
			if y := (&announced{Engine: x.port.Engine, e: x.e, qpn: x.q.num}); announce {
				y.lie() // in Reset
				x.port.Engine = y
			}
		}
		connect(a, b, defaultConnection())
		for i, x := range ends {
			x.region(regionAt, pattern(regionSize, byte(i)), allowAll)
			for range 20 {
				x.do(ring.OpWrite, 3000)
				x.do(ring.OpRead, 3000)
			}
		}
		n.Pass(time.Second)
		for i, x := range ends {
			comps[i], counters[i] = x.comps, x.e.counters
		}
		return comps, counters
	}
	comps, counters := run(false)
	others, also := run(true)
	if counters != also {
		t.Errorf("counters differ: %+v and %+v", counters, also)
	}
	for i := range comps {
		if len(comps[i]) != 40 || len(others[i]) != 40 {
			t.Fatalf("%d and %d of 40 requests are complete", len(comps[i]), len(others[i]))
		}
		for k := range comps[i] {
			if comps[i][k] != others[i][k] || comps[i][k].Status != ring.Success {
				t.Errorf("completion %d differs: %+v and %+v", k, comps[i][k], others[i][k])
			}
		}
	}
}
