package wait

import "time"

// Backoff is a series of pauses, each twice as long as the one before up to Most, between questions to somebody who
// gives no sign.
type Backoff struct {
	// First and Most are the first pause and the longest one.
	First, Most time.Duration
	last        time.Duration
}

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.First), b.Most)
	return b.last
}
