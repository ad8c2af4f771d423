package ethernet

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// largePieces are a virtio header, and what a frame.Out consists of.
const largePieces = 4

// largeOut sends frames of which something is left to do, which the system does or leaves to the next: a packet socket with
// PACKET_VNET_HDR, whose frames have a virtio header before them.
type largeOut struct {
	fd      int
	header  [offload.HeaderLen]byte
	vector  [largePieces]unix.Iovec
	message unix.Msghdr
}

// plain returns how many frames at the front are complete.
func plain(frames []frame.Out) int {
	for i := range frames {
		if frames[i].Task != (offload.Task{}) {
			return i
		}
	}
	return len(frames)
}

// send sends a frame as far as the stations let it out. It returns false if the system has no room for it.
func (l *largeOut) send(s *station.Set, o *frame.Out) bool {
	if !s.Goes(o) && (!s.Deal(o) || !s.Goes(o)) {
		return true
	}
	h, ok := o.Task.HeaderOf(o.Head[o.HeadStart:o.HeadEnd])
	if !ok {
		s.Refused(o, 0)
		return true
	}
	h.Put(l.header[:])
	n := 0
	for _, p := range [largePieces][]byte{l.header[:], o.Head[o.HeadStart:o.HeadEnd], o.Payload, o.Tail[:o.TailLen]} {
		if len(p) > 0 {
			l.vector[n].Base = &p[0]
			l.vector[n].SetLen(len(p))
			n++
		}
	}
	l.message.Iov = &l.vector[0]
	l.message.SetIovlen(n)
	defer clear(l.vector[:])
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(l.fd), uintptr(unsafe.Pointer(&l.message)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch errno {
		case 0:
			s.Sent(o)
			return true
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			s.Counted().SendBlocked++
			return false
		default:
			s.Refused(o, 0)
			return true
		}
	}
}

// leave returns what is left to do for a frame that the system has handed over with a virtio header. What cannot be left,
// because nobody takes it so, is done here; ok is false if it cannot be.
func leave(s *station.Set, h offload.Header, f []byte) (t offload.Task, ok bool) {
	if !s.Listened() {
		if h.NeedsChecksum {
			complete(h, f)
		}
		return t, true
	}
	if !s.HearsLarge(f) && f[0]&1 == 0 {
		if h.NeedsChecksum {
			sum(h, f)
		}
		return t, true
	}
	var e eth.Headers
	if !e.Parse(f) {
		return t, false
	}
	t, err := h.Task(&e)
	if err == nil {
		return t, true
	}
	sum(h, f)
	return offload.Task{}, h.Kind == offload.Whole
}

// sum makes the checksum of a frame, whatever it is of; where there is no place for it there is none.
func sum(h offload.Header, f []byte) {
	n := etherLen(f)
	h.ChecksumStart -= n
	_ = offload.Complete(h, f[n:])
}
