package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
)

// localBudget is how many bytes the local path moves in one Transmit.
const localBudget = 1 << 20

// Join puts two connected queue pairs on the local path: from now on messages
// move from region to region, whole, without packets. Both must be of one
// service (RC or UC), connected to each other, in RTS, and on engines of one
// loop; with a packet or answer under way the error is ErrNotIdle. PSNs and MSNs
// advance as on the wire, so that Split can hand over at any time.
func (e *Engine) Join(now clock.Time, a, b *QP) error {
	return command.Errorf(command.Unsupported, "local path")
}

// Split takes a QP and its peer back to the wire, at a message boundary. It does
// nothing for a QP that is not on the local path.
func (e *Engine) Split(now clock.Time, a *QP) {}

func (q *QP) moveLocal(now clock.Time) (used int, more bool) { return 0, false }
