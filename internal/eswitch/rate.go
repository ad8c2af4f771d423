package eswitch

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/transport/congestion"
)

const (
	// burst is what a function may send at once at its rate, in bytes: a large send.
	burst = 64 << 10
	// leastPacket is what has to be allowed for a function to have its turn. One that sends more then pays for it later.
	leastPacket = 1514
	mostRate    = 1 << 31 // kbit/s
)

// Why a function has its turn.
const (
	guaranteed = iota // it is below its minimum
	extra             // nobody is who could send
	classes
)

// Rates decide which function sends next. None is faster than its maximum; while several want to send, those go first that are below
// their minimum, and what is left is shared equally, in bytes. The zero value is ready: without limits.
type Rates struct {
	functions [mostPorts]share
	virtual   [classes]uint64 // what those have had that were last
}

// share is what a function has had.
type share struct {
	least, most *congestion.Bucket // nil: none
	had         [classes]uint64    // bytes: who has had least is next
	turn        int                // why it has its turn
}

// Set sets the minimum and the maximum of a function in kbit/s; 0: none. The error is a *FieldError; nothing has changed then.
func (r *Rates) Set(now clock.Time, p Port, least, most uint32) error {
	switch {
	case int(p) >= mostPorts:
		return &FieldError{"port", int(p), "one that there can be"}
	case most > mostRate:
		return &FieldError{"maximum rate", most, "at most 2147483648 kbit/s"}
	case least > mostRate || most != 0 && least > most:
		return &FieldError{"minimum rate", least, "at most the maximum rate"}
	}
	f := &r.functions[p]
	f.least, f.most = bucket(now, least), bucket(now, most)
	return nil
}

func bucket(now clock.Time, kbps uint32) *congestion.Bucket {
	if kbps == 0 {
		return nil
	}
	return congestion.NewBucket(now, kbps, burst, congestion.MostCarried)
}

// Next returns which of the functions that want to send may, and false if none may before a time.
func (r *Rates) Next(now clock.Time, want *Set) (p Port, ok bool, at clock.Time) {
	at = clock.Never
	for i, word := range want {
		for ; word != 0; word &= word - 1 {
			q := Port(i<<6 + bits.TrailingZeros64(word))
			if t := r.wakes(now, &r.functions[q]); t > now {
				at = clock.Min(at, t)
				continue
			}
			if !ok || r.before(q, p) {
				p, ok = q, true
			}
		}
	}
	if ok {
		f := &r.functions[p]
		r.virtual[f.turn] = max(r.virtual[f.turn], f.had[f.turn])
	}
	return p, ok, at
}

// wakes returns when a function may send, and finds what its turn would be.
func (r *Rates) wakes(now clock.Time, f *share) clock.Time {
	if f.most != nil {
		if t := f.most.NextSend(now, leastPacket); t > now {
			return t
		}
	}
	if f.turn = extra; f.least != nil && f.least.NextSend(now, leastPacket) <= now {
		f.turn = guaranteed
	}
	// What it did not want or might not have it has not saved up, but for the length of a turn.
	if v := r.virtual[f.turn]; v > burst {
		f.had[f.turn] = max(f.had[f.turn], v-burst)
	}
	return now
}

// before reports whether q has its turn rather than p.
func (r *Rates) before(q, p Port) bool {
	a, b := &r.functions[q], &r.functions[p]
	if a.turn != b.turn {
		return a.turn == guaranteed
	}
	return a.had[a.turn] < b.had[b.turn]
}

// Room returns how many bytes the function may send that Next named, 1 at least. One that sends a larger packet waits longer after it.
func (r *Rates) Room(now clock.Time, p Port) int {
	if b := r.functions[p].most; b != nil {
		return min(b.Room(now), burst)
	}
	return burst
}

// Sent says how many bytes a function has sent in its turn. A turn above its minimum does not use the minimum up.
func (r *Rates) Sent(now clock.Time, p Port, bytes int) {
	f := &r.functions[p]
	f.had[f.turn] += uint64(bytes)
	if f.most != nil {
		f.most.Sent(now, bytes)
	}
	if f.turn == guaranteed && f.least != nil {
		f.least.Sent(now, bytes)
	}
}
