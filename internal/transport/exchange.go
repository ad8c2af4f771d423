package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// localBudget is how many bytes an engine moves on the local path in one TransmitLocal.
	localBudget = 1 << 20
	// localTurn is how many bytes a QP moves, and localMessages how many messages it hands over or takes, before the
	// next one has its turn.
	localTurn     = 256 << 10
	localMessages = 32
	// localUnanswered is how many messages of a QP may be handed over and not answered.
	localUnanswered = 2 * localMessages
	// localRoom is how many entries one QP may need at once: an answer with what came before it, a notice, and its own
	// messages.
	localRoom = 4
	// maxUndelivered is how many completions may wait for the driver before the local path pauses.
	maxUndelivered = 8192
)

// localKind says what an entry on the local path is.
type localKind uint8

const (
	localRun        localKind = iota // messages of the requester, in order
	localDone                        // the responder has finished count messages
	localAtomic                      // the same, and an atomic, with its result
	localDropped                     // the same, and dropped one that nobody answers for (UC)
	localRefused                     // the same, and refused the next: syndrome says why
	localFault                       // the same, but cannot access the requester's memory of the next
	localAvailable                   // a receive has been posted since one was missing
	localLeft                        // the other end has left the local path
	localUnfinished                  // never sent: the message is not finished
)

// Local is something that one end of a pair on the local path has for the other: messages, or what has become of them.
// Messages stay in the requester's list, whose memory they point into, until they are answered.
type Local struct {
	pair     *Pair
	first    *request // of a run
	value    uint64   // result of an atomic
	epoch    uint32   // of a run: those of an earlier one were handed over before the requester knew of a refusal
	count    uint16   // messages of a run, or finished
	to       uint8    // the end of the pair
	kind     localKind
	syndrome ib.Syndrome
}

// To returns the engine that the entry is for.
func (l *Local) To() *Engine { return l.pair.ends[l.to].eng }

// PendingLocal reports whether TransmitLocal has something to do now.
func (e *Engine) PendingLocal() bool { return e.locals.head != nil || e.left.len() > 0 }

// TransmitLocal gives the QPs on the local path their turns, and writes what they have for their peers to out: it returns
// the number of entries, at most len(out), and how many bytes it has moved. The driver passes the entries on to their
// engines (ReceiveLocal), in order, before anything else is asked of any engine. out must have room for localRoom.
func (e *Engine) TransmitLocal(now clock.Time, out []Local) (n, moved int) {
	e.now = now
	for turns := len(out); turns > 0 && len(out)-n >= localRoom && moved < localBudget; turns-- {
		q := e.locals.head
		if q == nil || e.crowded() {
			break
		}
		e.locals.remove(q)
		k, used, more := q.turnLocal(out[n:])
		n, moved = n+k, moved+used
		if more {
			q.activate()
		}
	}
	return n + e.left.take(out[n:]), moved
}

// ReceiveLocal takes what the peers of this engine's QPs have for them.
func (e *Engine) ReceiveLocal(now clock.Time, in []Local) {
	e.now = now
	for i := range in {
		l := &in[i]
		if q := l.pair.ends[l.to]; q.pair == l.pair && q.carrier == path.ByLoop {
			q.receiveLocal(now, l)
		} else if q.pair == l.pair && l.kind == localLeft {
			q.activate() // it was kept from beginning messages
		}
	}
	e.writeGathered()
}

// receiveLocal takes one entry.
func (q *QP) receiveLocal(now clock.Time, l *Local) {
	switch l.kind {
	case localRun:
		q.takeRun(l)
		return
	case localAvailable:
		q.receiveAvailable()
		return
	case localLeft:
		if l.pair.Carrier() == path.ByPackets {
			q.leave()
			q.checkDrained()
		}
		return
	}
	q.localAnswer(now, l)
}

// turnLocal gives q its turn: first as a responder, then as a requester. more means that only its turn has ended.
func (q *QP) turnLocal(out []Local) (n, moved int, more bool) {
	n, moved, more = q.respondLocal(out)
	if q.carrier != path.ByLoop {
		return n, moved, false
	}
	if in := &q.resp.inbox; in.available {
		in.available = false
		out[n] = Local{pair: q.pair, to: q.other(), kind: localAvailable}
		n++
	}
	run, again := q.handOver()
	if run.count > 0 && q.carrier == path.ByLoop {
		out[n] = run
		n++
	}
	return n, moved, more || again
}

// other returns the place of q's peer in their pair.
func (q *QP) other() uint8 {
	if q.pair.ends[0] == q {
		return 1
	}
	return 0
}

// Exchange carries the local path's entries between the engines of a loop.
type Exchange struct{ entries [64]Local }

// Run lets the engines exchange what they have for each other, until nothing is left or about localBudget bytes have
// moved. It reports whether anything did. Completions then wait in any of the engines.
func (x *Exchange) Run(now clock.Time, engines []*Engine) (worked bool) {
	for budget := localBudget; budget > 0; {
		did := false
		for _, e := range engines {
			if !e.PendingLocal() {
				continue
			}
			n, moved := e.TransmitLocal(now, x.entries[:])
			x.deliver(now, n)
			budget -= moved
			did = did || n > 0 || moved > 0
		}
		if !did {
			return worked
		}
		worked = true
	}
	return worked
}

// deliver passes the first n entries on, those for one engine at once.
func (x *Exchange) deliver(now clock.Time, n int) {
	for i := 0; i < n; {
		to, k := x.entries[i].To(), i+1
		for k < n && x.entries[k].To() == to {
			k++
		}
		to.ReceiveLocal(now, x.entries[i:k])
		i = k
	}
	clear(x.entries[:n])
}
