package verbs

import (
	"context"
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
)

// Listener receives connection requests at an address.
type Listener struct {
	id *ID
}

// Listen waits for connections at local; port 0 lets the adapter choose one. At
// most backlog requests wait for Request, further ones are refused; 0 means no
// limit but the adapter's.
func (d *Device) Listen(local netip.AddrPort, backlog int) (*Listener, error) {
	return d.listen(command.TCP, local, backlog)
}

// ListenService is Listen for UD services: requests are look-ups (SIDR), to be
// answered by ID.Accept with the QP of the service.
func (d *Device) ListenService(local netip.AddrPort, backlog int) (*Listener, error) {
	return d.listen(command.UDP, local, backlog)
}

func (d *Device) listen(space command.PortSpace, local netip.AddrPort, backlog int) (*Listener, error) {
	if backlog < 0 {
		return nil, newError("listen", ErrInvalid, "backlog is %d, want 0 or more", backlog)
	}
	id, err := d.newID(space)
	if err != nil {
		return nil, err
	}
	if err := id.Bind(local); err != nil {
		_ = id.Close()
		return nil, err
	}
	id.cm.mu.Lock()
	id.cm.listening = true
	id.cm.mu.Unlock()
	if err := d.host.backend.CMListen(d.host.ctx, id.cm.handleNo, uint32(backlog)); err != nil {
		_ = id.Close()
		return nil, wrapAddr("listen", local, err)
	}
	return &Listener{id: id}, nil
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() netip.AddrPort { return l.id.LocalAddr() }

// Request returns the next connection request, waiting for ctx. Answer it with
// ID.Accept or ID.Reject.
func (l *Listener) Request(ctx context.Context) (*ID, error) {
	c := l.id.cm
	for {
		c.mu.Lock()
		if len(c.requests) > 0 {
			id := c.requests[0]
			c.requests = c.requests[1:]
			c.mu.Unlock()
			return id, nil
		}
		err, changed := c.err, c.changed
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, wrapAddr("accept", l.Addr(), ctx.Err())
		}
	}
}

// Close stops listening and rejects the requests that wait.
func (l *Listener) Close() error { return l.id.Close() }

// enqueue makes the id of a request and queues it with its listener. Only the
// dispatcher calls it, so that no event of the new id comes before.
func (c *cmID) enqueue(e *command.Event) {
	r := newCMID(c.host, e.NewID, c.space, e.Adapter)
	r.state, r.remote, r.peer = cmRequested, addrPort(e.Remote), peerParam(&e.Param)
	id := &ID{cm: r}
	c.mu.Lock()
	listening := c.listening && c.state != cmClosed
	r.local = c.local
	if listening {
		c.host.events.add(r)
		c.requests = append(c.requests, id)
		c.wake()
	}
	c.mu.Unlock()
	if !listening {
		_ = c.host.backend.Destroy(context.Background(), command.KindCM, e.NewID)
	}
}
