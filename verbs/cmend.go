package verbs

import "github.com/softvpi/softvpi/internal/command"

// fall signals that an established connection has ended. The caller holds the lock.
func (c *cmID) fall() {
	if c.down == nil {
		c.down = make(chan struct{})
	}
	close(c.down)
}

// fail ends the attempt or connection, and all waits on it, with an error of this class.
func (c *cmID) fail(class error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(cmFailed, &Error{Op: "connection", Addr: c.remote, Class: class})
}

// end moves the id to a final state. The caller holds the lock.
func (c *cmID) end(s cmState, err error) {
	switch c.state {
	case cmDisconnected, cmFailed, cmClosed:
		return
	case cmConnected, cmDisconnecting:
		c.fall()
	}
	c.state, c.err = s, err
	c.wake()
}

func (c *cmID) statusError(code command.Code) error {
	class, ok := classes[code]
	detail := ""
	if !ok {
		class = ErrTimedOut
	}
	switch class {
	case ErrRefused:
		detail = "nothing answers on the RoCE port of that address"
	case ErrTimedOut:
		detail = "no answer"
	}
	return &Error{Op: "connect", Addr: c.remote, Class: class, Detail: detail}
}

// Disconnected returns a channel that is closed when an established connection has been ended by either
// side.
func (id *ID) Disconnected() <-chan struct{} {
	c := id.cm
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == nil {
		c.down = make(chan struct{})
	}
	return c.down
}

// Err returns why the id can no longer be used, nil while it can.
func (id *ID) Err() error {
	id.cm.mu.Lock()
	defer id.cm.mu.Unlock()
	return id.cm.err
}

// Close releases the id: it abandons an attempt, rejects a request, or disconnects without waiting.
// Closing twice is harmless.
func (id *ID) Close() error {
	c := id.cm
	c.mu.Lock()
	was := c.state
	if was == cmClosed {
		c.mu.Unlock()
		return nil
	}
	h, requests := c.number, c.requests
	c.requests = nil
	if was == cmConnected || was == cmDisconnecting {
		c.fall()
	}
	c.state = cmClosed
	if c.err == nil {
		c.err = &Error{Op: "connection", Addr: c.remote, Class: ErrClosed}
	}
	c.wake()
	c.mu.Unlock()
	for _, r := range requests {
		_ = r.Close()
	}
	c.host.events.remove(c, h)
	if h == 0 {
		return nil
	}
	return c.host.destroyed("close connection id", c.host.backend.Destroy(c.host.ctx, command.KindCM, h))
}
