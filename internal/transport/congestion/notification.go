package congestion

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// congestionExperienced is the ECN field of a packet that a switch has marked (RFC 3168).
const congestionExperienced = 3

// Capable is the ECN field of packets that switches may mark, ECT(0) (RFC 3168).
const Capable = 2

// Marked reports whether a switch has marked a packet with this traffic class.
func Marked(class uint8) bool { return class&congestionExperienced == congestionExperienced }

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
