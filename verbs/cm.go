package verbs

import (
	"context"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
)

// ID is one end of a connection: a connection manager id. It is made idle by
// Device.NewID, or by Listener.Request for a connection request of a peer.
//
// The active side calls Connect, then Establish; the passive side Accept or
// Reject. An attempt that failed leaves the ID of no further use: make another.
type ID struct {
	cm *cmID
}

type cmState uint8

const (
	cmIdle cmState = iota
	cmConnecting
	cmResponded
	cmRequested
	cmAccepting
	cmConnected
	cmDisconnecting
	cmDisconnected
	cmFailed
	cmClosed
)

var cmStateNames = [...]string{"idle", "connecting", "answered", "requested", "accepting", "connected",
	"disconnecting", "disconnected", "failed", "closed"}

func (s cmState) String() string { return cmStateNames[s] }

// cmID is the part of an ID that the dispatcher knows.
type cmID struct {
	host     *Host
	handleNo command.Handle
	space    command.PortSpace

	mu      sync.Mutex
	state   cmState
	err     error         // why the attempt failed
	changed chan struct{} // closed and made anew at every change
	down    chan struct{} // closed when a connection that was up has ended
	adapter uint32
	local   netip.AddrPort
	remote  netip.AddrPort
	peer    PeerParam

	listening bool
	backlog   int
	requests  []*ID // of a listener, waiting for Request
}

func newCMID(h *Host, handle command.Handle, space command.PortSpace, adapter uint32) *cmID {
	return &cmID{host: h, handleNo: handle, space: space, adapter: adapter,
		changed: make(chan struct{}), down: make(chan struct{})}
}

// NewID makes an idle connection id on the adapter.
func (d *Device) NewID() (*ID, error) { return d.newID(command.TCP) }

// NewServiceID makes an idle id that resolves UD services, see ID.Resolve.
func (d *Device) NewServiceID() (*ID, error) { return d.newID(command.UDP) }

func (d *Device) newID(space command.PortSpace) (*ID, error) {
	b := d.host.backend
	handle, err := b.CMCreate(d.host.ctx, command.CMCreate{Adapter: d.index, Space: space})
	if err != nil {
		return nil, wrap("create cm id", err)
	}
	id := newCMID(d.host, handle, space, d.index)
	d.host.events.add(id)
	return &ID{cm: id}, nil
}

func endpoint(a netip.AddrPort) command.Endpoint {
	e := command.Endpoint{Port: a.Port()}
	if a.Addr().IsValid() {
		e.Addr = command.AddrFrom(a.Addr())
	}
	return e
}

func addrPort(e command.Endpoint) netip.AddrPort { return netip.AddrPortFrom(e.Addr.IP(), e.Port) }

// wake tells waiters that something changed; the lock is held.
func (c *cmID) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *cmID) onAdapter(index uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.adapter == index
}

// fail ends what waits on the id with an error of this class.
func (c *cmID) fail(class error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(cmFailed, &Error{Op: "connection", Addr: c.remote, Class: class})
}

// end moves to a final state; the lock is held.
func (c *cmID) end(s cmState, err error) {
	switch c.state {
	case cmDisconnected, cmFailed, cmClosed:
		return
	case cmConnected, cmDisconnecting:
		close(c.down)
	}
	c.state, c.err = s, err
	c.wake()
}

func (c *cmID) handle(e *command.Event) {
	if e.Type == command.EventConnectRequest {
		c.enqueue(e)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Type {
	case command.EventConnectResponse:
		if c.state == cmConnecting {
			c.state, c.peer = cmResponded, peerParam(&e.Param)
			c.wake()
		}
	case command.EventEstablished:
		if c.state == cmAccepting || c.state == cmConnecting || c.state == cmResponded {
			if c.state == cmConnecting {
				c.peer = peerParam(&e.Param)
			}
			c.state = cmConnected
			c.wake()
		}
	case command.EventRejected:
		c.end(cmFailed, &RejectedError{Addr: c.remote, Reason: RejectReason(e.Status), Private: private(&e.Param)})
	case command.EventUnreachable, command.EventConnectError:
		c.end(cmFailed, c.statusError(command.Code(e.Status)))
	case command.EventDisconnected:
		c.end(cmDisconnected, &Error{Op: "connection", Addr: c.remote, Class: ErrDisconnected})
	case command.EventDeviceRemoval:
		c.end(cmFailed, &Error{Op: "connection", Addr: c.remote, Class: ErrRemoved})
	}
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

// Bind gives the id a local address; port 0 lets the adapter choose one.
func (id *ID) Bind(local netip.AddrPort) error {
	c := id.cm
	e, err := c.host.backend.CMBind(c.host.ctx, c.handleNo, endpoint(local))
	if err != nil {
		return wrapAddr("bind", local, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.local = addrPort(e)
	return nil
}

// move changes the state from one of the given ones.
func (c *cmID) move(op string, to cmState, from ...cmState) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range from {
		if c.state == s {
			c.state = to
			return nil
		}
	}
	if c.err != nil {
		return c.err
	}
	return newError(op, ErrState, "the connection id is %s", c.state)
}

// await waits until the id leaves the given state.
func (c *cmID) await(ctx context.Context, in cmState) (cmState, error) {
	for {
		c.mu.Lock()
		state, err, changed := c.state, c.err, c.changed
		c.mu.Unlock()
		if state != in {
			return state, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return in, ctx.Err()
		}
	}
}

// Disconnected returns a channel that is closed when a connection that was
// established has ended, by either side.
func (id *ID) Disconnected() <-chan struct{} { return id.cm.down }

// Err returns why the id is of no further use, nil while it is.
func (id *ID) Err() error {
	id.cm.mu.Lock()
	defer id.cm.mu.Unlock()
	return id.cm.err
}

// Peer returns what the peer asked for (requests) or answered (after Connect).
func (id *ID) Peer() PeerParam {
	id.cm.mu.Lock()
	defer id.cm.mu.Unlock()
	return id.cm.peer
}

// LocalAddr returns the local address; the zero value while there is none.
func (id *ID) LocalAddr() netip.AddrPort {
	id.cm.mu.Lock()
	defer id.cm.mu.Unlock()
	return id.cm.local
}

// RemoteAddr returns the peer's address; the zero value while there is none.
func (id *ID) RemoteAddr() netip.AddrPort {
	id.cm.mu.Lock()
	defer id.cm.mu.Unlock()
	return id.cm.remote
}

// Attributes says how to bring the QP of this connection to state by hand; for
// programs that gave Connect or Accept no QP.
func (id *ID) Attributes(state QPState) (QPAttr, QPMask, error) {
	c := id.cm
	m, err := c.host.backend.CMAttributes(c.host.ctx, c.handleNo, command.QPState(state))
	if err != nil {
		return QPAttr{}, 0, wrap("query connection attributes", err)
	}
	return attrFrom(&m), QPMask(m.Mask), nil
}

// Close gives the id up: an attempt is abandoned, a request rejected, a
// connection disconnected without waiting. Closing twice is harmless.
func (id *ID) Close() error {
	c := id.cm
	c.mu.Lock()
	was := c.state
	if was == cmClosed {
		c.mu.Unlock()
		return nil
	}
	requests := c.requests
	c.requests = nil
	if was == cmConnected || was == cmDisconnecting {
		close(c.down)
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
	c.host.events.remove(c)
	return c.host.destroyed("close connection id", c.host.backend.Destroy(c.host.ctx, command.KindCM, c.handleNo))
}
