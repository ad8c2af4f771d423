package transport

// activeList is the QPs of an engine that have something to transmit, in the
// order of their turns.
type activeList struct {
	head, tail *QP
}

func (l *activeList) push(q *QP) {
	q.active = true
	q.activePrev, q.activeNext = l.tail, nil
	if l.tail == nil {
		l.head = q
	} else {
		l.tail.activeNext = q
	}
	l.tail = q
}

func (l *activeList) remove(q *QP) {
	if q.activePrev == nil {
		l.head = q.activeNext
	} else {
		q.activePrev.activeNext = q.activeNext
	}
	if q.activeNext == nil {
		l.tail = q.activePrev
	} else {
		q.activeNext.activePrev = q.activePrev
	}
	q.activePrev, q.activeNext, q.active = nil, nil, false
}

// waitList is the QPs that wait for room in a window, the longest waiting first.
type waitList struct {
	head, tail *QP
}

func (l *waitList) push(q *QP) {
	q.waiting = true
	q.waitPrev, q.waitNext = l.tail, nil
	if l.tail == nil {
		l.head = q
	} else {
		l.tail.waitNext = q
	}
	l.tail = q
}

func (l *waitList) remove(q *QP) {
	if q.waitPrev == nil {
		l.head = q.waitNext
	} else {
		q.waitPrev.waitNext = q.waitNext
	}
	if q.waitNext == nil {
		l.tail = q.waitPrev
	} else {
		q.waitNext.waitPrev = q.waitPrev
	}
	q.waitPrev, q.waitNext, q.waiting = nil, nil, false
}

// activate gives q a turn in Transmit.
func (q *QP) activate() {
	if !q.active {
		q.eng.active.push(q)
	}
}
