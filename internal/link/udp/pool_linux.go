package udp

import (
	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/os/openfiles"
)

// bindSource opens the socket of a slot, which sends from port.
func (l *socketLink) bindSource(slot int, port uint16) error {
	fd, err := newSocket(l.v4)
	if err != nil {
		return err
	}
	if fd >= openfiles.Optional(openfiles.Limit()) { // routes can share a port, programs cannot share a connection
		unix.Close(fd)
		return unix.EMFILE
	}
	setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, sourceBuffer)
	setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, defaultSendBuffer)
	l.setMulticastInterface(fd)
	// If the filter is refused, look discards what arrives.
	_ = dropAll(fd)
	err = bind(fd, l.cfg.Addr, port, l.scope)
	if err == nil {
		err = l.watchSocket(fd)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	for slot >= len(l.sources) {
		l.sources = append(l.sources, -1)
	}
	l.sources[slot] = fd
	return nil
}

// unbindSource closes the socket of a slot, which also ends the watch.
func (l *socketLink) unbindSource(slot int) {
	unix.Close(l.sources[slot])
	l.sources[slot] = -1
}

// socketFD returns the descriptor of a path's socket. What a closed one was to send goes through the receiving socket: it is
// of a destroyed QP.
func (l *socketLink) socketFD(i uint16) int {
	if i == 0 || int(i) > len(l.sources) || l.sources[i-1] < 0 {
		return l.fd
	}
	return l.sources[i-1]
}

// watchSocket adds a socket to those watched by the second descriptor.
func (l *socketLink) watchSocket(fd int) error {
	return unix.EpollCtl(l.watch, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}
