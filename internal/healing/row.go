package healing

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// Restarts in a row: after mostRestarts of them, each less than calm after the one before, another one would not help either. What breaks
// at once again would do so for ever.
const (
	mostRestarts = 5
	calm         = time.Minute
)

// Row counts restarts of one thing for one reason. The zero value has none.
type Row struct {
	n    int
	last clock.Time // the last of them
}

// Next notes that there is a reason to restart now, and reports whether that may help: false after mostRestarts in a row.
func (r *Row) Next(now clock.Time) bool {
	if r.n == 0 || now.Sub(r.last) >= calm {
		r.n = 0
	}
	r.last = now
	r.n++
	return r.n <= mostRestarts
}
