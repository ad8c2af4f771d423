package impair

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// take decides what happens to a packet and queues it.
func (l *Link) take(o *frame.Out, now clock.Time) {
	if l.happens(l.set.Loss) {
		l.stats.ImpairedLost++
		return
	}
	corrupt, mark := l.happens(l.set.Corrupt), l.happens(l.set.ECN)
	twice, late := l.happens(l.set.Duplicate), l.happens(l.set.Reorder)
	if late && len(l.late) < cap(l.late) {
		l.hold(o, now, corrupt, mark)
	} else {
		l.push(o, now, corrupt, mark)
		l.overtake(now)
	}
	if twice {
		l.stats.ImpairedDuplicated++
		l.push(o, now, false, mark)
		l.overtake(now)
	}
}

// happens reports true with probability p. It draws no random number if p is 0, so that one kind of
// impairment does not change what another does.
func (l *Link) happens(p float64) bool {
	if p == 0 {
		return false
	}
	return float64(l.random.Uint64()>>11)/(1<<53) < p
}

// below returns a random number from 0 to n-1.
func (l *Link) below(n int) int { return int(l.random.Uint64() % uint64(n)) }

func (l *Link) push(o *frame.Out, now clock.Time, corrupt, mark bool) {
	p := l.queue.push(l.due(o, now))
	l.fill(p, o, corrupt, mark)
	if l.last > now {
		l.stats.ImpairedDelayed++
	}
}

// hold holds a packet back until others have overtaken it.
func (l *Link) hold(o *frame.Out, now clock.Time, corrupt, mark bool) {
	l.stats.ImpairedReordered++
	n := len(l.late)
	l.late = l.late[:n+1]
	p := &l.late[n]
	p.left, p.until = 1+l.below(lateMost), now.Add(lateWait)
	l.fill(p.packet, o, corrupt, mark)
}

// overtake counts a packet that was queued and releases those held back long enough.
func (l *Link) overtake(now clock.Time) {
	for i := range l.late {
		l.late[i].left--
	}
	l.release(now)
}

func (l *Link) release(now clock.Time) {
	for i := 0; i < len(l.late); {
		p := &l.late[i]
		if p.left > 0 && p.until > now || l.queue.free() == 0 {
			i++
			continue
		}
		l.fill(l.queue.push(l.due(p.out, now)), p.out, false, false)
		last := len(l.late) - 1
		l.late[i], l.late[last] = l.late[last], l.late[i]
		l.late = l.late[:last]
	}
}

// due returns when a packet leaves: when the wire is free, and after its delay, but never before the
// packet ahead of it.
func (l *Link) due(o *frame.Out, now clock.Time) clock.Time {
	at := now
	if l.set.Rate != 0 {
		at = max(now, l.free)
		l.free = at.Add(wireTime(l.wireLength(o), l.set.Rate))
		at = l.free
	}
	at = at.Add(l.set.Delay)
	if j := int64(l.set.Jitter); j > 0 {
		at = max(now, at+clock.Time(int64(l.random.Uint64()%uint64(2*j+1))-j))
	}
	if l.queue.len > 0 {
		at = max(at, l.last)
	}
	l.last = at
	return at
}

func (l *Link) wireLength(o *frame.Out) int {
	switch {
	case l.caps.Raw:
		return o.Len() + wireOverheadRaw
	case o.Route.Dst.Is4():
		return o.Len() + wireOverhead
	}
	return o.Len() + wireOverheadV6
}

// wireTime returns how long that many bytes take at a rate in bits per second.
func wireTime(bytes int, rate uint64) time.Duration {
	return time.Duration(float64(bytes) * 8 * 1e9 / float64(rate))
}

// fill copies a packet, with its route and payload, and applies what was decided.
func (l *Link) fill(p packet, o *frame.Out, corrupt, mark bool) {
	*p.out, *p.route = *o, *o.Route
	*p.payload = append((*p.payload)[:0], o.Payload...)
	p.out.Route, p.out.Payload = p.route, *p.payload
	link.Single(p.out, l.caps.SegmentIDs)
	if mark {
		l.stats.ImpairedMarked++
		p.route.TrafficClass |= congestionExperienced
		if l.caps.InfiniBand { // whose switches mark it in the BTH
			ib.BTH(p.out.Head[frame.HeadRoom:]).SetFECN(true)
		}
	}
	if corrupt {
		l.stats.ImpairedCorrupted++
		l.flip(p.out)
	}
}

const (
	congestionExperienced = 3 // the ECN field (RFC 3168)
	bthCongestion         = 4 // the one byte of a BTH that the ICRC does not cover
)

// flip inverts one bit from the BTH on.
func (l *Link) flip(o *frame.Out) {
	head := int(o.HeadEnd) - frame.HeadRoom
	at := l.below(head + len(o.Payload) + int(o.TailLen))
	if at == bthCongestion {
		at++
	}
	bit := byte(1) << l.below(8)
	switch {
	case at < head:
		o.Head[frame.HeadRoom+at] ^= bit
	case at < head+len(o.Payload):
		o.Payload[at-head] ^= bit
	default:
		o.Tail[at-head-len(o.Payload)] ^= bit
	}
}

// Deadline returns when the next packet is due, clock.Never if none is held.
func (l *Link) Deadline() clock.Time {
	at := clock.Never
	if l.queue.len > 0 {
		at = l.queue.due[l.queue.head]
	}
	for i := range l.late {
		at = min(at, l.late[i].until)
	}
	return max(at, l.retry)
}

// Flush sends what is due.
func (l *Link) Flush(now clock.Time) error {
	if !l.on {
		return nil
	}
	l.release(now)
	for {
		ready := l.queue.ready(now)
		if len(ready) == 0 {
			break
		}
		n, err := l.inner.Send(ready)
		l.queue.drop(n)
		if err != nil {
			return err
		}
		if n < len(ready) {
			l.retry = now.Add(retryAfter)
			return nil
		}
	}
	l.retry = 0
	l.settle()
	return nil
}
