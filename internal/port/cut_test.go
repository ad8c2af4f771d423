package port

import (
	"testing"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/eth"
)

// TestCut: a station that is cut off is asked for packets, and they are lost, to another station of its port too; what arrives for
// it is lost. The others at its port are not concerned, and it works as before when it is no longer cut off.
func TestCut(t *testing.T) {
	var p Port
	w := &Wire{}
	mac := func(last byte) eth.MAC { return eth.MAC{2, 0, 0, 0, 0, last} }
	a, at := cardOn(&p, w, Station{MAC: mac(1)})
	b, _ := cardOn(&p, w, Station{MAC: mac(2)})
	var out [4]frame.Out
	// round sends a frame of a to b, one of a's away, and one that arrives for each of them; it returns how many left by the wire.
	round := func() (left int) {
		a.send = []frame.In{{Data: ethernetTo(mac(2), 0, 46)}, {Data: ethernetTo(mac(3), 0, 46)}}
		for rest := out[:p.Transmit(0, out[:])]; len(rest) > 0; {
			to, n := p.Run(rest)
			if to != nil && !rest[0].Inside {
				left += n
			}
			rest = rest[n:]
		}
		p.Advance(0)
		for _, last := range []byte{1, 2} {
			p.Receive(0, w, []frame.In{{Data: ethernetTo(mac(last), 0, 46), Raw: true}})
		}
		return left
	}
	for _, off := range []bool{false, true, false} {
		a.in, b.in = nil, nil
		at.Cut(off)
		left, wantA, wantB, wantLeft := round(), 1, 2, 1
		if off {
			wantA, wantB, wantLeft = 0, 1, 0
		}
		if left != wantLeft || len(a.in) != wantA || len(b.in) != wantB || len(a.send) != 0 {
			t.Errorf("cut off %t: %d frames leave, %d and %d arrive, %d wait", off, left, len(a.in), len(b.in), len(a.send))
		}
	}
	if c := p.Counters(); c.Dark != 3 || c.Turned != 2 {
		t.Errorf("%+v", *c)
	}
}
