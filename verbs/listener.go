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

// NewListener creates a listener that is neither bound nor listening; Device.Listen does everything in one
// step.
func (d *Device) NewListener() (*Listener, error) {
	id, err := d.newID(command.TCP)
	if err != nil {
		return nil, err
	}
	id.cm.arrived = make(chan struct{}, 1)
	if _, err := id.cm.make(); err != nil {
		_ = id.Close()
		return nil, err
	}
	return &Listener{id: id}, nil
}

// Listen listens for connections at local; with port 0 the adapter chooses one. At most backlog requests
// (up to 65536; 0 stands for 128) wait for Request; further ones are refused with RejectNoResources.
func (d *Device) Listen(local netip.AddrPort, backlog int) (*Listener, error) {
	return d.listen(command.TCP, local, backlog)
}

// ListenService is Listen for UD services: requests are SIDR look-ups, answered by ID.Accept with the QP
// of the service.
func (d *Device) ListenService(local netip.AddrPort, backlog int) (*Listener, error) {
	return d.listen(command.UDP, local, backlog)
}

// ListenXRC is Listen for extended reliable connections: ID.Accept answers their requests with targets (XRCDomain.CreateTarget).
// The peer needs the numbers of shared receive queues, too: ConnParam.Private has room for them. See NewXRCID.
func (d *Device) ListenXRC(local netip.AddrPort, backlog int) (*Listener, error) {
	id, err := d.newXRCID(command.XRCTarget)
	return listen(id, err, local, backlog)
}

func (d *Device) listen(space command.PortSpace, local netip.AddrPort, backlog int) (*Listener, error) {
	id, err := d.newID(space)
	return listen(id, err, local, backlog)
}

func listen(id *ID, err error, local netip.AddrPort, backlog int) (*Listener, error) {
	if err != nil {
		return nil, err
	}
	id.cm.arrived = make(chan struct{}, 1)
	l := &Listener{id: id}
	if err := l.Bind(local); err != nil {
		_ = l.Close()
		return nil, err
	}
	if err := l.Listen(backlog); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// Bind gives the listener its address; ErrInUse if it is taken.
func (l *Listener) Bind(local netip.AddrPort) error { return l.id.Bind(local) }

// Listen starts a bound listener; backlog is as for Device.Listen.
func (l *Listener) Listen(backlog int) error {
	if backlog < 0 {
		return newError("listen", ErrInvalid, "backlog is %d, want 0 or more", backlog)
	}
	c := l.id.cm
	c.mu.Lock()
	c.listening, c.backlog = true, backlog
	if backlog == 0 {
		c.backlog = defaultBacklog
	}
	local := c.local
	c.mu.Unlock()
	h, err := c.make()
	if err == nil {
		err = c.host.backend.CMListen(c.host.ctx, h, uint32(c.backlog))
	}
	if err != nil {
		c.mu.Lock()
		c.listening = false
		c.mu.Unlock()
	}
	return wrapAddr("listen", local, err)
}

// Addr returns the address that the listener is bound to.
func (l *Listener) Addr() netip.AddrPort { return l.id.LocalAddr() }

// Request returns the next connection request, waiting until ctx ends. Answer it with ID.Accept or
// ID.Reject.
func (l *Listener) Request(ctx context.Context) (*ID, error) {
	c := l.id.cm
	for {
		c.mu.Lock()
		if len(c.requests) > 0 {
			id := c.requests[0]
			c.requests = c.requests[1:]
			if len(c.requests) > 0 {
				c.arrival() // for another waiter
			}
			c.mu.Unlock()
			if id.Err() != nil { // the peer gave up
				_ = id.Close()
				continue
			}
			return id, nil
		}
		err := c.err
		if err != nil {
			c.arrival()
		}
		arrived := c.arrived
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if err := c.host.await(ctx, arrived); err != nil {
			return nil, wrapAddr("accept", l.Addr(), err)
		}
	}
}

// Close stops listening and rejects the waiting requests.
func (l *Listener) Close() error { return l.id.Close() }

// enqueue creates the id of a request and queues it with its listener. Only the dispatcher calls it, so
// that no event of the new id can come earlier. The backlog is counted here because the adapter considers
// the request taken by the program.
func (c *cmID) enqueue(e *command.Event) {
	c.mu.Lock()
	stale := c.dropStale()
	listening := c.listening && c.state != cmClosed
	welcome := c.welcome(e)
	c.mu.Unlock()
	for _, id := range stale {
		_ = id.Close()
	}
	if welcome {
		return
	}
	if listening {
		_ = c.host.backend.CMReject(context.Background(), command.CMReject{ID: e.NewID, Reason: uint32(RejectNoResources)})
	}
	_ = c.host.backend.Destroy(context.Background(), command.KindCM, e.NewID)
}

// welcome queues the request if there is room. The caller holds the lock.
func (c *cmID) welcome(e *command.Event) bool {
	if !c.listening || c.state == cmClosed || len(c.requests) >= c.backlog {
		return false
	}
	r := &cmID{host: c.host, number: e.NewID, space: c.space, adapter: e.Adapter, state: cmRequested,
		local: addrPort(e.Local), remote: addrPort(e.Remote), peer: peerParam(&e.Param)}
	c.host.events.add(r, e.NewID)
	c.requests = append(c.requests, &ID{cm: r})
	c.arrival()
	return true
}

// dropStale removes the requests whose peers gave up from a full backlog. The caller holds the lock.
func (c *cmID) dropStale() (stale []*ID) {
	if len(c.requests) < c.backlog {
		return nil
	}
	kept := c.requests[:0]
	for _, id := range c.requests {
		if id.Err() != nil {
			stale = append(stale, id)
		} else {
			kept = append(kept, id)
		}
	}
	clear(c.requests[len(kept):])
	c.requests = kept
	return stale
}

const defaultBacklog = 128
