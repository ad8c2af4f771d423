package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
)

// Completed implements rdma.Programs: completions go to their CQ.
func (s services) Completed(now clock.Time, cq transport.CQRef, list []transport.Completion) {
	if q := s.a.cqs[cq]; q != nil {
		q.push(now, list)
	}
	for i := range list {
		if c := &list[i]; c.Status != ring.Success && c.Status != ring.WRFlush {
			s.a.broken(now, c.QPN)
		}
	}
}

// Raised implements rdma.Programs.
func (s services) Raised(now clock.Time, e *transport.Event) { s.a.event(now, e) }

// broken handles a QP one of whose requests failed: if that ended its connection, it tells the CM.
func (a *adapter) broken(now clock.Time, qpn uint32) {
	if q := a.byNumber[qpn]; q != nil && q.cm != nil && q.tq != nil && q.tq.State() == command.Err {
		q.cm.lost(now)
		a.function.Unsettle()
	}
}

// event passes on an asynchronous event of the engine.
func (a *adapter) event(now clock.Time, e *transport.Event) {
	q := a.byNumber[e.QPN]
	if q == nil || q.tq != e.QP {
		return
	}
	switch e.Type {
	case command.EventCommunicationEstablished:
		if q.cm != nil { // left to the CM if it moves the QP
			a.function.Unsettle()
			_ = a.cm.Established(now, q.cm.id)
			return
		}
	case command.EventQPFatal, command.EventQPRequestError, command.EventQPAccessError:
		if q.cm != nil {
			q.cm.lost(now)
			a.function.Unsettle()
		}
	}
	q.tell(e.Type)
}
