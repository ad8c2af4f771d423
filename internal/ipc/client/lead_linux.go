package client

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/wait"
)

// tracks are a program's side of its tracks. One goroutine at a time is the poll owner: it handles what the driver
// puts there, for all. It is one of those waiting for an answer or, if there are none, the reader of the stream.
type tracks struct {
	mem   []byte
	owner wait.Owner
	taken atomic.Uint32 // frames read from the stream since the tracks were set up

	// The poll owner's; in is set before there is one.
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
	l.owner.Init()
	l.in = stream.OpenTrack(l.mem[stream.TrackSize():])
	l.spin.Policy = wait.Of(wait.Track)
	l.in.Sleep()
	c.out.UseTrack(stream.OpenTrack(l.mem))
	return nil
}

// enter registers a waiter until leave.
func (l *tracks) enter() { l.owner.Follow() }

// leave undoes enter. The last waiter may just have been asked to poll.
func (l *tracks) leave(c *Client) {
	if l.owner.Unfollow() && l.owner.TryOwn() { // otherwise the poll owner sees that nobody waits
		l.serve(c, func() bool { return true })
	}
}

// poll polls for all, unless somebody else does, until enough returns true or it is time to sleep. The caller must
// be a waiter.
func (l *tracks) poll(c *Client, enough func() bool) {
	if l.in == nil || !l.owner.Promote() {
		return
	}
	l.serve(c, enough)
	l.owner.Follow()
}

// offered holds a token for a waiter that is to poll.
func (l *tracks) offered() <-chan struct{} { return l.owner.Offered() }

// serve is attend for anyone but the reader of the stream.
func (l *tracks) serve(c *Client, enough func() bool) {
	if err := l.attend(c, enough); err != nil {
		c.fail(removed(err))
		_ = c.conn.Close() // makes the reader of the stream end
	}
}

// wokenUp polls for a while; the reader of the stream calls it.
func (c *Client) wokenUp() error {
	l := &c.tracks
	if l.in == nil {
		return nil
	}
	l.owner.Own()
	return l.attend(c, nil)
}

// attend handles frames until enough returns true, or there are none for a while. The caller is the poll
// owner, and no longer so when attend returns.
//
// A poll owner that has enough while others still wait hands over to one of them, and the driver need not
// wake anybody.
func (l *tracks) attend(c *Client, enough func() bool) error {
	for {
		behind, err := l.watch(c, enough)
		if err == nil && !behind && enough != nil && enough() && l.owner.Followed() {
			l.owner.Disown()
			if l.owner.Offer() || !l.owner.TryOwn() {
				return nil
			}
			continue
		}
		l.in.Sleep()
		empty := l.in.Empty()
		l.owner.Disown()
		// What is put after the word above is set comes with a wake-up. What
		// must wait for a frame of the stream is taken by the reader.
		if err != nil || empty || behind || !l.owner.TryOwn() {
			return err
		}
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
