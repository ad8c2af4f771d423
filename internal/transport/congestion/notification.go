package congestion

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// NotificationPoint says when a queue pair answers marked packets (DCQCN). The zero value is one that has answered none.
type NotificationPoint struct {
	next clock.Time
}

// Answer reports whether a marked packet that has arrived is answered: at most one in every interval is.
func (p *NotificationPoint) Answer(now clock.Time, interval time.Duration) bool {
	if now < p.next {
		return false
	}
	p.next = now.Add(interval)
	return true
}
