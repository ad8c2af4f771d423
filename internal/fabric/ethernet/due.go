package ethernet

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
)

// due is when each of some ports wants its turn: a tree whose nodes are the earlier of the two below them.
type due struct{ at []clock.Time }

// newDue returns the moments of n ports, which want none so far.
func newDue(n int) due {
	d := due{make([]clock.Time, 2<<bits.Len(uint(max(n, 1)-1)))}
	for i := range d.at {
		d.at[i] = clock.Never
	}
	return d
}

// set sets that of port i.
func (d *due) set(i int, at clock.Time) {
	i += len(d.at) / 2
	for d.at[i] != at {
		d.at[i] = at
		if i == 1 {
			return
		}
		at = clock.Min(at, d.at[i^1])
		i /= 2
	}
}

// get returns that of port i.
func (d *due) get(i int) clock.Time { return d.at[i+len(d.at)/2] }

// first returns the earliest moment.
func (d *due) first() clock.Time { return d.at[1] }

// next returns the port with the earliest moment, the one with the lowest number of several.
func (d *due) next() int {
	i := 1
	for i < len(d.at)/2 {
		i *= 2
		if d.at[i] > d.at[i/2] {
			i++
		}
	}
	return i - len(d.at)/2
}
