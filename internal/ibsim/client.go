package ibsim

import (
	"github.com/softvpi/softvpi/internal/fabric"
)

const (
	// maxQueue limits the datagrams that a client has not read. A client that exceeds it is disconnected.
	maxQueue = 1 << 16
	// maxUnread limits those that all clients together have not read, so that programs that never read cost the server
	// 36 MiB however many they are. Beyond it the slowest client is disconnected.
	maxUnread = 1 << 17
)

// client is an attached program. The server's lock guards it.
type client struct {
	number   uint32
	at       fabric.Place
	isSM     bool
	listener Listener
	from     peer
	user     uint32 // whose program it is, as far as the listener knows
	process  uint32 // ID chosen by the program
	socket   socket
	queue    queue // what could not be written at once
	closed   bool
}

// socket is the data socket of a client.
type socket interface {
	// start begins to pass what the client sends to the server, until close.
	start(*Server, *client)
	// try writes a datagram unless that would block; false: it would. What cannot be written at all is
	// lost: the client is gone, which its listener notices.
	try(b []byte) bool
	// later arranges for flush to be called when try may succeed.
	later()
	close()
}

// put sends a datagram, at once if possible and otherwise when the client has read others, so that nobody
// ever waits for a program that does not read. Who reads nothing for too long is disconnected.
func (s *Server) put(c *client, b *[dataLen]byte) {
	if c.closed || c.queue.count == 0 && c.socket.try(b[:]) {
		return
	}
	keep := *b // disconnecting a client may write to b
	if c.queue.count >= maxQueue {
		s.cutOff(c)
	} else if s.unread >= maxUnread {
		s.cutOff(s.slowest())
	}
	if c.closed {
		return
	}
	c.queue.push(&keep)
	s.unread++
	if c.queue.count == 1 {
		c.socket.later()
	}
}

// flush writes what is queued for a client; false: some is left.
func (s *Server) flush(c *client) bool {
	for !c.closed && c.queue.count > 0 {
		if !c.socket.try(c.queue.next()[:]) {
			return false
		}
		c.queue.drop()
		s.unread--
	}
	return true
}

// slowest returns the client with the most unread datagrams, among those of the user whose programs have the most: many
// programs of one user, each with a few, do not get those of another disconnected.
func (s *Server) slowest() (slow *client) {
	unread := map[uint32]int{}
	for _, c := range s.clients {
		unread[c.user] += c.queue.count
	}
	for _, c := range s.clients {
		if slow == nil || unread[c.user] > unread[slow.user] || c.user == slow.user && c.queue.count > slow.queue.count {
			slow = c
		}
	}
	return slow
}

// cutOff disconnects a client that does not read.
func (s *Server) cutOff(c *client) {
	s.cut++
	s.lost += uint64(c.queue.count)
	s.detach(c)
}

// close closes a client's socket and drops what it has not read.
func (s *Server) close(c *client) {
	if c.closed {
		return
	}
	c.closed = true
	s.unread -= c.queue.count
	c.queue = queue{}
	c.socket.close()
}
