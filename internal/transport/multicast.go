package transport

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/command"
)

// AttachMulticast makes q receive the datagrams to group (IBA 10.5.2.1). Attaching a QP to a group twice
// has no effect. Errors are *command.Error. The driver joins the group on the network.
func (e *Engine) AttachMulticast(q *QP, group netip.Addr) error {
	group = group.Unmap()
	switch {
	case q.typ != command.UD:
		return fieldError("QP type", uint32(q.typ), "UD")
	case !group.IsMulticast():
		return fieldError("group", group, "a multicast address")
	case slices.Contains(e.groups[group], q):
		return nil
	case e.attached >= e.cfg.MaxMulticast:
		return command.Errorf(command.Exhausted, "multicast attachments: limit %d", e.cfg.MaxMulticast)
	}
	e.groups[group] = append(e.groups[group], q)
	e.attached++
	return nil
}

// DetachMulticast ends an attachment; NotFound if there is none.
func (e *Engine) DetachMulticast(q *QP, group netip.Addr) error {
	group = group.Unmap()
	if !e.detach(q, group) {
		return command.Errorf(command.NotFound, "QP is not attached to %s", group)
	}
	return nil
}

func (e *Engine) detach(q *QP, group netip.Addr) bool {
	qps := e.groups[group]
	i := slices.Index(qps, q)
	if i < 0 {
		return false
	}
	e.attached--
	if qps = slices.Delete(qps, i, i+1); len(qps) == 0 {
		delete(e.groups, group)
		return true
	}
	e.groups[group] = qps
	return true
}

func (e *Engine) detachAll(q *QP) {
	if q.typ != command.UD {
		return
	}
	for group := range e.groups {
		e.detach(q, group)
	}
}
