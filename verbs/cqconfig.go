package verbs

import (
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/os/monotonic"
)

// CQConfig describes a completion queue.
type CQConfig struct {
	Depth int // completions that it holds at least
	// Timestamps has WC.Timestamp say when a completion was made. Without it nobody reads a clock for the queue's
	// completions, and the field means nothing.
	Timestamps bool
}

func (c *CQConfig) flags() (f uint32) {
	if c.Timestamps {
		f |= command.CQTimestamps
	}
	return f
}

// zero returns the system's clock when that of the timestamps was 0; for a queue without them 0.
func (d *Device) zero(c CQConfig) (uint64, error) {
	if !c.Timestamps {
		return 0, nil
	}
	k, err := d.host.backend.Clock(d.host.ctx)
	return k.Zero, err
}

// maxBehind is how much earlier than the one before it a timestamp is taken for that of a peer that read its clock and then
// came second. A difference that is larger is no such accident, and is left as it is.
const maxBehind = uint64(time.Second)

// order sees that timestamps do not go back from one completion to the next.
func (cq *CQ) order(wcs []WC) {
	for i := range wcs {
		if cq.made-wcs[i].Timestamp <= maxBehind {
			wcs[i].Timestamp = cq.made
		}
		cq.made = wcs[i].Timestamp
	}
}

// Time converts a timestamp of the queue's completions. The result has a reading of the monotonic clock, as those of
// time.Now have, so that differences to them are exact. It is the zero time if the queue has no timestamps.
func (cq *CQ) Time(timestamp uint64) time.Time {
	if cq.zero == 0 {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(-time.Duration(monotonic.At(now) - cq.zero - timestamp)) // of one reading, however late the thread is in between
}
