package port

import (
	"testing"

	"github.com/softvpi/softvpi/internal/eswitch"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// spoofing are two virtual functions, one of which sends frames of 1500 bytes to the other, and a third that sends some of 60 bytes with
// another's address. Both always have more to send.
type spoofing struct {
	*hive
	red, blue, bad *bee
	good, spoofed  frame.In
	out            [32]frame.Out
}

func newSpoofing(t *testing.T) *spoofing {
	h := newHive(t, eswitch.Config{})
	x := &spoofing{hive: h, red: h.add(eswitch.VF(0), 10, 0, nil), blue: h.add(eswitch.VF(1), 11, 0, nil),
		bad: h.add(eswitch.VF(2), 12, 0, nil)}
	x.good = frame.In{Data: x.red.from(x.blue.mac, 0, eth.TypeIPv4, make([]byte, 1426)...)}
	x.spoofed = frame.In{Data: x.red.from(x.blue.mac, 0, eth.TypeIPv4)[:60]} // which bad sends
	return x
}

// turn carries n frames of the first, or more.
func (x *spoofing) turn(n int, spoofs bool) {
	fill := func(b *bee, f frame.In) {
		for len(b.send) < 2*len(x.out) {
			b.send = append(b.send, f)
		}
	}
	x.bad.send = x.bad.send[:0]
	for x.blue.in = x.blue.in[:0]; len(x.blue.in) < n; {
		if fill(x.red, x.good); spoofs {
			fill(x.bad, x.spoofed)
		}
		x.p.Transmit(0, x.out[:])
		x.p.Advance(0)
	}
}

// refused returns how many spoofed frames were refused.
func (x *spoofing) refused() uint64 { return x.sw.Counters(eswitch.VF(2)).Dropped[eswitch.SourceMAC] }

// TestSpoofed_Turns: who has spoofed frames to send, as many as it can, gets few turns beside others, and all that it wants alone.
func TestSpoofed_Turns(t *testing.T) {
	x := newSpoofing(t)
	x.turn(10_000, true)
	if n := x.refused(); n == 0 || n > 2000 {
		t.Errorf("%d spoofed frames have their turn beside 10,000 others", n)
	}
	before := x.refused()
	x.red.send, x.bad.send = nil, nil
	for range 100 {
		x.bad.send = append(x.bad.send, x.spoofed)
	}
	for x.p.Transmit(0, x.out[:]) > 0 {
	}
	if n := x.refused() - before; n != 100 {
		t.Errorf("%d of 100 spoofed frames have their turn alone", n)
	}
	x.turn(100, false) // and who comes back has not lost its turns
	x.red.send = nil
	x.bad.send = []frame.In{{Data: x.bad.from(x.blue.mac, 0, eth.TypeIPv4)}}
	x.blue.in = nil
	for x.p.Transmit(0, x.out[:]) > 0 {
	}
	if x.p.Advance(0); len(x.blue.in) != 1 {
		t.Error("a frame of its own does not arrive")
	}
}

// BenchmarkSpoofed: what frames of 1500 bytes from one virtual function to another take while a third spoofs as fast as it can, next to
// what they take alone. What reading frames from their hosts costs is not in it.
func BenchmarkSpoofed(b *testing.B) {
	const frames = 2048
	x := newSpoofing(&testing.T{})
	paired(b, func() { x.turn(frames, false) }, func() { x.turn(frames, true) })
	b.ReportMetric(float64(x.refused())/float64((b.N+1)*frames), "spoofed/frame")
}
