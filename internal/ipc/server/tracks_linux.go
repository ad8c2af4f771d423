package server

import (
	"bufio"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/ipc/shared"
	"github.com/softvpi/softvpi/internal/ipc/stream"
	"github.com/softvpi/softvpi/internal/wait"
)

// The driver's side of a program's tracks.

// trackBatch is how many frames are taken from a track before its stream is checked.
const trackBatch = 256

// sendTracks passes the memory of the tracks if the program requested them. From then on both directions
// use them.
func (n *session) sendTracks() error {
	if !n.trackd {
		return nil
	}
	if err := n.hold(2*stream.TrackSize(), "a pair of tracks"); err != nil {
		return err
	}
	fd, mem, err := shared.New("softvpi-tracks", 2*stream.TrackSize())
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n.tracks, n.track, n.spin = mem, stream.OpenTrack(mem), wait.Spinner{Policy: wait.Of(wait.Track)}
	if err := n.out.Stream(proto.OpTracks, 0, 0, proto.Encode(proto.TracksBody{Bytes: stream.TrackBytes}), fd); err != nil {
		return err
	}
	n.out.UseTrack(stream.OpenTrack(mem[stream.TrackSize():]))
	return nil
}

// closeTracks releases them when nobody uses them any more.
func (n *session) closeTracks() {
	if n.tracks == nil {
		return
	}
	n.out.UseTrack(nil)
	_ = unix.Munmap(n.tracks)
	n.tracks, n.track = nil, nil
}

// serveTrack handles what the program puts into its track until the stream must be read: because it has
// something, or because the track is empty and the program knows that it must wake the driver.
func (n *session) serveTrack(in *bufio.Reader, buf *[]byte) error {
	if n.track == nil {
		return nil
	}
	n.track.Wake()
	if !n.track.Empty() {
		n.spin.End(wait.Now()) // it came while the driver slept
	}
	for k := 1; ; {
		for ; ; k++ {
			h, body, ok, err := n.track.Take(buf, proto.MaxRequest)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if err := n.frame(h, body); err != nil {
				return err
			}
			if k%trackBatch == 0 && n.streamHas(in) {
				return nil
			}
		}
		if in.Buffered() > 0 {
			return nil
		}
		if err := n.out.Flush(); err != nil {
			n.failed(err)
		}
		if n.track.Waits(&n.spin) {
			n.spin.End(wait.Now())
			continue
		}
		n.track.Sleep()
		if n.track.Empty() {
			return nil
		}
		n.track.Wake()
	}
}

// streamHas reports whether the stream has something to read, or has ended.
func (n *session) streamHas(in *bufio.Reader) bool {
	if in.Buffered() > 0 || n.ctx.Err() != nil {
		return true
	}
	raw, err := n.conn.SyscallConn()
	if err != nil {
		return true
	}
	has := true
	_ = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		has = err != unix.EAGAIN
	})
	return has
}
