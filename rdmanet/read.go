package rdmanet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/softvpi/softvpi/nd"
)

// message is data in a receive buffer.
type message struct{ buffer, length int }

func (c *Conn) received(r *nd.Result) {
	if r.Status != nd.StatusSuccess {
		c.breakDown(c.lost(r))
		return
	}
	c.heard = true
	buffer := int(r.RequestContext)
	h, err := parseHeader(c.end.receiveBuffer(buffer)[:r.BytesTransferred])
	if err != nil {
		c.breakDown(fmt.Errorf("rdmanet: %w", err))
		return
	}
	if c.credits += int(h.credits); c.credits > maxBuffers {
		c.breakDown(errors.New("rdmanet: the peer gave more credits than it has buffers"))
		return
	}
	if h.credits > 0 {
		c.writable.wake()
	}
	if h.kind == kindData {
		if len(c.inbox) >= c.end.buffers || c.finished {
			c.breakDown(errors.New("rdmanet: the peer sent data that it had no credit for"))
			return
		}
		c.inbox = append(c.inbox, message{buffer, int(r.BytesTransferred) - headerSize})
		c.readable.wake()
		return
	}
	if h.kind == kindFinish {
		c.finished = true
		c.readable.wake()
	}
	if err := c.end.postReceive(buffer); err != nil {
		c.breakDown(err)
	}
}

// Read reads data that has arrived, waiting for some until the read deadline. It returns io.EOF when the
// peer has closed its side and everything has been read.
func (c *Conn) Read(p []byte) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for {
		n, err := c.take(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, c.opError("read", err)
		}
		c.end.poller.wait(c.readable)
	}
}

// take moves what has arrived into p.
func (c *Conn) take(p []byte) (int, error) {
	select {
	case <-c.closing:
		return 0, net.ErrClosed
	default:
	}
	if c.read.over() {
		return 0, os.ErrDeadlineExceeded
	}
	total := 0
	for total < len(p) {
		m, ok, err := c.oldest()
		if !ok {
			if total > 0 {
				return total, nil
			}
			return 0, err
		}
		data := c.end.receiveBuffer(m.buffer)[headerSize : headerSize+m.length]
		n := copy(p[total:], data[c.offset:])
		total += n
		if err := c.consumed(m, n); err != nil {
			return total, nil // the next Read reports it
		}
	}
	return total, nil
}

// oldest returns the oldest unread message, or an error if none will come.
func (c *Conn) oldest() (message, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.inbox) > 0 {
		return c.inbox[0], true, nil
	}
	if c.finished {
		return message{}, false, io.EOF
	}
	return message{}, false, c.err
}

// consumed records that n more bytes of the oldest message m have been read; once all have, its buffer is
// posted again and its credit returned.
func (c *Conn) consumed(m message, n int) error {
	c.offset += n
	if c.offset < m.length {
		return nil
	}
	c.offset = 0
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inbox = append(c.inbox[:0], c.inbox[1:]...)
	if c.err != nil || c.finished {
		return nil // nothing more will arrive
	}
	if err := c.end.postReceive(m.buffer); err != nil {
		c.breakDown(err)
		return err
	}
	c.give++
	if c.give*2 >= c.end.buffers {
		return c.control(kindCredit)
	}
	return nil
}
