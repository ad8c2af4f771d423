package client

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/wait"
)

// tracks are a program's side of its tracks. One goroutine at a time leads: it handles what the driver
// puts there, for all. The leader is one of those waiting for an answer or, if there are none, the reader
// of the stream.
type tracks struct {
	mem   []byte
	turn  chan struct{} // token: a waiter may lead
	waits atomic.Int32  // number of waiters that do not lead
	taken atomic.Uint32 // frames read from the stream since the tracks were set up

	mu   sync.Mutex // held by the leader
	in   *stream.Track
	buf  []byte
	spin wait.Spinner
}

// takeTracks receives the tracks, the last thing before the program may continue.
func (c *Client) takeTracks() error {
	h, body, err := c.expect(proto.OpTracks, "the tracks")
	if err != nil {
		return err
	}
	if b, err := proto.Decode[proto.TracksBody](body); err != nil || b.Bytes != stream.TrackBytes {
		return fmt.Errorf("%w: tracks in a frame of %d bytes", proto.ErrFrame, len(body))
	}
	fd, err := c.descriptor(h, "tracks")
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	l := &c.tracks
	if l.mem, err = shared.Map(fd, uint64(2*stream.TrackSize())); err != nil {
		return err
	}
	l.in, l.turn = stream.OpenTrack(l.mem[stream.TrackSize():]), make(chan struct{}, 1)
	l.spin.Policy = wait.Of(wait.Track)
	l.in.Sleep()
	c.out.UseTrack(stream.OpenTrack(l.mem))
	return nil
}

// enter registers a waiter until leave; a token may ask it to lead.
func (l *tracks) enter() { l.waits.Add(1) }

// leave undoes enter. The last waiter may just have been asked to lead.
func (l *tracks) leave(c *Client) {
	if l.waits.Add(-1) > 0 || l.in == nil {
		return
	}
	select {
	case <-l.turn:
	default:
		return
	}
	if l.mu.TryLock() { // otherwise the leader sees that nobody waits
		l.serve(c, func() bool { return true })
	}
}

// lead leads, unless somebody else does, until enough returns true or it is time to sleep. The caller must
// be a waiter.
func (l *tracks) lead(c *Client, enough func() bool) {
	if l.in == nil || !l.mu.TryLock() {
		return
	}
	l.waits.Add(-1)
	l.serve(c, enough)
	l.waits.Add(1)
}

// serve is attend for anyone but the reader of the stream.
func (l *tracks) serve(c *Client, enough func() bool) {
	if err := l.attend(c, enough); err != nil {
		c.fail(removed(err))
		_ = c.conn.Close() // makes the reader of the stream end
	}
}

// wokenUp leads for a while; the reader of the stream calls it.
func (c *Client) wokenUp() error {
	l := &c.tracks
	if l.in == nil {
		return nil
	}
	l.mu.Lock()
	return l.attend(c, nil)
}

// attend handles frames until enough returns true, or there are none for a while. The caller holds the
// lock; attend has released it when it returns.
//
// A leader that has enough while others still wait hands over to one of them, and the driver need not
// wake anybody. Each waiter either sees the token, or first leaves the waiters: then whoever put the token sees
// that nobody waits and takes it back, or the last waiter does.
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
		l.in.Sleep()
		empty := l.in.Empty()
		l.mu.Unlock()
		// What is put after the word above is set comes with a wake-up. What
		// must wait for a frame of the stream is taken by the reader.
		if err != nil || empty || behind || !l.mu.TryLock() {
			return err
		}
	}
}

// hand asks a waiter to lead; false: nobody waits any more.
func (l *tracks) hand() bool {
	select {
	case l.turn <- struct{}{}:
	default: // there is one that has not been taken yet
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

// watch handles frames. It reports whether the next one must wait for a frame of the stream.
func (l *tracks) watch(c *Client, enough func() bool) (behind bool, err error) {
	l.in.Wake()
	if !l.in.Empty() {
		l.spin.End(wait.Now())
	}
	for {
		for !l.in.Empty() {
			if l.behind() {
				return true, nil
			}
			h, body, _, err := l.in.Take(&l.buf, proto.MaxFrame)
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
		if l.behind() || !l.in.Waits(&l.spin) {
			return false, nil
		}
		l.spin.End(wait.Now())
	}
}

// behind reports whether the driver has sent frames on the stream that have not been read: they precede
// what it has put into the track since. (A frame may be read before the driver has counted it.)
func (l *tracks) behind() bool { return int32(l.in.Streamed()-l.taken.Load()) > 0 }
