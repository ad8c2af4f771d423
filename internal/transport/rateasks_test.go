package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestRate_AsksOnceInHalfARoundTrip: what leaves at a rate asks for an acknowledgement when half of a round trip has passed since it last
// did, so that one covers several packets of a high rate, and each of a low one has its own.
func TestRate_AsksOnceInHalfARoundTrip(t *testing.T) {
	const rtt = 10 * time.Microsecond
	for _, c := range []struct {
		mbps  float64
		each  bool
		least time.Duration
	}{
		{10_000, false, rtt / 2},
		{100, true, 0},
	} {
		f := controlled(t, 64<<10, ring.OpWrite, everything(c.mbps))
		f.now = 1000
		f.a.e.Receive(f.now, []frame.In{notice(f.a)})
		f.a.post(f.wr)
		asked, packets, last := 0, 0, clock.Time(0)
		for f.a.e.Completions(f.comps[:]) == 0 {
			f.a.q.win.rtt = rtt
			n := f.a.turn(f.now, f.w.out)
			for i := range f.w.out[:n] {
				packets++
				if !ib.BTH(f.w.out[i].Head[frame.HeadRoom:]).AckReq() {
					continue
				}
				if passed := f.now.Sub(last); asked > 0 && packets < 64 && (passed < c.least || passed > rtt/2+200*time.Microsecond) {
					t.Errorf("%v Mbit/s: packet %d asks %v after the one before", c.mbps, packets, passed)
				}
				asked, last = asked+1, f.now
			}
			f.w.deliver(f.now, n, f.b.host)
			f.w.carry(f.now, f.b.host, f.a.host)
			if due := f.a.e.Deadline(); due != clock.Never {
				f.now = max(f.now, due)
			}
			f.a.e.Advance(f.now)
			f.b.e.Advance(f.now)
		}
		if packets != 64 || c.each != (asked >= packets-1) || asked < 5 {
			t.Errorf("%v Mbit/s: %d of %d packets ask", c.mbps, asked, packets)
		}
	}
}
