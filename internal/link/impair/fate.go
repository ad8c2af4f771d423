package impair

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// take asks the model about a packet and queues it.
func (l *Link) take(o *frame.Out, now clock.Time) {
	f := l.model.Fate()
	if f.Lost {
		l.stats.ImpairedLost++
		return
	}
	if f.Late && len(l.spare) > 0 {
		l.hold(o, now, f)
	} else {
		l.push(o, now, f)
		l.overtake(now)
	}
	if f.Twice {
		l.stats.ImpairedDuplicated++
		l.push(o, now, Fate{Marked: f.Marked})
		l.overtake(now)
	}
}

func (l *Link) push(o *frame.Out, now clock.Time, f Fate) {
	p := l.queue.push(l.model.Due(now, l.wireLength(o)))
	l.fill(p, o, f)
	if l.model.Last() > now {
		l.stats.ImpairedDelayed++
	}
}

// hold holds a packet back until others have overtaken it.
func (l *Link) hold(o *frame.Out, now clock.Time, f Fate) {
	l.stats.ImpairedReordered++
	last := len(l.spare) - 1
	p := l.spare[last]
	l.spare = l.spare[:last]
	overtaken, until := l.model.Hold(now)
	l.late.Add(p, overtaken, until)
	l.fill(p, o, f)
}

// overtake counts a packet that was queued and releases those held back long enough.
func (l *Link) overtake(now clock.Time) {
	l.late.Pass()
	l.release(now)
}

func (l *Link) release(now clock.Time) {
	for l.queue.free() > 0 {
		p, ok := l.late.Take(now)
		if !ok {
			return
		}
		l.fill(l.queue.push(l.model.Due(now, l.wireLength(p.out))), p.out, Fate{})
		l.spare = append(l.spare, p)
	}
}

func (l *Link) wireLength(o *frame.Out) int {
	if l.caps.Raw {
		return o.Len() + wireOverheadRaw
	}
	return WireLength(o.Len(), o.Route.Dst)
}

// fill copies a packet, with its route and payload, and applies what was decided.
func (l *Link) fill(p packet, o *frame.Out, f Fate) {
	*p.out, *p.route = *o, *o.Route
	*p.payload = append((*p.payload)[:0], o.Payload...)
	p.out.Route, p.out.Payload = p.route, *p.payload
	link.Single(p.out, l.caps.SegmentIDs)
	if f.Marked {
		l.stats.ImpairedMarked++
		switch {
		case l.caps.InfiniBand: // whose switches mark it in the BTH
			ib.BTH(p.out.Head[frame.HeadRoom:]).SetFECN(true)
		case l.caps.Raw: // its headers are complete
			eth.MarkCongestion(p.out.Head[p.out.HeadStart:p.out.HeadEnd])
		default:
			p.route.TrafficClass = eth.Mark(p.route.TrafficClass)
		}
	}
	if f.Corrupt {
		l.stats.ImpairedCorrupted++
		l.flip(p.out)
	}
}

// flip inverts one bit from the BTH on, where the ICRC shows it, or anywhere in the frame of an Ethernet function, whose FCS does.
func (l *Link) flip(o *frame.Out) {
	from := frame.HeadRoom
	if l.caps.Raw && !l.caps.InfiniBand && !o.Route.Dst.IsValid() {
		from, o.BadFCS = int(o.HeadStart), true
	}
	head := int(o.HeadEnd) - from
	at, bit := l.model.Flip(head + len(o.Payload) + int(o.TailLen))
	switch {
	case at < head:
		o.Head[from+at] ^= bit
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
	return max(min(at, l.late.Deadline()), l.retry)
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
