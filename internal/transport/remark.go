package transport

import (
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/eth"
)

// Remark changes the priority at which q sends from now on, the traffic class of its packets, and their VLAN tag: rules have changed.
// What was handed out has left at the old priority, and nothing of q waits between engine and wire: no packet overtakes another here.
// q.route is the same as before.
func (e *Engine) Remark(q *QP, priority, class uint8, vlan uint16) {
	r := q.route
	if r == nil {
		return
	}
	if q.capable {
		q.ecn = class & eth.ECNMask
		class = class&^eth.ECNMask | eth.ECNCapable
	}
	if r.Priority == priority && r.TrafficClass == class && r.VLAN == vlan {
		return
	}
	q.unanswered() // its next notification has the new marks
	r.Priority, r.TrafficClass, r.VLAN = priority, class, vlan
	if q.typ == command.UD || q.priority == priority {
		return
	}
	q.setPriority(priority)
	if q.win != nil {
		q.moveWindow()
	}
	if q.connected() {
		q.follows()
	}
}
