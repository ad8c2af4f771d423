package transport

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/path"
)

// A QP is in at most one list of each kind.
const (
	waitingKind   = iota // of a window: QPs that wait for room in it, the longest waiting first
	heldKind             // of an engine: QPs that hold an ACK, in the order in which it is due
	noticeKind           // of an engine and a priority: QPs that owe their peers a congestion notification
	activeKind           // of an engine and a priority: QPs that have something to transmit, in the order of their turns
	rawKind              // of an engine and a priority: raw packet QPs that have something to transmit, in the order of their turns
	localListKind        // of an engine: QPs on the local path that have something for their peers, in the order of their turns
	placesOfQP    = activeKind + 1
)

// place holds a QP's links in a list of one kind.
type place struct{ prev, next *QP }

// placeOf returns q's place in a list of one kind. Of those of turns it is in one at a time.
func (q *QP) placeOf(kind uint8) *place { return &q.places[min(kind, activeKind)] }

// in reports whether q is in a list of a kind.
func (q *QP) in(kind uint8) bool { return q.listed>>kind&1 != 0 }

// qpList is a list of QPs that needs no allocation: its links are in the QPs.
type qpList struct {
	head, tail *QP
	kind       uint8
}

func (l *qpList) push(q *QP) {
	*q.placeOf(l.kind) = place{prev: l.tail}
	q.listed |= 1 << l.kind
	if l.tail == nil {
		l.head = q
	} else {
		l.tail.placeOf(l.kind).next = q
	}
	l.tail = q
}

func (l *qpList) remove(q *QP) {
	at := q.placeOf(l.kind)
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.placeOf(l.kind).next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.placeOf(l.kind).prev = at.prev
	}
	*at = place{}
	q.listed &^= 1 << l.kind
}

// turns are the QPs that have something to transmit: a list for each priority, in the order of their turns.
type turns struct {
	lists [frame.Priorities]qpList
	// waiting has bit p set while there are QPs at priority p.
	waiting uint8
}

// turnsOf returns turns in lists of one kind.
func turnsOf(kind uint8) (t turns) {
	for i := range t.lists {
		t.lists[i].kind = kind
	}
	return t
}

func (t *turns) push(q *QP) {
	t.lists[q.priority].push(q)
	t.waiting |= 1 << q.priority
}

func (t *turns) remove(q *QP) {
	l := &t.lists[q.priority]
	if l.remove(q); l.head == nil {
		t.waiting &^= 1 << q.priority
	}
}

// pop removes the QP that has the next turn at a priority, at which there is one.
func (t *turns) pop(priority uint8) {
	l := &t.lists[priority]
	q := l.head
	at := q.placeOf(l.kind)
	if l.head = at.next; l.head != nil {
		l.head.placeOf(l.kind).prev, at.next = nil, nil
	} else {
		l.tail = nil
		t.waiting &^= 1 << priority
	}
	q.listed &^= 1 << l.kind
}

// only returns the QP that has a turn if no other one has.
func (t *turns) only() *QP {
	if t.waiting == 0 || t.waiting&(t.waiting-1) != 0 {
		return nil
	}
	l := &t.lists[bits.TrailingZeros8(t.waiting)]
	if l.head != l.tail {
		return nil
	}
	return l.head
}

// setPriority changes the priority at which q transmits.
func (q *QP) setPriority(p uint8) {
	if q.priority == p {
		return
	}
	active := q.active()
	if active {
		q.eng.active.remove(q)
	}
	if q.priority = p; active {
		q.eng.active.push(q)
	}
}

// active reports whether q waits for its turn in Transmit.
func (q *QP) active() bool { return q.in(activeKind) }

// waiting reports whether q waits for room in its window.
func (q *QP) waiting() bool { return q.in(waitingKind) }

// activate gives q a turn in Transmit.
func (q *QP) activate() {
	q.eng.bell.Ring()
	if q.carrier == path.ByLoop {
		if !q.in(localListKind) {
			q.eng.locals.push(q)
		}
		return
	}
	if q.typ == command.RawPacket {
		if !q.in(rawKind) {
			q.eng.raw.push(q)
		}
		return
	}
	if !q.active() {
		q.eng.active.push(q)
	}
}

// resume is activate if there are requests: most queue pairs that connect have none when they become ready
// to send, and need no turn.
func (q *QP) resume() {
	if n, err := q.sq.Pending(); n > 0 || err != nil || q.req.head != nil {
		q.activate()
	}
}
