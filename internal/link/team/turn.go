package team

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/offload"
)

// wire takes a frame of the stations', from any goroutine: whoever owns the link sends it in its next turn.
func (l *Link) wire(b []byte) {
	l.mu.Lock()
	first := len(l.waits) == 0
	if len(l.waits) < mostWaiting {
		l.waits = append(l.waits, slices.Clone(b))
	}
	l.mu.Unlock()
	if first {
		l.notify()
	}
}

// arm sets the stations' timer.
func (l *Link) arm(after time.Duration) {
	if l.timer.Stop(); after >= 0 {
		l.timer.Reset(after)
	}
}

// Errors implements link.Link.
func (l *Link) Errors(out []link.Unreachable) (n int) {
	l.state.Lock()
	defer l.state.Unlock()
	if l.Ended() {
		return 0
	}
	now := l.now()
	for i := range l.members {
		n += l.members[i].Errors(out[n:])
		l.look(now, i)
	}
	if mtu := l.mtu(); mtu != l.caps.MTU {
		l.caps.MTU = mtu
		l.SetMTU(mtu)
	}
	l.Tend(false)
	l.turn(now)
	return n + l.Set.Errors(out[n:])
}

// look tells the engine how a member's wire is. One that knows nothing of that is there.
func (l *Link) look(now clock.Time, i int) {
	s := link.State{Up: true}
	if c := l.members[i].Capabilities().Carrier; c != nil {
		s = c.WireState()
	}
	l.engine.SetLink(now, l.members[i].place, s.Up, s.Speed)
}

// turn does what the engine has due, and sends what it and the stations have to say.
func (l *Link) turn(now clock.Time) {
	l.engine.Advance(now)
	for _, n := range l.engine.News() {
		if i := l.at[n.Member]; i != none {
			l.changed(l.members[i].name, n)
		}
	}
	l.mu.Lock()
	l.waits, l.taken = l.taken[:0], l.waits
	l.mu.Unlock()
	for _, f := range l.taken {
		if i := l.engine.Send(now, f, len(f)); i >= 0 {
			l.emit(i, f, offload.Task{})
		}
	}
	clear(l.taken)
	l.taken = l.taken[:0]
	for i, f := l.engine.Frame(now); f != nil; i, f = l.engine.Frame(now) {
		l.emit(i, f, offload.Task{})
	}
	due := l.engine.Deadline()
	if due == l.due {
		return
	}
	l.due = due
	if l.alarm.Stop(); due != clock.Never {
		l.alarm.Reset(max(due.Sub(now), 0))
	}
}
