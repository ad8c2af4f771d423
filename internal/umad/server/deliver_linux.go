package server

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

// message is a message that waits to be written.
type message struct {
	data []byte
	file int // memory file with all of a long one, or -1
	size int
}

func (m *message) close() {
	if m.file >= 0 {
		unix.Close(m.file)
	}
}

// deliver passes a MAD to a program, at once if possible. The caller holds the lock.
func (s *Server) deliver(c *client, m *agent.Message) {
	if s.clients[c.fd] != c {
		return
	}
	if c.many && len(m.Data) <= mad.Len {
		s.gather(c, m)
		return
	}
	s.frame = m.Append(s.frame[:0])
	k := message{file: -1, size: len(m.Data) + 1024}
	if len(m.Data) > socket.MaxInline {
		fd, err := longFile(m.Data)
		if err != nil {
			s.dropped++
			return
		}
		k.file = fd
		s.frame = append(s.frame, m.Data[:mad.Len]...)
	} else {
		s.frame = append(s.frame, m.Data...)
	}
	k.data = s.frame
	s.put(c, k)
}

// gather appends a MAD to others for the program. They are written when there are enough, or when the loop
// has handled everything that it has read.
func (s *Server) gather(c *client, m *agent.Message) {
	if len(c.gathered) == 0 {
		s.gathering = append(s.gathering, c)
	}
	c.gathered = append(m.Append(c.gathered), m.Data...)
	if !s.busy || len(c.gathered) >= socket.Together*socket.EachLen {
		s.releaseAll()
	}
}

// release writes what was gathered for programs.
func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseAll()
}

// releaseAll is release for callers that hold the lock.
func (s *Server) releaseAll() {
	for _, c := range s.gathering {
		if s.clients[c.fd] == c {
			s.put(c, message{data: c.gathered, file: -1, size: len(c.gathered) + 1024})
		}
		c.gathered = c.gathered[:0]
	}
	clear(s.gathering)
	s.gathering = s.gathering[:0]
}

// put writes a message, now or later. It does not keep the data. The caller holds the lock.
func (s *Server) put(c *client, k message) {
	if len(c.queue) == 0 && c.write(&k) {
		k.close()
		return
	}
	if len(c.queue) >= maxQueue || c.queued+k.size > maxQueueBytes {
		s.dropped++
		k.close()
		return
	}
	if s.unread+k.size > maxUnread || s.unreadFiles+k.files() > maxFiles {
		slow := s.slowest(k.files() > 0 && s.unreadFiles >= maxFiles)
		s.dropped += uint64(len(slow.queue))
		s.discard(slow)
	}
	k.data = append([]byte(nil), k.data...)
	c.queue = append(c.queue, k)
	s.count(c, &k, 1)
	if len(c.queue) == 1 {
		s.want(c, unix.EPOLLIN|unix.EPOLLOUT)
	}
}

// files returns the number of memory files of a message.
func (m *message) files() int {
	if m.file < 0 {
		return 0
	}
	return 1
}

// count adds a message to what a client has not read, or takes it away: by is 1 or -1.
func (s *Server) count(c *client, m *message, by int) {
	c.queued += by * m.size
	s.unread += by * m.size
	c.files += by * m.files()
	s.unreadFiles += by * m.files()
}

// slowest returns the client that has left the most unread: bytes, or memory files.
func (s *Server) slowest(files bool) (slow *client) {
	for _, c := range s.clients {
		if slow == nil || files && c.files > slow.files || !files && c.queued > slow.queued {
			slow = c
		}
	}
	return slow
}

// discard drops what a client has not read. The caller holds the lock.
func (s *Server) discard(c *client) {
	for i := range c.queue {
		s.count(c, &c.queue[i], -1)
		c.queue[i].close()
	}
	c.queue = nil
}

// Report implements rack.Reporter.
func (s *Server) Report() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("programs of libibumad: %d of %d; bytes unread: %d of %d; messages dropped because they were not read: %d",
		len(s.clients), maxClients, s.unread, maxUnread, s.dropped)
}

// write writes a message; false: that is not possible now. To a closed connection nothing is written.
func (c *client) write(m *message) bool {
	if m.file < 0 {
		_, err := unix.SendmsgN(c.fd, m.data, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENOBUFS)
	}
	_, err := unix.SendmsgN(c.fd, m.data, unix.UnixRights(m.file), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENOBUFS) &&
		!errors.Is(err, unix.ETOOMANYREFS)
}

// flush writes what is queued. The caller holds the lock.
func (s *Server) flush(c *client) {
	for len(c.queue) > 0 && c.write(&c.queue[0]) {
		s.count(c, &c.queue[0], -1)
		c.queue[0].close()
		c.queue[0] = message{}
		c.queue = c.queue[1:]
	}
	if len(c.queue) == 0 {
		c.queue = nil
		s.want(c, unix.EPOLLIN)
	}
}

func (s *Server) want(c *client, events uint32) {
	_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

// longFile returns a memory file with the data. It is not sealed against writing: the kernel refuses that seal (EBUSY)
// while anything else holds one of the file's pages for a moment, as the monitoring of memory accesses does, and the
// program need not be protected from the fabric.
func longFile(data []byte) (int, error) {
	fd, err := unix.MemfdCreate("softvpi-mad", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	for at := 0; at < len(data); {
		n, err := unix.Write(fd, data[at:])
		if err != nil {
			unix.Close(fd)
			return -1, err
		}
		at += n
	}
	return fd, nil
}
