package ibsim

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// poll is one thread that waits for the data sockets of all local clients and handles them itself: passing
// each datagram to another goroutine took most of the time of a management datagram.
type poll struct {
	fd   int
	quit int // an eventfd
	once sync.Once
}

// stopping is a number that no client has.
const stopping = ^uint32(0)

func newPoll() (*poll, error) {
	p := &poll{}
	var err error
	if p.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if p.quit, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err == nil {
		err = p.add(p.quit, stopping)
	}
	if err != nil {
		unix.Close(p.fd)
		return nil, err
	}
	return p, nil
}

func (p *poll) add(fd int, number uint32) error {
	return unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(number)})
}

// stop ends the loop, even if it has not begun.
func (p *poll) stop() {
	_, _ = unix.Write(p.quit, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	p.once.Do(p.close) // if it has never begun
}

func (p *poll) close() {
	unix.Close(p.fd)
	unix.Close(p.quit)
	p.fd = -1
}

// run runs until stop. It reads one datagram of a client at a time, so that none keeps others waiting.
func (p *poll) run(s *Server) {
	var events [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(p.fd, events[:], -1)
		s.rack.Lock()
		again := err == nil || errors.Is(err, unix.EINTR)
		for _, e := range events[:max(n, 0)] {
			if c := s.clients[uint32(e.Fd)]; c != nil {
				p.serve(s, c, e.Events)
			}
			again = again && uint32(e.Fd) != stopping
		}
		if !again {
			p.close()
		}
		s.rack.Unlock()
		if !again {
			return
		}
	}
}

// serve handles what a client's socket is ready for.
func (p *poll) serve(s *Server, c *client, events uint32) {
	l, ok := c.socket.(*localSocket)
	if !ok {
		return
	}
	if events&unix.EPOLLOUT != 0 && s.flush(c) {
		l.want(unix.EPOLLIN)
	}
	if events&^unix.EPOLLOUT == 0 {
		return
	}
	var b [dataLen + 1]byte
	n, err := unix.Read(l.fd, b[:])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
	case err != nil:
		s.detach(c)
	case n == dataLen:
		s.carry(c, (*[dataLen]byte)(b[:]))
	}
}

// localSocket is a data socket served by the poll.
type localSocket struct {
	poll   *poll
	fd     int
	number uint32
}

// start starts the loop for the first client.
func (l *localSocket) start(s *Server, _ *client) {
	l.poll.once.Do(func() { s.work.Go(func() { l.poll.run(s) }) })
}

func (l *localSocket) try(b []byte) bool {
	_, err := unix.Write(l.fd, b)
	return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
}

func (l *localSocket) later() { l.want(unix.EPOLLIN | unix.EPOLLOUT) }

func (l *localSocket) want(events uint32) {
	_ = unix.EpollCtl(l.poll.fd, unix.EPOLL_CTL_MOD, l.fd, &unix.EpollEvent{Events: events, Fd: int32(l.number)})
}

func (l *localSocket) close() { unix.Close(l.fd) }
