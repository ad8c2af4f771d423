package port

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/wakeup"
	"github.com/softvpi/softvpi/wire/eth"
)

// paired reports how many times as long as one thing another takes: the median of the ratios of two turns each, in random order, with the
// interval in which it lies with 95 % (that of the sign test, by its normal approximation), so that other work disturbs both alike.
func paired(b *testing.B, one, other func()) {
	timed := func(turn func()) float64 {
		begun := time.Now()
		turn()
		return float64(time.Since(begun))
	}
	timed(one)
	timed(other)
	var ratios []float64
	for b.Loop() {
		var x, y float64
		if rand.IntN(2) == 0 {
			x, y = timed(one), timed(other)
		} else {
			y, x = timed(other), timed(one)
		}
		ratios = append(ratios, y/x)
	}
	slices.Sort(ratios)
	n := float64(len(ratios))
	at := func(x float64) float64 { return ratios[int(min(max(x, 0), n-1))] }
	b.ReportMetric(at(n/2), "times")
	b.ReportMetric(at(n/2-0.98*math.Sqrt(n)), "times-low")
	b.ReportMetric(at(n/2+0.98*math.Sqrt(n)), "times-high")
}

// talk are two virtual functions of which one sends packets to the other.
type talk struct {
	p        Port
	w        Wire
	from, to *drowsy
	routes   []*frame.Route
	out      [32]frame.Out
}

// newTalk returns them at a port with a switch, where others are that do nothing, each with RDMA and a network interface.
func newTalk(b *testing.B, embed bool, idle int) *talk {
	x, t := &talk{}, &testing.T{}
	sw := eswitch.New(eswitch.Config{})
	add := func(i int) *drowsy {
		s := &drowsy{station: *stationOn(t, &Port{}, &Wire{}, byte(i+1), 0)}
		s.s = x.p.Attach(s, Station{MAC: s.s.MAC})
		s.s.Plug(&x.w, netip.Addr{}, s.e)
		if embed {
			s.s.At = eswitch.VF(i)
			if err := sw.Set(eswitch.VF(i), eswitch.Function{MACs: []eth.MAC{s.s.MAC}, VLAN: eswitch.VLAN{Untagged: true}}); err != nil {
				b.Fatal(err)
			}
		}
		return s
	}
	x.from, x.to = add(0), add(1)
	for i := range idle {
		s := add(i + 2)
		f := &sleeper{queues: queues{due: clock.Never}}
		x.p.Attach(f, Station{MAC: s.s.MAC, At: s.s.At, Kind: Ethernet}).Plug(&x.w, netip.Addr{}, nil)
	}
	if embed {
		x.w.Embed(sw)
	}
	x.routes = many(len(x.out), x.from.to(&x.to.station))
	return x
}

// drowsy is a station whose function is a Sleeper.
type drowsy struct {
	station
	bell *wakeup.Bell
}

func (x *drowsy) SetBell(b *wakeup.Bell) { x.bell = b }
func (x *drowsy) Rests() bool            { return x.Pending() == 0 }

// turn sends packets a hundred times.
func (x *talk) turn() {
	for range 100 {
		x.from.out[0] = x.routes
		x.from.bell.Ring()
		x.p.Transmit(0, x.out[:])
		x.p.Advance(0)
		x.to.got = x.to.got[:0]
	}
}

// BenchmarkPaired: what RDMA packets of one function at a port to another take with the embedded switch next to without it, and with 125
// functions more that are idle next to none.
func BenchmarkPaired(b *testing.B) {
	plain, embedded, crowded := newTalk(b, false, 0), newTalk(b, true, 0), newTalk(b, true, 125)
	b.Run("embedded", func(b *testing.B) { paired(b, plain.turn, embedded.turn) })
	b.Run("127 functions", func(b *testing.B) { paired(b, embedded.turn, crowded.turn) })
}
