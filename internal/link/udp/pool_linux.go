package udp

import "golang.org/x/sys/unix"

// bindSource adds a socket that sends from port.
func (l *socketLink) bindSource(port uint16) error {
	fd, err := newSocket(l.v4)
	if err != nil {
		return err
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
	l.sources = append(l.sources, fd)
	return nil
}

// socketFD returns the descriptor of a Route.Socket.
func (l *socketLink) socketFD(i uint8) int {
	if i == 0 || int(i) > len(l.sources) {
		return l.fd
	}
	return l.sources[i-1]
}

// watchSocket adds a socket to those watched by the second descriptor.
func (l *socketLink) watchSocket(fd int) error {
	return unix.EpollCtl(l.watch, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}
