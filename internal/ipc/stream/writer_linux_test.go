package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/ipc/proto"
)

// streams returns the two ends of a Unix stream socket.
func streams(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "stream")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// TestFramesOfManySenders: frames that many goroutines send at a time arrive whole, each once, and those of one
// sender in order, however they were combined. Descriptors arrive with their frames.
func TestFramesOfManySenders(t *testing.T) {
	const senders, frames = 8, 300
	a, b := streams(t)
	w := NewWriter(a, 0)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for n := range frames {
				body := binary.LittleEndian.AppendUint32(make([]byte, s*16), uint32(n))
				var err error
				switch {
				case s == 0 && n%50 == 0:
					err = w.Send(proto.OpShare, 0, uint64(s), body, 0)
				case n%3 == 0:
					if err = w.Later(proto.OpCredit, 0, uint64(s), body); err == nil {
						err = w.Flush()
					}
				default:
					err = w.Along(proto.OpCredit, uint64(s), body)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	in := NewReader(b)
	defer in.Close()
	var next [senders]uint32
	var buf []byte
	for range senders * frames {
		h, body, err := proto.ReadFrame(in, &buf, proto.MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		s := int(h.ID)
		if s >= senders || len(body) != s*16+4 {
			t.Fatalf("got a frame of sender %d with %d bytes", s, len(body))
		}
		if n := binary.LittleEndian.Uint32(body[s*16:]); n != next[s] {
			t.Fatalf("sender %d: frame %d, want %d", s, n, next[s])
		}
		next[s]++
		fds, err := in.Take(h.FDs())
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	wg.Wait()
}

// TestSendingOnAStreamThatEnded: a send on a stream that has ended returns an error, at the latest with the second
// frame.
func TestSendingOnAStreamThatEnded(t *testing.T) {
	a, b := streams(t)
	b.Close()
	w := NewWriter(a, 0)
	first := w.Along(proto.OpCredit, 1, nil)
	if second := w.Along(proto.OpCredit, 2, nil); first == nil && second == nil {
		t.Error("two frames were sent on a stream that has ended, without an error")
	}
}

// TestWriter_AfterItsOwnDelay: a writer whose deadline has passed before it tries, as in a process that stood still, sends what there is
// room for, with descriptors and without; a reader that does not read makes it fail all the same.
func TestWriter_AfterItsOwnDelay(t *testing.T) {
	a, b := streams(t)
	w, r := NewWriter(a, time.Nanosecond), NewReader(b)
	defer r.Close()
	for i, fds := range [][]int{nil, {int(os.Stdin.Fd())}, nil} {
		if err := w.Send(proto.OpCredit, 0, uint64(i+1), []byte{7}, fds...); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		var buf []byte
		h, body, err := proto.ReadFrame(r, &buf, proto.MaxFrame)
		if err != nil || h.ID != uint64(i+1) || !bytes.Equal(body, []byte{7}) {
			t.Fatalf("frame %d arrives as %+v %v, %v", i, h, body, err)
		}
		if got, err := r.Take(len(fds)); err != nil {
			t.Errorf("frame %d: %v", i, err)
		} else {
			CloseAll(got)
		}
	}
	for _, fds := range [][]int{nil, {int(os.Stdin.Fd())}} {
		a, _ := streams(t)
		w := NewWriter(a, time.Nanosecond)
		var err error
		for most := 1 << 16; err == nil && most > 0; most-- {
			err = w.Send(proto.OpCredit, 0, 1, make([]byte, 1024), fds...)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("to a reader that does not read, with %d descriptors: %v", len(fds), err)
		}
	}
}

// TestEventsFitTracks: a frame with the most events fits into a track, because one sent on the stream would overtake
// others.
func TestEventsFitTracks(t *testing.T) {
	if n := proto.HeaderSize + proto.MaxPush*int(unsafe.Sizeof(command.Event{})); n > longFrame {
		t.Errorf("%d events are a frame of %d bytes: at most %d go by a track", proto.MaxPush, n, longFrame)
	}
}
