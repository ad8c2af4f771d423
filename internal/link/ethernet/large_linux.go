package ethernet

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link/batch"
	"github.com/softvpi/softvpi/internal/link/station"
	"github.com/softvpi/softvpi/internal/offload"
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

// sendLarge sends a frame of which something is left to do. It returns false if the system has no room for it.
func (l *etherLink) sendLarge(o *frame.Out) bool {
	if !o.Task.Kind.InTunnel() {
		return l.large.send(l.Set, o)
	}
	if l.Goes(o) || l.Deal(o) && l.Goes(o) {
		if !l.parts.cut.Begin(o) {
			l.Refused(o, 0)
		}
		l.parts.send(l) // what finds no room goes before the next frame, or with the next turn
	}
	return true
}

// parts are those of a large frame in a tunnel, which packet sockets do not take as it is.
type parts struct {
	cut     station.Parts
	out     [batch.Most]frame.Out
	next, n int // of out, that are to be sent
}

// send sends what is left of a frame. It returns false if the system has no room.
func (p *parts) send(l *etherLink) bool {
	for {
		if p.next == p.n {
			if p.next, p.n = 0, p.cut.Fill(p.out[:]); p.n == 0 {
				return true
			}
		}
		if p.next += l.out.Send(l.Set, l.outlet, p.out[p.next:p.n]); p.next < p.n {
			return false
		}
	}
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
