package device

import "github.com/softvpi/softvpi/internal/clock"

// prepareTurn does what an adapter does in a turn of its port before its function. It reports whether there was anything.
func (a *adapter) prepareTurn(now clock.Time) bool {
	a.function.Drive(a.host.driver.program())
	return a.ib != nil && a.followPort(now)
}

// finishTurn does what an adapter does in a turn of its port after its function has sent. It reports whether there was
// anything to do in the turn.
func (a *adapter) finishTurn(now clock.Time) bool {
	if a.engine.Undelivered() || a.function.Unsettled() {
		a.function.Complete(now)
	}
	if len(a.joining) > 0 && now >= a.joinDue {
		a.joinAgain(now)
	}
	return a.function.Worked()
}

// idle reports whether a turn in which nothing arrived has nothing else to do for this adapter.
func (a *adapter) idle(now clock.Time) bool {
	return a.ib == nil && len(a.gathering) == 0 && len(a.joining) == 0 && a.function.Idle(now)
}

// deadline returns when the loop must next run for this adapter, beside its function.
func (a *adapter) deadline() clock.Time {
	due := clock.Never
	if a.ib != nil {
		due = a.ib.Deadline()
	}
	if len(a.gathering) > 0 {
		due = clock.Min(due, a.gatherDue)
	}
	if len(a.joining) > 0 {
		due = clock.Min(due, a.joinDue)
	}
	return due
}

// transmit sends what the function has at once, held or not.
func (a *adapter) transmit(now clock.Time) bool {
	a.function.Release()
	a.function.Drive(a.host.driver.program())
	return a.port.transmit(now)
}

// part sends the acknowledgements of QPs that have ended while their routes still have sockets.
func (a *adapter) part() {
	if a.engine.Parting() != 0 {
		a.transmit(a.host.now())
	}
}
