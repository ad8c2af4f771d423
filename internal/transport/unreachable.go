package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link"
)

// Unreachable takes an ICMP error. It says that packets to the destination were
// lost, no more: anybody can send one, and the peer may be about to start. So it
// ends nothing; the retry counters do that. It takes the ACK timers of the
// affected QP as expired where the quoted packet names the QP.
func (e *Engine) Unreachable(now clock.Time, u link.Unreachable) {
	e.now = now
	e.counters.Unreachable++
}
