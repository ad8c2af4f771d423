package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/path"
	"github.com/softvpi/softvpi/wire/ib"
)

// maxHeld is the longest message for whose end a pair that is about to change its path may be kept from
// beginning others.
const maxHeld = 4 << 20

// Pair is two connected queue pairs on engines of one loop, with the path that their messages take. The engines
// tell it what they find, and carry out what a transition asks of them; its other events come from their driver.
type Pair struct {
	path.Connection
	ends [2]*QP
	due  path.Actions // asked of the driver, not taken yet
}

// drivers are the actions that the driver of the engines carries out.
const drivers = path.Rest | path.Withdraw

// Take reports whether an action is asked of the driver, path.Rest or path.Withdraw, since it was last taken.
func (p *Pair) Take(a path.Actions) bool {
	due := p.due&a != 0
	p.due &^= a
	return due
}

// Pair returns the pair that q was last one of, nil if it was never in one.
func (q *QP) Pair() *Pair { return q.pair }

// Carrier returns who carries q's messages.
func (q *QP) Carrier() path.Carrier { return q.carrier }

// Local reports whether the QP is off the wire: on the local path or delegated.
func (q *QP) Local() bool { return q.carrier != path.ByPackets }

// Parting reports whether the QP leaves the local path when its message is finished.
func (q *QP) Parting() bool { return q.pair != nil && q.pair.State() == path.Leaving }

// peer returns the other end of q's pair.
func (q *QP) peer() *QP {
	if q.pair.ends[0] == q {
		return q.pair.ends[1]
	}
	return q.pair.ends[0]
}

// holdsBack reports whether q must not begin messages because its pair is about to change its path, or is delegated.
func (q *QP) holdsBack() bool { return q.pair != nil && !q.pair.Begins() }

// step makes a transition for the driver, and carries out what it asks of both engines. false: the event cannot happen
// now.
func (p *Pair) step(e path.Event) bool {
	do, ok := p.Step(e)
	if !ok {
		return false
	}
	p.due |= do & drivers
	for _, q := range p.ends {
		switch {
		case do&path.Join != 0:
			q.join()
		case do&path.Leave != 0:
			q.leave()
			q.checkDrained()
		case do&(path.Delegate|path.Reclaim) != 0:
			q.carry(p.Carrier())
		}
	}
	if do&path.Release != 0 {
		for _, q := range p.ends {
			q.activate()
		}
	}
	return true
}

// settle returns a pair that leaves the local path to the wire if neither end is within a message.
func (p *Pair) settle() {
	if p.State() == path.Leaving && p.unopened() {
		p.step(path.Quiet)
	}
}

// unopened reports whether neither end is within a message.
func (p *Pair) unopened() bool { return !p.ends[0].resp.inbox.opened && !p.ends[1].resp.inbox.opened }

// quiet reports whether nothing is in progress between the two ends.
func (p *Pair) quiet() bool {
	a, b := p.ends[0], p.ends[1]
	return a.idle() && b.idle() && !a.unreceived(b) && !b.unreceived(a)
}

// idle reports whether nothing of q is in progress between the two ends.
func (q *QP) idle() bool {
	s, p := q.req, q.resp
	return s.una == s.snd && !q.unsent && (s.head == nil || !s.head.begun) && !s.rnrWait && p.msg == msgNone && p.pending == 0 && !p.nak &&
		!p.ack && q.copying == 0
}

// unreceived reports whether peer has not received all packets of q. In RTR q has no PSN yet, and a target needs none.
func (q *QP) unreceived(peer *QP) bool {
	return q.state != command.RTR && q.typ != command.XRCTarget && q.req.snd != peer.resp.psn
}

// receives reports whether q accepts messages on the local path.
func (q *QP) receives() bool { return q.state == command.RTR || q.state == command.RTS }

// Join puts two connected queue pairs on the local path: from now on whole messages move from region to
// region, without packets. Both must be RC, or UC, or an XRC initiator and its target, connected to each other, on engines of one loop,
// and in RTS; one of them may still be in RTR, and then only receives. If a packet or a response is in
// progress the error is ErrNotIdle; otherwise it is ErrNotPeers. PSNs and MSNs advance as on the wire, so
// that Split can switch back between messages.
//
// The driver carries the messages between the engines (TransmitLocal, ReceiveLocal, or an Exchange). Each engine looks at
// its own queue pairs alone.
func (e *Engine) Join(now clock.Time, a, b *QP) error {
	if a.eng != e || a == b {
		return ErrNotPeers
	}
	if p := a.pair; p != nil && p == b.pair && p.Carrier() != path.ByPackets {
		p.step(path.Permit)
		return nil
	}
	if a.pair != nil && a.pair == b.pair {
		a.pair.depart()
	}
	if !mayPair(a, b) {
		return ErrNotPeers
	}
	if a.pair == nil || a.pair != b.pair {
		p := &Pair{ends: [2]*QP{a, b}}
		a.pair, b.pair = p, p
	}
	a.halves()
	b.halves()
	a.pair.step(path.Permit)
	if !a.pair.quiet() {
		return ErrNotIdle
	}
	a.pair.step(path.Quiet)
	return nil
}

// depart lets an end that has not yet learned that the local path has ended leave it.
func (p *Pair) depart() {
	for _, q := range p.ends {
		if q.carrier == path.ByLoop && p.Carrier() == path.ByPackets {
			q.leave()
		}
	}
}

// mayPair reports whether a and b are connected to each other, on the wire and ready for messages.
func mayPair(a, b *QP) bool {
	return a.typ == b.typ.Counterpart() && a.typ != command.UD && a.carrier == path.ByPackets && b.carrier == path.ByPackets &&
		a.receives() && b.receives() && (a.state != command.RTR || b.state != command.RTR) &&
		a.attr.DestQPN == b.num && b.attr.DestQPN == a.num &&
		a.route.Dst == b.route.Src && b.route.Dst == a.route.Src &&
		a.mtu == b.mtu && ib.PKeyMatch(a.pkey, b.pkey)
}

// Split returns a QP and its peer to the wire, at a message boundary: half-moved messages are finished first,
// in the QPs' turns like any other, and nothing begins meanwhile. Until then Parting is true, and Join takes
// it back. A pair that waits for a quiet moment to Join does so no longer. A delegated pair goes on to the wire when
// it has been recalled, for which the driver is asked for a path.Withdraw.
func (e *Engine) Split(a *QP) {
	if a.eng != e || a.pair == nil {
		return
	}
	a.pair.step(path.Demand)
	a.pair.settle()
}

// Hold keeps a queue pair that Join found busy, and its peer, from beginning requests until Unhold, so that Join
// succeeds soon. If the work in progress may take long they are not held, and the driver is asked for a path.Rest.
func (e *Engine) Hold(a *QP) {
	if p := a.pair; a.eng == e && p != nil && p.Carrier() == path.ByPackets {
		p.step(p.look())
	}
}

// look returns what a look at a pair in progress finds.
func (p *Pair) look() path.Event {
	for _, q := range p.ends {
		if q.req.rnrWait && q.carrier == path.ByPackets || q.req.head != nil && q.req.head.length > maxHeld {
			return path.Long
		}
	}
	return path.Busy
}

// Unhold lets a pair that Hold keeps begin requests again, for a path.Rest.
func (e *Engine) Unhold(q *QP) {
	if q.eng == e && q.pair != nil {
		q.pair.step(path.Expire)
	}
}

// Offer says that the programs of a pair on the local path may have it: Delegate may be called from now on.
func (e *Engine) Offer(q *QP) {
	if q.eng == e && q.pair != nil {
		q.pair.step(path.Offer)
	}
}

// Refuse takes an Offer back.
func (e *Engine) Refuse(q *QP) {
	if q.eng == e && q.pair != nil {
		q.pair.step(path.Refuse)
	}
}

// Delegate delegates the work of a queue pair on the local path, and of its peer, to their programs (package
// direct): until Reclaim the engine takes nothing from their queues and flushes nothing, and the PSNs on
// both sides stand still. One of the two may still be in RTR: it only receives, and has received, so that
// nobody waits for the event of its first message. The error is ErrNotIdle if a message is in progress;
// then no other begins until it succeeds, or Refuse. Otherwise it is ErrNotPeers. The driver must have made an
// Offer, and delivered the completions of both.
func (e *Engine) Delegate(a *QP) error {
	p := a.pair
	if a.eng != e || p == nil || a.typ != command.RC || p.State() != path.Offered && p.State() != path.Delegating {
		return ErrNotPeers
	}
	b := a.peer()
	if !a.receives() || !b.receives() || a.state == command.RTR && b.state == command.RTR {
		return ErrNotPeers
	}
	if !a.heard() || !b.heard() {
		return ErrNotIdle
	}
	for _, q := range p.ends {
		if !q.idle() || q.req.head != nil || q.resp.recv != nil {
			p.step(p.look())
			return ErrNotIdle
		}
	}
	p.step(path.Quiet)
	return nil
}

// heard reports whether q no longer waits for a first message to move it out of RTR.
func (q *QP) heard() bool { return q.state == command.RTS || q.reached }

// Recall says that the engine needs a delegated pair: the driver is asked for a path.Withdraw. The programs may still be in
// the middle of an operation; when they are not any more, Reclaim takes the pair back.
func (e *Engine) Recall(q *QP) {
	if q.eng == e && q.pair != nil {
		q.pair.step(path.Recall)
	}
}

// Reclaim takes a queue pair and its peer back from their programs, whatever their states are by now.
func (e *Engine) Reclaim(now clock.Time, a *QP) {
	if a.eng != e || a.pair == nil || !a.pair.step(path.Returned) {
		return
	}
	for _, q := range a.pair.ends {
		q.eng.now = now
		switch q.state {
		case command.Err, command.SQE:
			q.startFlush()
		case command.RTS:
			q.workPosted()
		}
	}
	a.pair.settle()
}
