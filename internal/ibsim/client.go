package ibsim

import (
	"net"
	"sync"

	"github.com/softvpi/softvpi/internal/fabric"
)

// maxQueue bounds the datagrams that a client has not read. One that reads none of so many is ended.
const maxQueue = 1 << 16

// client is a program that is attached.
type client struct {
	number   uint32
	at       fabric.Place
	isSM     bool // guarded by the server
	listener Listener
	from     peer
	process  uint32 // ID that it gave
	conn     net.Conn
	ready    chan struct{} // there is something in queue, or closed

	mu     sync.Mutex
	queue  [][dataLen]byte
	closed bool
}

// put sends a datagram, at once where that can be and else by the client's own sender, so
// that nobody ever waits for a program that does not read. False: it has read nothing for too long.
func (c *client) put(b *[dataLen]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return true
	}
	if len(c.queue) == 0 && tryWrite(c.conn, b[:]) {
		return true
	}
	if len(c.queue) >= maxQueue {
		return false
	}
	c.queue = append(c.queue, *b)
	select {
	case c.ready <- struct{}{}:
	default:
	}
	return true
}

// send writes what is in the queue until the client is closed. What cannot be written is lost: the program is gone.
func (c *client) send() {
	for range c.ready {
		for {
			c.mu.Lock()
			if len(c.queue) == 0 || c.closed {
				c.queue = nil
				c.mu.Unlock()
				break
			}
			b := c.queue[0]
			c.mu.Unlock()
			_, _ = c.conn.Write(b[:])
			c.mu.Lock()
			c.queue = c.queue[1:]
			c.mu.Unlock()
		}
	}
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.conn.Close()
		close(c.ready)
	}
}
