package transport

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// outerLen is what packets of a limited rate have around what the transport makes of them: Ethernet, IPv4 and UDP headers,
// the ICRC and the frame check sequence.
const outerLen = eth.EthernetLen + eth.IPv4Len + eth.UDPLen + ib.ICRCLen + 4

// notices are the congestion notifications of an engine: the queue pairs that owe one, by its priority.
type notices struct {
	lists   [frame.Priorities]qpList
	waiting uint8         // bit p: lists[p] is not empty
	routes  []frame.Route // of those that were sent last
}

func (n *notices) init() {
	for i := range n.lists {
		n.lists[i].kind = noticeKind
	}
}

func (n *notices) push(q *QP) {
	p := q.eng.noticePriority(q)
	q.owesAt = p
	n.lists[p].push(q)
	n.waiting |= 1 << p
}

func (n *notices) remove(q *QP) {
	p := q.owesAt
	if n.lists[p].remove(q); n.lists[p].head == nil {
		n.waiting &^= 1 << p
	}
}

// noticePriority returns that of the notifications of q.
func (e *Engine) noticePriority(q *QP) uint8 {
	if e.congestion.FollowPriority {
		return q.route.Priority
	}
	return e.congestion.CNPPriority
}

// route returns the route of a notification of q, the n-th of a turn: the queue pair's, with the traffic class and the priority of
// notifications. It is valid until the next turn.
func (n *notices) route(i int, q *QP) *frame.Route {
	if i == len(n.routes) {
		n.routes = append(n.routes, frame.Route{})
	}
	r := &n.routes[i]
	*r = *q.route
	r.TrafficClass, r.Priority = q.eng.congestion.CNPDSCP<<2, q.owesAt
	if r.VLAN != 0 {
		r.VLAN = r.VLAN&0x1fff | uint16(r.Priority)<<13
	}
	return r
}

// SetCongestion changes congestion control, at once: rates that are limited follow the new parameters, and end with their
// priority's reaction point. The error is a *command.Error that names the invalid field.
func (e *Engine) SetCongestion(s congestion.Settings) error {
	if err := s.Complete(); err != nil {
		return err
	}
	e.congestion = s
	for _, q := range e.table.All() {
		q.follows()
	}
	return nil
}

// Congestion returns the settings of congestion control.
func (e *Engine) Congestion() congestion.Settings { return e.congestion }

// Rate returns how congestion limits the rate of a queue pair; false: it does not.
func (e *Engine) Rate(now clock.Time, q *QP) (congestion.Rate, bool) {
	if q.react == nil {
		return congestion.Rate{}, false
	}
	return q.react.Rate(now)
}

// Limited returns how many queue pairs have a rate that congestion limits.
func (e *Engine) Limited(now clock.Time) (n int) {
	if e.congestion.React == 0 {
		return 0
	}
	for _, q := range e.table.All() {
		if _, limited := e.Rate(now, q); limited {
			n++
		}
	}
	return n
}

// follows makes q follow the settings for the priority that it sends at.
func (q *QP) follows() {
	if q.route == nil {
		return
	}
	e, bit := q.eng, uint8(1)<<q.priority
	switch reacts := e.congestion.React&bit != 0; {
	case reacts && !q.capable:
		q.ecn = q.route.TrafficClass & eth.ECNMask
		q.route.TrafficClass = q.route.TrafficClass&^eth.ECNMask | eth.ECNCapable
		q.capable = true
	case !reacts:
		q.unlimited()
	}
	q.unanswered() // its next notification has the new traffic class
}

// unlimited ends the reaction point of q: what it sends is as its program says.
func (q *QP) unlimited() {
	if q.capable {
		q.route.TrafficClass = q.route.TrafficClass&^eth.ECNMask | q.ecn
		q.capable = false
	}
	if q.react == nil {
		return
	}
	q.react = nil
	if q.deadlines[paceTimer] != clock.Never {
		q.eng.paced.drop(q)
		q.activate()
	}
}

// unanswered ends the notification point of q.
func (q *QP) unanswered() {
	if q.in(noticeKind) {
		q.eng.notices.remove(q)
	}
	q.answer = congestion.NotificationPoint{}
}

// notified handles a congestion notification for q.
func (e *Engine) notified(now clock.Time, q *QP, in *frame.In) {
	e.counters.CongestionNotices++
	if q.route == nil || in.Src != q.route.Dst || e.congestion.React>>q.priority&1 == 0 {
		e.counters.IgnoredNotices++
		return
	}
	if q.react == nil {
		q.react = congestion.NewReactionPoint(&e.congestion.Reaction)
	}
	q.react.Notified(now)
}

// answerMarks looks for marks of switches in packets with payloads for q, which is connected with their sender, and answers
// them. Those without are not answered: they fill no queues.
func (e *Engine) answerMarks(now clock.Time, q *QP, in []frame.In) {
	for i := range in {
		if eth.Marked(in[i].TrafficClass) {
			e.counters.MarkedPackets++
			q.answerMark(now)
		}
	}
}

// answerMark answers a marked packet, unless q has answered one just before.
func (q *QP) answerMark(now clock.Time) {
	e := q.eng
	s := &e.congestion
	if s.Notify>>q.priority&1 == 0 {
		return
	}
	if !q.in(noticeKind) && q.answer.Answer(now, s.CNPInterval) {
		e.notices.push(q)
		e.bell.Ring()
	}
}

// sendNotices emits the congestion notifications of a priority (IBA annex A17.9.3).
func (e *Engine) sendNotices(priority uint8, out []frame.Out) (n int) {
	for q := e.notices.lists[priority].head; q != nil && n < len(out); q = e.notices.lists[priority].head {
		e.notices.remove(q)
		o := &out[n]
		o.Reset(e.notices.route(n, q))
		head := o.Head[frame.HeadRoom:]
		bth := ib.BTH(head[:ib.BTHLen])
		bth.Encode(ib.CNP, false, false, 0, q.pkey, ib.QPN(q.attr.DestQPN), 0)
		bth.SetMigReq(true)
		bth.SetBECN(true)
		clear(head[ib.BTHLen : ib.BTHLen+ib.CNPReservedLen])
		o.HeadEnd = frame.HeadRoom + ib.BTHLen + ib.CNPReservedLen
		e.counters.NoticesSent++
		n += e.noteSent(q, out[n:], 1)
	}
	return n
}

// waitsUntil reports whether a time is still to come; q has a turn then, or before.
func (q *QP) waitsUntil(now, at clock.Time) bool {
	if at > now {
		q.turnAt(at)
	}
	return at > now
}

// turnAt gives q a turn at a time, or before.
func (q *QP) turnAt(at clock.Time) { q.eng.paced.arm(q, clock.Min(at, q.deadlines[paceTimer])) }

// pacing reports whether the timer of its rate gives q its next turn: nothing else lets it go on with the request that it sends.
func (q *QP) pacing() bool {
	return q.deadlines[paceTimer] != clock.Never && q.req.cur != nil && q.req.cur.kind != kindLocal
}

// usedUp reports whether q, in the middle of a request, has used up its rate in this turn. It has another when it may send.
func (q *QP) usedUp(now clock.Time) bool {
	if q.req.cur == nil || q.req.cur.kind == kindLocal || q.state == command.Err {
		return false
	}
	return q.react != nil && q.waitsUntil(now, q.react.NextSend(now)) || q.Limited() && q.throttled(now)
}

// turnBytes returns from when on congestion lets q send, and how many bytes of payload it may send in this turn if that is now.
func (q *QP) turnBytes(now clock.Time) (from clock.Time, bytes int) {
	bytes = q.eng.cfg.MaxBurstBytes
	if q.react == nil {
		return now, bytes
	}
	from, most := q.react.Turn(now, q.eng.congestion.Slack)
	return from, min(bytes, most)
}

// congested reports whether congestion limits the rate of q.
func (q *QP) congested() bool { return q.react != nil && q.react.Limited() }

// spent counts packets that q, which has a reaction point, has made against its rate.
func (q *QP) spent(now clock.Time, out []frame.Out) {
	if q.react.Limited() {
		q.react.Sent(now, wireBytes(out), q.eng.congestion.Slack)
	}
}

// wireBytes returns how many bytes packets have with all their headers.
func wireBytes(out []frame.Out) (n int) {
	for i := range out {
		n += out[i].Len() + int(out[i].Pad) + outerLen
	}
	return n
}

// connected reports whether q has one peer, to which congestion notifications go and from which they come.
func (q *QP) connected() bool {
	return q.typ != command.UD && q.typ != command.RawPacket && q.route != nil
}
