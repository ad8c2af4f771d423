package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ring"
	"github.com/softvpi/softvpi/internal/transport"
)

// complete writes completions to their CQs and reports events to programs.
func (a *adapter) complete(now clock.Time) bool {
	worked := a.drainCompletions(now)
	for a.passEvents(now) {
		worked = true
	}
	if a.unsettled { // the CM has something to say about connections that broke
		a.unsettled = false
		a.gsi.Flush(now)
		a.drainCompletions(now)
	}
	return worked
}

// drainCompletions moves the engine's completions out, up to a limit: by posting to a QP in error a
// hostile program could generate them forever.
func (a *adapter) drainCompletions(now clock.Time) bool {
	for round := range completeRounds {
		n := a.engine.Completions(a.completions)
		for all := a.completions[:n]; len(all) > 0; {
			k := 1
			for k < len(all) && all[k].CQ == all[0].CQ {
				k++
			}
			if q := a.cqs[all[0].CQ]; q != nil {
				q.push(now, all[:k])
			}
			for i := range all[:k] {
				if c := &all[i]; c.Status != ring.Success && c.Status != ring.WRFlush {
					a.broken(now, c.QPN)
				}
			}
			all = all[k:]
		}
		if n < len(a.completions) {
			return round > 0 || n > 0
		}
	}
	return true
}

// passEvents passes on a batch of the engine's events.
func (a *adapter) passEvents(now clock.Time) bool {
	n := a.engine.Events(a.events)
	for i := range a.events[:n] {
		a.event(now, &a.events[i])
	}
	return n > 0
}

// broken handles a QP one of whose requests failed: if that ended its connection, it tells the CM.
func (a *adapter) broken(now clock.Time, qpn uint32) {
	if q := a.byNumber[qpn]; q != nil && q.cm != nil && q.tq != nil && q.tq.State() == command.Err {
		q.cm.lost(now)
		a.unsettled = true
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
			a.unsettled = true
			_ = a.cm.Established(now, q.cm.id)
			return
		}
	case command.EventQPFatal, command.EventQPRequestError, command.EventQPAccessError:
		if q.cm != nil {
			q.cm.lost(now)
			a.unsettled = true
		}
	}
	q.client.event(command.Event{Type: e.Type, Object: q.handle, Context: q.context, Adapter: a.index})
}
