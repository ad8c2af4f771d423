package rdmanet

import (
	"net"
	"os"
	"syscall"
)

// control sends a message without data. The caller holds the lock.
func (c *Conn) control(k kind) error {
	err := c.end.sendControl(c.sent, header{kind: k, credits: uint32(c.give)})
	if err != nil {
		c.breakDown(err)
		return err
	}
	c.give = 0
	c.outstanding++
	return nil
}

// Write sends p. It returns when p has been copied and is being sent; while the peer reads more slowly
// than this side writes, it waits, until the write deadline.
func (c *Conn) Write(p []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	total := 0
	for {
		buffer, err := c.reserve(len(p) > total)
		if err != nil || total == len(p) {
			return total, c.opError("write", err)
		}
		if buffer < 0 {
			c.end.poller.wait(c.writable)
			continue
		}
		n, err := c.post(buffer, p[total:])
		total += n
		if err != nil {
			return total, c.opError("write", err)
		}
	}
}

// reserve takes the next send buffer and a credit if both are available, else returns -1.
func (c *Conn) reserve(want bool) (int, error) {
	select {
	case <-c.closing:
		return -1, net.ErrClosed
	default:
	}
	if c.write.over() {
		return -1, os.ErrDeadlineExceeded
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closedWrite:
		return -1, syscall.EPIPE
	case c.err != nil:
		return -1, c.err
	case !want || c.credits == 0 || c.sent-c.done == uint64(c.end.buffers):
		return -1, nil
	}
	c.credits--
	return int(c.sent % uint64(c.end.buffers)), nil
}

// post sends as much of p as fits from a reserved buffer.
func (c *Conn) post(buffer int, p []byte) (int, error) {
	b := c.end.sendBuffer(buffer)
	n := copy(b[headerSize:c.end.sendSize], p)
	c.mu.Lock()
	defer c.mu.Unlock()
	header{kind: kindData, credits: uint32(c.give)}.put(b)
	// A result costs about as much as a send: one for several is enough.
	c.sent++
	silent := c.sent%uint64(max(c.end.buffers/2, 1)) != 0
	if err := c.end.send(c.sent, buffer, headerSize+n, silent); err != nil {
		c.breakDown(err)
		return 0, err
	}
	c.give = 0
	if !silent {
		c.outstanding++
	}
	return n, nil
}

// CloseWrite ends this side's sending: the peer reads io.EOF after the data. Reading is still possible.
func (c *Conn) CloseWrite() error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	select {
	case <-c.closing:
		return c.opError("close", net.ErrClosed)
	default:
	}
	return c.opError("close", c.finish())
}

// finish tells the peer that no more data comes.
func (c *Conn) finish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closedWrite {
		return nil
	}
	c.closedWrite = true
	c.writable.wake()
	if c.err != nil {
		return c.err
	}
	return c.control(kindFinish)
}
