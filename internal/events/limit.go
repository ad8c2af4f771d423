package events

import (
	"cmp"
	"slices"
	"time"
)

// limiter counts events that occur too often instead of letting them fill the log.
type limiter struct {
	burst  int
	window time.Duration
	counts map[repeatKey]*count
}

// repeatKey identifies repeated events; their other fields do not matter.
type repeatKey struct {
	source  string
	id      uint32
	adapter string
}

type count struct {
	began             time.Time
	written, heldBack uint64
}

// repeats says how often an event was suppressed.
type repeats struct {
	key  repeatKey
	held uint64
}

// admit reports whether an event is to be written.
func (l *limiter) admit(k repeatKey, now time.Time) bool {
	c := l.counts[k]
	if c == nil {
		if l.counts == nil {
			l.counts = map[repeatKey]*count{}
		}
		c = &count{began: now}
		l.counts[k] = c
	}
	if c.written < uint64(l.burst) {
		c.written++
		return true
	}
	c.heldBack++
	return false
}

// expired drops the windows that are over, and returns what was suppressed in them.
func (l *limiter) expired(now time.Time) []repeats {
	return l.take(func(c *count) bool { return now.Sub(c.began) >= l.window || now.Before(c.began) })
}

// all drops every window.
func (l *limiter) all() []repeats { return l.take(func(*count) bool { return true }) }

func (l *limiter) take(which func(*count) bool) (out []repeats) {
	for k, c := range l.counts {
		if !which(c) {
			continue
		}
		if c.heldBack > 0 {
			out = append(out, repeats{k, c.heldBack})
		}
		delete(l.counts, k)
	}
	slices.SortFunc(out, func(a, b repeats) int {
		return cmp.Or(cmp.Compare(a.key.source, b.key.source), cmp.Compare(a.key.id, b.key.id), cmp.Compare(a.key.adapter, b.key.adapter))
	})
	return out
}
