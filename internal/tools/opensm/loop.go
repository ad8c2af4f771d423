package opensm

import (
	"context"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/umad"
)

// loop drives a subnet manager on a port. One goroutine reads, so that the fabric never waits for the one that writes.
type loop struct {
	sm    *subnet.SM
	t     umad.Transport
	start time.Time

	mu      sync.Mutex
	in      []umad.Datagram
	inErr   error
	wake    chan struct{}
	working []umad.Datagram
	out     [64]subnet.Packet
}

func newLoop(sm *subnet.SM, t umad.Transport) *loop {
	return &loop{sm: sm, t: t, start: time.Now(), wake: make(chan struct{}, 1)}
}

func (l *loop) now() clock.Time { return clock.Time(time.Since(l.start)) }

// maxWaiting bounds the MADs that have come and were not looked at: more are dropped, as a card would.
const maxWaiting = 1 << 16

func (l *loop) read() {
	var d umad.Datagram
	for {
		err := l.t.Receive(&d)
		l.mu.Lock()
		if err != nil {
			l.inErr = err
		} else if len(l.in) < maxWaiting {
			l.in = append(l.in, d)
		}
		first := len(l.in) == 1 || err != nil
		l.mu.Unlock()
		if first {
			select {
			case l.wake <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// run drives the manager until the context ends, the port fails, or each says that it is enough.
func (l *loop) run(ctx context.Context, rescan <-chan struct{}, each func() (done bool, err error)) error {
	go l.read()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if err := l.take(); err != nil {
			return err
		}
		now := l.now()
		if !now.Before(l.sm.Deadline()) {
			l.sm.Advance(now)
		}
		sent, err := l.transmit()
		if err != nil {
			return err
		}
		if done, err := each(); done || err != nil {
			return err
		}
		if sent {
			continue
		}
		wait := time.Hour
		if d := l.sm.Deadline(); d != clock.Never {
			wait = min(wait, max(0, d.Sub(l.now())))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.wake:
		case <-rescan:
			l.sm.Rescan(l.now())
		case <-timer.C:
		}
	}
}

// take hands over what has come.
func (l *loop) take() error {
	l.mu.Lock()
	l.in, l.working = l.working[:0], l.in
	err := l.inErr
	l.mu.Unlock()
	now := l.now()
	for i := range l.working {
		d := &l.working[i]
		p := subnet.Packet{LID: d.Remote.LID, QPN: d.Remote.QP, LocalQPN: d.LocalQP, MAD: d.MAD}
		if d.Failed {
			l.sm.Failed(now, &p)
		} else {
			l.sm.Receive(now, &p)
		}
	}
	if len(l.working) == 0 {
		return err
	}
	return nil
}

// transmit sends what is to be sent now.
func (l *loop) transmit() (some bool, err error) {
	n := l.sm.Transmit(l.now(), l.out[:])
	for i := range n {
		p := &l.out[i]
		d := umad.Datagram{Remote: umad.Address{LID: p.LID, QP: p.QPN}, LocalQP: p.LocalQPN, MAD: p.MAD}
		if err := l.t.Send(&d); err != nil {
			return true, err
		}
	}
	return n > 0, nil
}
