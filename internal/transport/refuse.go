package transport

import (
	"errors"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/memory"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/wire/ib"
)

// refuse ends the QP because of a request that cannot be carried out: a NAK to the requester, an error
// completion of the receive in use, an event (IBA 9.9.3, 11.6.3.2). It returns false for the callers'
// convenience.
func (q *QP) refuse(syndrome ib.Syndrome) bool {
	c := &q.eng.counters
	event, status := command.EventQPRequestError, ring.RemoteInvalidRequest
	switch syndrome {
	case ib.NAKInvalidRequest:
		c.ResponderInvalidRequestErrors++
	case ib.NAKRemoteAccess:
		c.ResponderRemoteAccessErrors++
		event, status = command.EventQPAccessError, ring.LocalAccess
	case ib.NAKRemoteOperational:
		c.ResponderRemoteOperationErrs++
		event, status = command.EventQPFatal, ring.LocalQPOperation
	}
	q.endReceive(status)
	q.owe(syndrome)
	q.fatal(event)
	return false
}

// refusal returns the NAK for an error of the memory.
func refusal(err error) ib.Syndrome {
	if errors.Is(err, memory.ErrAlign) {
		return ib.NAKInvalidRequest
	}
	return ib.NAKRemoteOperational
}
