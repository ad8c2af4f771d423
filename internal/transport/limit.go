package transport

import (
	"math"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/transport/congestion"
	"github.com/softvpi/softvpi/wire/eth"
)

// bucket is how the rate of a queue pair is limited, and what its program has asked for.
type bucket struct {
	*congestion.Bucket
	asked command.LimitQP
}

// Limit limits the rate of what q sends from its send queue, at once; what it answers its peer is not limited. Where congestion, the
// shares of the port or the rate of a class allow less, that counts. Without a MaxBurst what the rate makes in a millisecond may leave
// at once, but at least two packets, and what it makes while a thread that is to send wakes up late. The error is a *command.Error:
// State if q does not send.
func (e *Engine) Limit(now clock.Time, q *QP, l command.LimitQP) error {
	switch {
	case q.eng != e || e.table.Get(q.num) != q:
		return command.Errorf(command.NotFound, "QP")
	case q.typ == command.XRCTarget:
		return command.Errorf(command.Unsupported, "an XRC target sends nothing")
	case q.state != command.RTS && q.state != command.SQD:
		return command.Errorf(command.State, "the QP is in state %v; want RTS or SQD, in which it has a send queue", q.state)
	case l.Rate == 0 && (l.MaxBurst != 0 || l.TypicalPacket != 0):
		return command.Errorf(command.Invalid, "MaxBurst is %d and TypicalPacket %d, want 0 without a Rate", l.MaxBurst, l.TypicalPacket)
	}
	q.extras().bucket = nil
	if l.Rate != 0 {
		burst, carry := l.MaxBurst, time.Duration(0)
		if burst == 0 {
			burst, carry = max(l.Rate/8, 2*uint32(q.longest())), congestion.MostCarried
		}
		q.extra.bucket = &bucket{congestion.NewBucket(now, l.Rate, burst, carry), l}
	}
	if q.deadlines[paceTimer] != clock.Never { // it may have waited for nothing
		e.paced.drop(q)
		q.activate()
	}
	return nil
}

// LimitOf returns how the rate of q is limited by its program: by Limit, or by the static rate of its path if that is lower. The zero
// value: it is not.
func (q *QP) LimitOf() command.LimitQP {
	var l command.LimitQP
	if b := q.bucketOf(); b != nil {
		l = b.asked
	}
	if q.pace() != nil && (l.Rate == 0 || q.route.Rate < l.Rate) {
		return command.LimitQP{Rate: q.route.Rate}
	}
	return l
}

// Limited reports whether its program limits the rate of q, which packets alone keep.
func (q *QP) Limited() bool { return q.bucketOf() != nil || q.pace() != nil }

// pace keeps the rate of the path of q; nil: that has no static rate, or each datagram its own.
func (q *QP) pace() frame.Pacer {
	if q.route == nil {
		return nil
	}
	return q.route.Pace
}

// throttled reports whether q may not send yet because its program has limited its rate. It has a turn when it may.
func (q *QP) throttled(now clock.Time) bool {
	at := now
	if b := q.bucketOf(); b != nil {
		at = b.NextSend(now, q.longest())
	}
	if p := q.pace(); p != nil {
		at = max(at, p.NextSend(now, q.longest()))
	}
	return q.waitsUntil(now, at)
}

// allowed returns how many bytes q may send now by the limits of its program: of connected queue pairs, of payload.
func (q *QP) allowed(now clock.Time) int {
	room := math.MaxInt
	if b := q.bucketOf(); b != nil {
		room = b.Room(now)
	}
	if p := q.pace(); p != nil {
		room = min(room, p.Room(now))
	}
	if room == math.MaxInt {
		return room
	}
	room -= q.longest() - 1 // the last packet may begin with one byte of room
	if q.typ != command.UD && q.typ != command.RawPacket {
		room -= (room/q.longest() + 1) * (q.longest() - q.mtu) // the turn counts payloads
	}
	return max(1, room)
}

// charge says that so many bytes of q have left.
func (q *QP) charge(now clock.Time, bytes int) {
	if b := q.bucketOf(); b != nil {
		b.Sent(now, bytes)
	}
	if p := q.pace(); p != nil {
		p.Sent(now, bytes)
	}
}

// Pace limits what leaves by a route of e to a rate in kbit/s, as Limit does without a burst. 0 does not limit it.
func (e *Engine) Pace(now clock.Time, r *frame.Route, kbps uint32) {
	r.Rate, r.Pace = kbps, nil
	if kbps != 0 {
		r.Pace = congestion.NewBucket(now, kbps, max(kbps/8, 2*(MaxMTU+maxHeaders+outerLen)), congestion.MostCarried)
	}
}

// longest returns how long the next packet of q may be.
func (q *QP) longest() int {
	switch q.typ {
	case command.RawPacket:
		return q.eng.wire.Longest + fcsLen
	case command.UD:
		return MaxMTU + maxHeaders + outerLen
	}
	return q.mtu + maxHeaders + outerLen
}

// maxHeaders is the length of the headers of a packet from the BTH on: those of an atomic, at most.
const maxHeaders = 12 + 28 + eth.VLANLen
