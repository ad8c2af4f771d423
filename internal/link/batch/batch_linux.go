// Package batch sends and receives whole frames through sockets that keep message boundaries, many with one system call
// (sendmmsg, recvmmsg).
package batch

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/link/station"
)

// Most is how many frames one system call takes.
const Most = 64

// message is the kernel's struct mmsghdr.
type message struct {
	header unix.Msghdr
	length uint32
}

// pieces are what a frame.Out consists of: its headers, its payload, pad and ICRC.
const pieces = 3

// Out sends frames. Its zero value sends through a socket that knows where to.
type Out struct {
	messages [Most]message
	vectors  [Most][pieces]unix.Iovec
	name     *byte
	nameLen  uint32
	n        int
}

// To sets the address to which all frames go, in the system's form.
func (b *Out) To(name []byte) { b.name, b.nameLen = &name[0], uint32(len(name)) }

// add puts a frame behind those gathered.
func (b *Out) add(o *frame.Out) {
	v := &b.vectors[b.n]
	k := 0
	for _, p := range [pieces][]byte{o.Head[o.HeadStart:o.HeadEnd], o.Payload, o.Tail[:o.TailLen]} {
		if len(p) > 0 {
			v[k].Base = &p[0]
			v[k].SetLen(len(p))
			k++
		}
	}
	h := &b.messages[b.n].header
	h.Name, h.Namelen, h.Iov = b.name, b.nameLen, &v[0]
	h.SetIovlen(k)
	b.n++
}

// Send sends frames as link.Link says, as far as the stations let them out, and returns how many it has accepted.
func (b *Out) Send(s *station.Set, fd int, frames []frame.Out) int {
	n := 0
	for n < len(frames) {
		b.n = 0
		for b.n < Most && n+b.n < len(frames) && s.Goes(&frames[n+b.n]) {
			b.add(&frames[n+b.n])
		}
		gathered := b.n
		sent := b.flush(s, fd, frames[n:])
		n += sent
		if sent < gathered {
			s.Counted().SendBlocked++
			return n
		}
		if gathered < Most && n < len(frames) && !s.Goes(&frames[n]) && !s.Deal(&frames[n]) {
			n++
		}
	}
	return n
}

// flush sends what was gathered, the first of frames, and returns how many of them the system took or refused for good.
func (b *Out) flush(s *station.Set, fd int, frames []frame.Out) (done int) {
	for done < b.n {
		k, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.messages[done])), uintptr(b.n-done),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			for range k {
				s.Sent(&frames[done])
				done++
			}
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			clear(b.vectors[:b.n])
			return done
		default:
			s.Refused(&frames[done], kind(errno))
			done++
		}
	}
	clear(b.vectors[:b.n])
	return done
}

// kind returns what a refusal says about a destination; 0: nothing.
func kind(errno unix.Errno) link.UnreachableKind {
	if errno == unix.EMSGSIZE {
		return link.PacketTooBig
	}
	return 0
}

// One sends a single whole frame. What the system does not take is lost.
func (b *Out) One(fd int, f []byte) {
	v := unix.Iovec{Base: &f[0]}
	v.SetLen(len(f))
	h := unix.Msghdr{Name: b.name, Namelen: b.nameLen, Iov: &v}
	h.SetIovlen(1)
	_, _, _ = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// In receives frames into memory of its own.
type In struct {
	messages [Most]message
	vectors  [Most]unix.Iovec
	memory   []byte
	size     int
	control  []byte
	space    int
}

// NewIn returns an In for frames of up to size bytes, with up to control bytes of ancillary data each.
func NewIn(size, control int) *In {
	b := &In{memory: make([]byte, Most*size), size: size, control: make([]byte, Most*control), space: control}
	for i := range b.messages {
		b.vectors[i].Base = &b.memory[i*size]
		b.vectors[i].SetLen(size)
		h := &b.messages[i].header
		h.Iov = &b.vectors[i]
		h.SetIovlen(1)
		if control > 0 {
			h.Control = &b.control[i*control]
		}
	}
	return b
}

// Receive receives at most most frames, and returns their number. They are valid until the next call.
func (b *In) Receive(fd, most int) (int, unix.Errno) {
	most = min(most, Most)
	if b.space > 0 {
		for i := range most {
			b.messages[i].header.SetControllen(b.space)
		}
	}
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&b.messages[0])), uintptr(most),
			unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n), 0
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// Frame returns frame i; ok is false if it was longer than there is room for.
func (b *In) Frame(i int) (f []byte, ok bool) {
	at, n := i*b.size, min(int(b.messages[i].length), b.size)
	return b.memory[at : at+n : at+b.size], b.messages[i].header.Flags&unix.MSG_TRUNC == 0
}

// Control returns the ancillary data of frame i.
func (b *In) Control(i int) []byte {
	at := i * b.space
	return b.control[at : at+min(int(b.messages[i].header.Controllen), b.space)]
}
