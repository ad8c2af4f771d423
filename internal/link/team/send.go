package team

import (
	"encoding/binary"
	"net"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/internal/team"
	"github.com/softvpi/softvpi/wire/eth"
)

// source is where a frame has the address that it comes from.
const source = 6

// Send implements link.Link. Frames in a row that leave by one member are handed to it together.
func (l *Link) Send(frames []frame.Out) (int, error) {
	l.state.Lock()
	defer l.state.Unlock()
	if l.Ended() {
		return 0, net.ErrClosed
	}
	now := l.now()
	for i := 0; i < len(frames); {
		n, to := l.row(now, frames[i:])
		if n == 0 {
			l.apart(now, &frames[i])
			i++
			continue
		}
		sent, err := l.pass(to, frames[i:i+n])
		if i += sent; sent < n || err != nil {
			l.restore(frames[i:i+n-sent], sent)
			return i, err
		}
	}
	return len(frames), nil
}

// row returns how many frames from the first on leave by one member, and which; 0: the first needs more than that.
func (l *Link) row(now clock.Time, frames []frame.Out) (n, to int) {
	l.origin = l.origin[:0]
	for i := range frames {
		o := &frames[i]
		if !l.Goes(o) || l.tells(o) {
			return i, to
		}
		mac := eth.MAC(o.Head[o.HeadStart+source:])
		member := l.choose(now, o)
		if i > 0 && member != to {
			copy(o.Head[o.HeadStart+source:], mac[:])
			return i, to
		}
		to = member
		l.origin = append(l.origin, mac)
	}
	return len(frames), to
}

// choose returns by which member a frame leaves, and puts the address there that it comes from then.
func (l *Link) choose(now clock.Time, o *frame.Out) int {
	head := o.Head[o.HeadStart:o.HeadEnd]
	if len(head) >= len(l.head) || len(o.Payload) == 0 {
		i := l.engine.Send(now, head, o.Len())
		l.restage(o, head)
		return i
	}
	n := copy(l.head[:], head)
	b := l.head[:n+copy(l.head[n:], o.Payload)]
	i := l.engine.Send(now, b, o.Len())
	copy(head[source:eth.EthernetLen-2], b[source:])
	l.restage(o, head)
	return i
}

// restage has a frame sent from its pieces, if it is not what is in one piece elsewhere any more.
func (l *Link) restage(o *frame.Out, head []byte) {
	if len(o.Staged) >= eth.EthernetLen && eth.MAC(o.Staged[source:]) != eth.MAC(head[source:]) {
		o.Staged = nil
	}
}

// restore puts back where frames that were not sent come from: another member may send them next time.
func (l *Link) restore(frames []frame.Out, sent int) {
	for i := range frames {
		o := &frames[i]
		copy(o.Head[o.HeadStart+source:], l.origin[sent+i][:])
	}
}

// pass hands frames to a member; without one they are lost.
func (l *Link) pass(to int, frames []frame.Out) (n int, err error) {
	if to < 0 {
		for i := range frames {
			l.Refused(&frames[i], 0)
		}
		return len(frames), nil
	}
	m := &l.members[l.at[to]]
	n, err = m.Send(frames)
	for i := range frames[:n] {
		l.Sent(&frames[i])
		count, bytes := frames[i].OnWire()
		m.traffic.SentFrames += uint64(count)
		m.traffic.SentBytes += uint64(bytes)
	}
	return n, err
}

// apart sends a frame that does not go as it is, or waits for its neighbour, or is lost.
func (l *Link) apart(now clock.Time, o *frame.Out) {
	if !l.Goes(o) && !(l.Deal(o) && l.Goes(o)) {
		l.turn(now)
		return
	}
	l.whole = append(append(append(l.whole[:0], o.Head[o.HeadStart:o.HeadEnd]...), o.Payload...), o.Tail[:o.TailLen]...)
	if i := l.engine.Send(now, l.whole, len(l.whole)); i >= 0 && l.emit(i, l.whole, o.Task) {
		l.Sent(o)
		return
	}
	l.Refused(o, 0)
}

// tells reports whether a frame may say where a station is, and the engine must see it whole.
func (l *Link) tells(o *frame.Out) bool {
	if l.kind != team.RLB && l.kind != team.ALB {
		return false
	}
	n := copy(l.head[:], o.Head[o.HeadStart:o.HeadEnd])
	b := l.head[:n+copy(l.head[n:], o.Payload)]
	at := eth.EthernetLen - 2
	if len(b) >= at+eth.VLANLen+2 && eth.EtherType(binary.BigEndian.Uint16(b[at:])) == eth.TypeVLAN {
		at += eth.VLANLen
	}
	switch eth.EtherType(binary.BigEndian.Uint16(b[at:])) {
	case eth.TypeARP:
		return true
	case eth.TypeIPv6:
		return len(b) >= at+2+eth.IPv6Len && eth.IPv6(b[at+2:]).NextHeader() == eth.ProtocolICMPv6
	}
	return false
}

// emit sends a whole frame by the member at a place, and reports whether that took it.
func (l *Link) emit(place int, f []byte, task offload.Task) bool {
	i := l.at[place]
	if i == none { // what LACP had to say to one that has left
		return false
	}
	o := &l.own[0]
	o.Reset(nil)
	o.HeadEnd = o.HeadStart + uint16(copy(o.Head[o.HeadStart:], f[:eth.EthernetLen]))
	o.Payload, o.Task = f[eth.EthernetLen:], task
	n, err := l.members[i].Send(l.own[:])
	if o.Payload = nil; n != 1 || err != nil {
		return false
	}
	t := &l.members[i].traffic
	t.SentFrames++
	t.SentBytes += uint64(len(f))
	return true
}
