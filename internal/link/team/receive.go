package team

import (
	"net"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
)

// Receive implements link.Link. Members take turns in being asked first.
func (l *Link) Receive(in []frame.In) (int, error) {
	l.state.Lock()
	defer l.state.Unlock()
	if l.Ended() {
		return 0, net.ErrClosed
	}
	n, now := l.Looped(in), l.now()
	for k := range l.members {
		i := (l.next + k) % len(l.members)
		got, err := l.members[i].Receive(in[n:])
		if err != nil {
			return n, err
		}
		n += l.sift(now, i, in[n:n+got], in[n:])
	}
	l.next = (l.next + 1) % max(len(l.members), 1)
	l.turn(now)
	return n, nil
}

// sift hands up what of a member's frames is for the stations, to the beginning of in.
func (l *Link) sift(now clock.Time, i int, got, in []frame.In) (n int) {
	m := &l.members[i]
	t := &m.traffic
	for k := range got {
		f := got[k]
		t.ReceivedFrames++
		t.ReceivedBytes += uint64(len(f.Data))
		if !l.engine.Receive(now, m.place, f.Data) || !l.Wants(f.Data) {
			continue
		}
		l.Hand(in[n:], f.Data, f.Task)
		in[n].BadFCS = f.BadFCS
		n++
	}
	return n
}
