package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/transport"
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
		a.engine.Attend(a.attendance(now))
		n := a.engine.Transmit(now, a.out)
		if n == 0 {
			return worked || pending
		}
		worked, a.left = true, true
		a.quiet = 0 // there will be answers
		a.sent, a.queued = 0, n
		a.links.Seal(a.out[:a.queued])
		if a.ib != nil {
			a.echo(now, a.out[:a.queued])
		}
		if !a.flush(now) || n < transmitBatch && !a.engine.Pending() {
			return true
		}
	}
	return worked
}

// attendance is how the program that takes the engine's completions is doing.
func (a *adapter) attendance(now clock.Time) transport.Attendance {
	switch {
	case a.host.inline:
		return transport.Driven
	case now.Sub(a.host.drove) < pollingTime:
		return transport.Polled
	}
	return transport.Unattended
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
		p, n := a.links.Run(a.out[a.sent:a.queued])
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
