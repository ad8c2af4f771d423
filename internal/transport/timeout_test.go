package transport

import (
	"testing"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
)

// TestAckTimeoutOutlastsPauses: the first time-out takes the attribute's value, and none more than four times that
// (IBA 9.9.2.1.1). With a short value seven retries outlast more than a second of silence; a long value is not
// lengthened.
func TestAckTimeoutOutlastsPauses(t *testing.T) {
	_, a, b := newPair(t, 1, command.RC)
	connect(a, b, defaultConnection())
	for _, c := range []struct {
		code        uint8
		most, least time.Duration // of eight time-outs
	}{
		{8, 27 * ib.AckTimeout(8), 27 * ib.AckTimeout(8)},
		{14, 1800 * time.Millisecond, 1600 * time.Millisecond},
		{18, 8 * ib.AckTimeout(18), 8 * ib.AckTimeout(18)},
	} {
		a.q.attr.Timeout = c.code
		all, one := time.Duration(0), ib.AckTimeout(c.code)
		for n := range uint8(8) {
			a.q.req.timeouts = n
			d := a.q.ackTimeout()
			if n == 0 && d != one || d < one || d > 4*one {
				t.Errorf("code %d, time-out %d takes %v, which is not 1 to 4 times %v", c.code, n, d, one)
			}
			all += d
		}
		if all < c.least || all > c.most {
			t.Errorf("code %d: all take %v, want %v to %v", c.code, all, c.least, c.most)
		}
	}
}
