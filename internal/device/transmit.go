package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// transmit passes the engine's packets to the links, in order. What a link does not accept waits for the
// next turn, and so does the engine.
func (a *adapter) transmit(now clock.Time) bool {
	worked := false
	for range transmitRounds {
		if left := a.sent; a.blocked() && !a.flush(now) {
			// A link that accepts nothing is no work: whoever makes room may need this processor.
			return worked || a.sent > left
		}
		pending := a.engine.Pending() // messages on the local path move without a frame
		n := a.unkeep(now, a.engine.Transmit(now, a.out[:transmitBatch]))
		if n == 0 {
			return worked || pending
		}
		worked, a.left = true, true
		a.quiet = 0 // there will be answers
		a.sent, a.queued = 0, n
		a.answerFirst(now)
		a.keepBack(now)
		a.panel.Seal(a.out[:a.queued])
		if a.ib != nil {
			a.echo(now, a.out[:a.queued])
		}
		if !a.flush(now) || n < transmitBatch && !a.engine.Pending() {
			return true
		}
	}
	return worked
}

// answerFirst lets the single request of a small batch overtake the acknowledgement before it if the
// program that answered is polling: the peer's program waits for the request, but only its QP for the
// acknowledgement. Their PSNs belong to different directions (IBA 9.7.1). Otherwise the order stays as
// hardware adapters have it: some verbs programs, such as perftest's ib_send_lat -e, rely on the
// completion of a send coming before that of its answer.
func (a *adapter) answerFirst(now clock.Time) {
	if a.queued != 2 || now.Sub(a.host.drove) >= pollingTime {
		return
	}
	first, second := ib.BTH(a.out[0].Head[frame.HeadRoom:]).Opcode(), ib.BTH(a.out[1].Head[frame.HeadRoom:]).Opcode()
	if first == ib.RCAcknowledge && second <= ib.RCWriteOnlyImmediate {
		a.out[0], a.out[1] = a.out[1], a.out[0]
	}
}

// part sends the acknowledgements of QPs that have ended while their routes still have sockets.
func (a *adapter) part() {
	if a.engine.Parting() {
		a.transmit(a.host.now())
	}
}

// flush sends queued frames; false: a link is full.
func (a *adapter) flush(now clock.Time) bool {
	for a.sent < a.queued {
		p, n := a.panel.Run(a.out[a.sent:a.queued])
		to := a.sent + n
		if p == nil || p.Link == nil { // the address is gone: treat them as lost in the network
			a.sent = to
			continue
		}
		n, err := p.Send(a.out[a.sent:to])
		a.sent += n
		if err != nil {
			p.Failed(err)
		}
		if a.sent < to {
			a.retry = now.Add(retryInterval)
			return false
		}
	}
	return true
}
