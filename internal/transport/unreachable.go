package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link"
)

// Unreachable counts an ICMP error. It only says that packets to the destination were lost: anybody can
// send one, and the peer may be about to start. So it ends nothing and hurries nothing; the ACK timers and
// retry counters decide.
func (e *Engine) Unreachable(now clock.Time, u link.Unreachable) {
	e.now = now
	e.counters.Unreachable++
}
