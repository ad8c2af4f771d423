package ndperf

import (
	"fmt"
	"io"
	"time"
)

// progress is a line on a terminal that shows how a long run proceeds. A nil progress shows nothing.
type progress struct {
	w     io.Writer
	name  string
	next  time.Time
	shown bool
	calls int
}

const (
	progressAfter = 2 * time.Second
	progressEvery = time.Second
	progressCalls = 256 // calls between two looks at the clock
)

// due reports whether to write the line now.
func (p *progress) due(start time.Time) bool {
	if p == nil {
		return false
	}
	if p.calls++; p.calls%progressCalls != 0 {
		return false
	}
	now := time.Now()
	if p.next.Before(start) {
		p.next = start.Add(progressAfter)
	}
	if now.Before(p.next) {
		return false
	}
	p.next = now.Add(progressEvery)
	p.shown = true
	return true
}

func (p *progress) bandwidth(bytes int, done int64, start time.Time) bool {
	if !p.due(start) {
		return false
	}
	r := newRow(1, bytes, done, time.Since(start), 0)
	fmt.Fprintf(p.w, "\r%s: %d bytes, %.0f s, %d messages, %.2f Gb/s\x1b[K", p.name, bytes, r.Seconds, done, r.Gbps)
	return true
}

func (p *progress) latency(bytes int, h *histogram, start time.Time) bool {
	if !p.due(start) {
		return false
	}
	fmt.Fprintf(p.w, "\r%s: %d bytes, %.0f s, %d messages, typical %.2f us\x1b[K", p.name, bytes, time.Since(start).Seconds(), h.n,
		h.percentile(50)/1000)
	return true
}

// erase removes the line.
func (p *progress) erase() {
	if p != nil && p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown, p.next = false, time.Time{}
	}
}
