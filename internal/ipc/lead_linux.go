package ipc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// tracks are a program's side of its tracks. One goroutine at a time leads: it takes what the
// driver puts there, for all. It is one of those who wait for an answer, or the
// reader of the stream while nobody does.
type tracks struct {
	mem   []byte
	turn  chan struct{} // one token: somebody who waits may lead
	taken atomic.Uint32 // frames of the stream that were taken since the tracks came

	mu    sync.Mutex // held by who leads
	in    *track
	buf   []byte
	vigil vigil
}

// takeTracks takes the tracks, the last thing that comes before the program may go on.
func (c *Client) takeTracks() error {
	var buf []byte
	h, body, err := readFrame(c.in, &buf, maxFrame)
	if err != nil {
		return err
	}
	if h.Op == opGoodbye {
		return farewell(body)
	}
	b, err := decode[tracksBody](body)
	if h.Op != opTracks || err != nil || b.Bytes != trackBytes {
		return fmt.Errorf("%w: operation %d with %d bytes before the tracks", errFrame, h.Op, len(body))
	}
	fds, err := c.in.take(h.fds())
	if err != nil {
		return err
	}
	for _, fd := range fds {
		defer unix.Close(fd)
	}
	if len(fds) != 1 {
		return fmt.Errorf("%w: tracks with %d descriptors", errFrame, len(fds))
	}
	l := &c.tracks
	if l.mem, err = mapShared(fds[0], uint64(2*trackSize())); err != nil {
		return err
	}
	l.in, l.turn = openTrack(l.mem[trackSize():]), make(chan struct{}, 1)
	l.in.sleep()
	c.out.useTrack(openTrack(l.mem))
	return nil
}

// lead leads until the answer is there, where nobody else does, or until it is time to sleep.
func (l *tracks) lead(c *Client, ctx context.Context, ch chan reply) {
	if l.in == nil || !l.mu.TryLock() {
		return
	}
	if err := l.attend(c, func() bool { return len(ch) > 0 || ctx.Err() != nil }); err != nil {
		c.fail(removed(err))
		_ = c.conn.Close() // the reader of the stream ends
	}
}

// left is called by one who gave up waiting: it may have been the one to lead.
func (l *tracks) left(c *Client) {
	if l.in == nil {
		return
	}
	l.mu.Lock()
	if err := l.attend(c, func() bool { return true }); err != nil {
		c.fail(removed(err))
		_ = c.conn.Close()
	}
}

// nudged leads for a while, called by the reader of the stream.
func (c *Client) nudged() error {
	l := &c.tracks
	if l.in == nil {
		return nil
	}
	l.mu.Lock()
	return l.attend(c, nil)
}

// attend takes frames until there is enough, or none for a while. The caller has the lock,
// and has it no more when this returns.
//
// Who has enough while others still wait for answers has one of them go on, and the driver
// need not nudge. They are still there then: only a leader has answers for them, and looks
// itself who waits when it ends; and who gives up calls left.
func (l *tracks) attend(c *Client, enough func() bool) error {
	for {
		behind, err := l.watch(c, enough)
		if err == nil && !behind && enough != nil && enough() && c.calls.wait() {
			l.mu.Unlock() // first: whoever takes the token must find that nobody leads
			select {
			case l.turn <- struct{}{}:
			default: // one is there, and not taken yet
			}
			return nil
		}
		l.in.sleep()
		empty := l.in.empty()
		l.mu.Unlock()
		// What is put after the word above comes with a nudge. What waits for a frame of the stream
		// the reader of that takes.
		if err != nil || empty || behind || !l.mu.TryLock() {
			return err
		}
	}
}

// watch takes frames. It reports whether the next must wait for a frame of the stream.
func (l *tracks) watch(c *Client, enough func() bool) (behind bool, err error) {
	l.in.wake()
	if !l.in.empty() {
		l.vigil.end()
	}
	for {
		for !l.in.empty() {
			if l.behind() {
				return true, nil
			}
			h, body, _, err := l.in.take(&l.buf, maxFrame)
			if err == nil {
				err = c.frame(h, body)
			}
			if err != nil {
				return false, err
			}
		}
		if enough != nil && enough() || c.stop.Load() {
			return false, nil
		}
		if l.behind() || !l.vigil.keep(func() bool { return !l.in.empty() }) {
			return false, nil
		}
		l.vigil.end()
	}
}

// behind reports whether the driver has sent frames on the stream that were not taken: they
// come before what it has put into the track since. (A frame may be taken before the driver
// has counted it.)
func (l *tracks) behind() bool { return int32(atomic.LoadUint32(l.in.passed)-l.taken.Load()) > 0 }
