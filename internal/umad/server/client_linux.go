package server

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/internal/umad/agent"
	"github.com/softvpi/softvpi/internal/umad/socket"
	"github.com/softvpi/softvpi/wire/mad"
)

// Limits on what a program has not read yet. As in the kernel, what exceeds them is dropped.
const (
	maxQueue      = 1 << 16
	maxQueueBytes = 256 << 20
)

// Limits on what all programs together have not read, in bytes and in memory files, of which each costs a descriptor.
// Beyond them the program with the most loses what it has not read.
const (
	maxUnread = 256 << 20
	maxFiles  = 128
)

// client is a connection.
type client struct {
	fd    int
	place *place // nil: it has not opened a port
	file  *agent.File
	// hopes is how often the loop tries to read another message after one before it goes back to waiting:
	// programs that send many at once account for most messages, and waiting costs as much as reading.
	hopes, events int

	// many: messages to the program may contain several MADs, which are gathered.
	many     bool
	gathered []byte

	// What could not be written at once; guarded by the server.
	queue  []message
	queued int // bytes
	files  int
}

// serve handles what a connection is ready for.
func (s *Server) serve(c *client, events uint32) {
	if events&unix.EPOLLOUT != 0 {
		s.mu.Lock()
		s.flush(c)
		s.mu.Unlock()
	}
	if events&^unix.EPOLLOUT == 0 {
		return
	}
	if c.events++; c.events%probeEach == 0 {
		c.hopes = max(c.hopes, 1)
	}
	for n := 0; n < burst && s.read(c) && c.hopes > 0; n++ {
		c.hopes--
		if n > 0 {
			c.hopes = maxHopes
		}
		s.carry()
	}
}

const (
	// burst is how many messages of one connection are read before the others have their turn.
	burst = 32
	// probeEach is how rarely a second message is looked for if there was none for long, maxHopes how
	// often after one.
	probeEach = 16
	maxHopes  = 4
)

// read reads and handles one message; false: there is none, or the connection has ended.
func (s *Server) read(c *client) bool {
	var control [64]byte // for up to eight descriptors, of which one is wanted
	n, nc, flags, _, err := unix.Recvmsg(c.fd, s.buffer[:], control[:], unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if n == 0 && err == nil { // the end, or a final message: see seqpacket
		if fd := descriptor(control[:nc]); fd >= 0 { // an empty message may bring some
			unix.Close(fd)
		}
		n, nc, flags, _, err = unix.Recvmsg(c.fd, s.buffer[:], control[:], unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return false
	}
	fd := -1
	if nc > 0 {
		fd = descriptor(control[:nc])
	}
	ok := err == nil && n > 0 && flags&unix.MSG_TRUNC == 0
	if ok {
		ok = s.take(c, s.buffer[:n], fd)
	}
	if fd >= 0 {
		unix.Close(fd)
	}
	if !ok {
		s.end(c)
	}
	return ok
}

// descriptor returns the first descriptor received with a message, or -1; it closes the others.
func descriptor(control []byte) int {
	first := -1
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return -1
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if first < 0 {
				first = fd
			} else {
				unix.Close(fd)
			}
		}
	}
	return first
}

// take handles a message; false: it violates the protocol, and the connection ends.
func (s *Server) take(c *client, b []byte, fd int) bool {
	if len(b) < socket.SendLen {
		return false
	}
	if c.place == nil {
		r, ok := socket.ParseRequest(b)
		return ok && s.request(c, &r)
	}
	switch binary.LittleEndian.Uint32(b) {
	case socket.Send:
		return s.send(c, b[socket.SendLen:], fd)
	case socket.SendMany:
		return s.sendMany(c, b[socket.SendLen:])
	case socket.Register:
		r, ok := socket.ParseRegistration(b)
		return ok && s.register(c, &r, fd)
	case socket.Unregister:
		s.mu.Lock()
		ok := c.file.Unregister(binary.LittleEndian.Uint32(b[4:]))
		s.mu.Unlock()
		errno := uint32(0)
		if !ok {
			errno = uint32(unix.EINVAL)
		}
		reply(fd, socket.Answer(errno, 0))
		return true
	}
	return false
}

// reply answers on a socket that was received with a request.
func reply(fd int, b []byte) {
	if fd >= 0 {
		_ = unix.Sendmsg(fd, b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
}

func (s *Server) register(c *client, r *agent.Registration, fd int) bool {
	s.mu.Lock()
	id, err := c.file.Register(*r)
	s.mu.Unlock()
	errno := uint32(0)
	if err != nil {
		errno = uint32(unix.EINVAL)
		var e *agent.RegistrationError
		if errors.As(err, &e) && e.Value > agent.MaxAgents && e.Field == "number of agents" {
			errno = uint32(unix.ENOMEM)
		}
	}
	reply(fd, socket.Answer(errno, id))
	return true
}

// send sends a program's MAD. One that cannot be sent is returned with a status; there the kernel's write
// would fail.
func (s *Server) send(c *client, b []byte, fd int) bool {
	if len(b) < agent.HeaderLen {
		return false
	}
	m := agent.Message{Header: agent.ParseHeader(b), Data: b[agent.HeaderLen:]}
	if fd >= 0 {
		long, err := readFile(fd, int64(m.Length))
		if err != nil {
			return false
		}
		m.Data = long
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post(c, s.now(), &m)
	s.changed(c.place)
	return true
}

// sendMany sends several MADs.
func (s *Server) sendMany(c *client, b []byte) bool {
	if !c.many || len(b)%socket.EachLen != 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for ; len(b) > 0; b = b[socket.EachLen:] {
		s.message = agent.Message{Header: agent.ParseHeader(b), Data: b[agent.HeaderLen:socket.EachLen]}
		s.post(c, now, &s.message)
	}
	s.changed(c.place)
	return true
}

// post passes a MAD to its agent, or back to its program. The caller holds the lock.
func (s *Server) post(c *client, now clock.Time, m *agent.Message) {
	if err := c.file.Send(now, m); err != nil {
		m.Data = m.Data[:min(len(m.Data), mad.HeaderLen)]
		m.Status, m.Length = uint32(unix.EINVAL), uint32(agent.HeaderLen+len(m.Data))
		s.deliver(c, m)
	}
}

// readFile reads a memory file that a program has sealed against shrinking: no other file has seals, so that reading
// never waits for a disk or a pipe. A program that writes meanwhile garbles its own MAD, of which this is a copy.
func readFile(fd int, length int64) ([]byte, error) {
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || got&unix.F_SEAL_SHRINK == 0 {
		return nil, unix.EPERM
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if length < mad.RMPPHeaderEnd || length > agent.MaxLength || st.Size < length {
		return nil, unix.EINVAL
	}
	b := make([]byte, length)
	for at := 0; at < len(b); {
		n, err := unix.Pread(fd, b[at:], int64(at))
		if err != nil || n == 0 {
			return nil, unix.EIO
		}
		at += n
	}
	return b, nil
}

// open turns the connection into an open port; many: messages may contain several MADs.
func (s *Server) open(c *client, at fabric.Place, many bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[at]
	if p == nil {
		p = &place{Port: agent.NewPort(&s.ids), at: at}
		s.places[at] = p
	}
	p.open++
	c.place, c.many = p, many
	c.file = p.Open(func(m *agent.Message) { s.deliver(c, m) })
}

// end closes a connection and releases what it had.
func (s *Server) end(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c.fd)
	unix.Close(c.fd)
	s.discard(c)
	if c.place == nil {
		return
	}
	c.file.Close()
	if c.place.open--; c.place.open == 0 && s.places[c.place.at] == c.place {
		delete(s.places, c.place.at)
	}
}
