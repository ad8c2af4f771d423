package ibsim

import (
	"sync"

	"github.com/softvpi/softvpi/internal/fabric"
)

// maxQueue limits the datagrams that a client has not read. A client that exceeds it is disconnected.
const maxQueue = 1 << 16

// client is an attached program.
type client struct {
	number   uint32
	at       fabric.Place
	isSM     bool // guarded by the server
	listener Listener
	from     peer
	process  uint32 // ID chosen by the program
	socket   socket

	mu     sync.Mutex
	queue  [][dataLen]byte // what could not be written at once
	closed bool
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
// ever waits for a program that does not read. False: it has read nothing for too long.
func (c *client) put(b *[dataLen]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed, len(c.queue) == 0 && c.socket.try(b[:]):
		return true
	case len(c.queue) >= maxQueue:
		return false
	}
	c.queue = append(c.queue, *b)
	if len(c.queue) == 1 {
		c.socket.later()
	}
	return true
}

// flush writes what is queued; false: some is left.
func (c *client) flush() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && len(c.queue) > 0 {
		if !c.socket.try(c.queue[0][:]) {
			return false
		}
		c.queue = c.queue[1:]
	}
	c.queue = nil
	return true
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.socket.close()
	}
}
