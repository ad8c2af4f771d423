package ipc

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/softvpi/softvpi/internal/ipc/shared"
	"golang.org/x/sys/unix"
)

// tracks are a program's side of its tracks. One goroutine at a time leads: it takes what the
// driver puts there, for all. It is one of those who wait for an answer, or the
// reader of the stream while nobody does.
type tracks struct {
	mem   []byte
	turn  chan struct{} // one token: somebody who waits may lead
	waits atomic.Int32  // who waits and does not lead
	taken atomic.Uint32 // frames of the stream that were taken since the tracks came

	mu    sync.Mutex // held by who leads
	in    *track
	buf   []byte
	vigil vigil
}

// takeTracks takes the tracks, the last thing that comes before the program may go on.
func (c *Client) takeTracks() error {
	h, body, err := c.expect(opTracks, "the tracks")
	if err != nil {
		return err
	}
	if b, err := decode[tracksBody](body); err != nil || b.Bytes != trackBytes {
		return fmt.Errorf("%w: tracks in a frame of %d bytes", errFrame, len(body))
	}
	fd, err := c.descriptor(h, "tracks")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	l := &c.tracks
	if l.mem, err = shared.Map(fd, uint64(2*trackSize())); err != nil {
		return err
	}
	l.in, l.turn = openTrack(l.mem[trackSize():]), make(chan struct{}, 1)
	l.in.sleep()
	c.out.useTrack(openTrack(l.mem))
	return nil
}

// enter notes one who waits, until leave, and leads when it is asked to by a token.
func (l *tracks) enter() { l.waits.Add(1) }

// leave takes that back. The last one who waited may have been asked to lead just now.
func (l *tracks) leave(c *Client) {
	if l.waits.Add(-1) > 0 || l.in == nil {
		return
	}
	select {
	case <-l.turn:
	default:
		return
	}
	if l.mu.TryLock() { // else whoever leads sees that nobody waits
		l.serve(c, func() bool { return true })
	}
}

// lead leads until there is enough, where nobody else does, or until it is time to sleep. The caller
// is one who waits.
func (l *tracks) lead(c *Client, enough func() bool) {
	if l.in == nil || !l.mu.TryLock() {
		return
	}
	l.waits.Add(-1)
	l.serve(c, enough)
	l.waits.Add(1)
}

// serve is attend for all but the reader of the stream.
func (l *tracks) serve(c *Client, enough func() bool) {
	if err := l.attend(c, enough); err != nil {
		c.fail(removed(err))
		_ = c.conn.Close() // the reader of the stream ends
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
// Who has enough while others still wait has one of them go on, and the driver
// need not nudge. Each of them sees the token, or takes itself off those who wait first: then whoever
// put the token sees that nobody does, and takes it back, or the last of them does.
func (l *tracks) attend(c *Client, enough func() bool) error {
	for {
		behind, err := l.watch(c, enough)
		if err == nil && !behind && enough != nil && enough() && l.waits.Load() > 0 {
			l.mu.Unlock() // first: whoever takes the token must find that nobody leads
			if l.hand() || !l.mu.TryLock() {
				return nil
			}
			continue
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

// hand has one of those who wait lead; false: nobody waits any more.
func (l *tracks) hand() bool {
	select {
	case l.turn <- struct{}{}:
	default: // one is there, and not taken yet
	}
	if l.waits.Load() > 0 {
		return true
	}
	select {
	case <-l.turn:
		return false
	default:
		return true // somebody took it
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
