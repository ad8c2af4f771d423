package udp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The data path enters the kernel by RawSyscall: its calls do not block, and notifying the scheduler of
// each would cost more than the calls.

// message is the kernel's struct mmsghdr.
type message struct {
	header unix.Msghdr
	length uint32
}

func sendMessages(fd int, m []message) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m[0])),
		uintptr(len(m)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

func receiveMessages(fd int, m []message, flags int) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&m[0])),
		uintptr(len(m)), uintptr(unix.MSG_DONTWAIT|flags), 0, 0)
	return int(n), errno
}

// beginMessage begins a message without data, which is continued by what is sent next.
func beginMessage(fd int, h *unix.Msghdr) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(h)),
		unix.MSG_MORE|unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	return errno
}

// dropMessage drops a message that was begun, if any: the system forgets all of it when it cannot read what is to be added, here
// a byte at address 0. To send it as it is would send a datagram that is no packet, and an empty one over IPv6 ends the kernel of a
// host with Linux's Soft-RoCE.
func dropMessage(fd int) {
	var v unix.Iovec
	v.SetLen(1)
	h := unix.Msghdr{Iov: &v}
	h.SetIovlen(1)
	_, _, _ = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)),
		unix.MSG_MORE|unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// fillPipe moves pages of memory to a pipe.
func fillPipe(pipe int, v *unix.Iovec) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_VMSPLICE, uintptr(pipe), uintptr(unsafe.Pointer(v)), 1, unix.SPLICE_F_NONBLOCK, 0, 0)
	return int(n), errno
}

// emptyPipe moves n bytes from a pipe to a socket.
func emptyPipe(pipe, socket, n int) (int, unix.Errno) {
	done, _, errno := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(pipe), 0, uintptr(socket), 0, uintptr(n), unix.SPLICE_F_NONBLOCK)
	return int(done), errno
}

const (
	controlHeader = unix.SizeofCmsghdr
	// controlSpace is the space of one control message of up to 8 bytes.
	controlSpace = controlHeader + 8
)

// putControl writes a control message with an n-byte value (2 or 4) to the beginning of b and returns its
// space.
func putControl(b []byte, level, kind int32, value uint32, n int) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	h.Level, h.Type = level, kind
	h.SetLen(controlHeader + n)
	if n == 2 {
		*(*uint16)(unsafe.Pointer(&b[controlHeader])) = uint16(value)
	} else {
		*(*uint32)(unsafe.Pointer(&b[controlHeader])) = value
	}
	return controlSpace
}

// nextControl splits off the first control message of b; data is nil if there is no complete one.
func nextControl(b []byte) (level, kind int32, data, rest []byte) {
	if len(b) < controlHeader {
		return 0, 0, nil, nil
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	n := int(h.Len)
	if n < controlHeader || n > len(b) {
		return 0, 0, nil, nil
	}
	end := min((n+unix.SizeofPtr-1)&^(unix.SizeofPtr-1), len(b))
	return h.Level, h.Type, b[controlHeader:n:n], b[end:]
}

// controlInt reads a value of 1, 2 or 4 bytes.
func controlInt(b []byte) int {
	switch {
	case len(b) >= 4:
		return int(*(*int32)(unsafe.Pointer(&b[0])))
	case len(b) >= 2:
		return int(*(*uint16)(unsafe.Pointer(&b[0])))
	case len(b) == 1:
		return int(b[0])
	}
	return 0
}
