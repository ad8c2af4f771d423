package verbs

import (
	"context"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/internal/command"
)

// ID is one end of a connection (a connection manager id). Device.NewID creates an idle one;
// Listener.Request returns one for a peer's connection request.
//
// The active side calls Connect, then Establish; the passive side calls Accept or Reject. After a failed
// attempt the ID cannot be used again: create another.
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

// cmID is the part of an ID that the event dispatcher knows.
type cmID struct {
	host   *Host
	token  uint64 // identifies the id until it has a handle
	space  command.PortSpace
	qpType command.QPType // of its QP, in the IB port space

	mu      sync.Mutex
	number  command.Handle // 0: not created in the adapter yet
	state   cmState
	err     error         // why the attempt failed
	refused error         // why the adapter does not accept in the way it was asked to
	changed chan struct{} // closed at the next change; nil while nobody waits
	down    chan struct{} // closed when an established connection has ended; nil until somebody asks
	adapter uint32
	local   netip.AddrPort
	remote  netip.AddrPort
	peer    PeerParam

	listening bool
	backlog   int
	requests  []*ID         // of a listener, waiting for Request
	arrived   chan struct{} // holds a token when there may be requests
}

// NewID creates an idle connection id on the adapter.
func (d *Device) NewID() (*ID, error) { return d.newID(command.TCP) }

// NewXRCID creates an idle id that connects an XRC initiator. It reaches listeners of ListenXRC, whose ports are others than
// those of Listen (the IB port space, RDMA_PS_IB); each answers with a target. Where a driver knows no such connections, the
// first use of the id fails with ErrUnsupported.
func (d *Device) NewXRCID() (*ID, error) { return d.newXRCID(command.XRCInitiator) }

func (d *Device) newXRCID(t command.QPType) (*ID, error) {
	id, err := d.newID(command.IB)
	if err == nil {
		id.cm.qpType = t
	}
	return id, err
}

// SetTrafficClass chooses the traffic class of a connection, before Connect or Accept: the DSCP of its packets and messages in the upper
// six bits (RDMA_OPTION_ID_TOS). 0, as without a call, leaves it to the rules of the port. Errors: ErrState.
func (id *ID) SetTrafficClass(ctx context.Context, class uint8) error {
	const op = "set traffic class"
	c := id.cm
	c.mu.Lock()
	state := c.state
	c.mu.Unlock()
	if state != cmIdle && state != cmRequested {
		return newError(op, ErrState, "the connection id is %s, want idle or requested", state)
	}
	h, err := c.make()
	if err != nil {
		return err
	}
	return wrap(op, c.host.backend.CMOption(ctx, command.CMOption{ID: h, Option: command.OptionTOS, Value: uint32(class)}))
}

// NewServiceID creates an idle id that resolves UD services, see ID.Resolve.
func (d *Device) NewServiceID() (*ID, error) { return d.newID(command.UDP) }

// newID creates an id locally; the adapter learns of it when it is first used.
func (d *Device) newID(space command.PortSpace) (*ID, error) {
	c := &cmID{host: d.host, space: space, adapter: d.index}
	if err := d.host.events.announce(c); err != nil {
		return nil, wrap("create cm id", err)
	}
	return &ID{cm: c}, nil
}

// make creates the id in the adapter unless that was done already, and returns its handle.
func (c *cmID) make() (command.Handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number != 0 || c.err != nil {
		return c.number, c.err
	}
	h, err := c.host.backend.CMCreate(c.host.ctx, command.CMCreate{Adapter: c.adapter, Space: c.space, Context: c.token})
	if err == nil && c.qpType != 0 {
		err = c.tellType(h)
	}
	if err != nil {
		return 0, wrap("create cm id", err)
	}
	c.name(h)
	return h, nil
}

// tellType tells the adapter the type of the id's QP, on which it insists from then on.
func (c *cmID) tellType(h command.Handle) error {
	b, ctx := c.host.backend, c.host.ctx
	err := b.CMOption(ctx, command.CMOption{ID: h, Option: command.OptionQPType, Value: uint32(c.qpType)})
	if err != nil {
		_ = b.Destroy(ctx, command.KindCM, h)
	}
	return err
}

// name records the handle of the id. The caller holds the lock.
func (c *cmID) name(h command.Handle) {
	if c.number == 0 {
		c.number = h
		c.host.events.add(c, h)
	}
}

// handle returns the handle of the id, 0 if the adapter does not know it yet.
func (c *cmID) handle() command.Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.number
}

func endpoint(a netip.AddrPort) command.Endpoint {
	e := command.Endpoint{Port: a.Port()}
	if a.Addr().IsValid() {
		e.Addr = command.AddrFrom(a.Addr())
	}
	return e
}

func addrPort(e command.Endpoint) netip.AddrPort { return netip.AddrPortFrom(e.Addr.IP(), e.Port) }

// wake tells waiters that something changed. The caller holds the lock.
func (c *cmID) wake() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
	c.arrival() // a listener's waiters check err
}

// arrival wakes one of a listener's waiters. The caller holds the lock.
func (c *cmID) arrival() {
	if c.arrived == nil {
		return
	}
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

func (c *cmID) onAdapter(index uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.adapter == index
}

func (c *cmID) take(e *command.Event) {
	if e.Type == command.EventConnectRequest {
		c.enqueue(e)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.see(e)
}

// see handles an event other than a connection request. The caller holds the lock.
func (c *cmID) see(e *command.Event) {
	c.name(e.Object)
	switch e.Type {
	case command.EventConnectResponse:
		if c.state == cmConnecting {
			c.state, c.peer = cmResponded, peerParam(&e.Param)
			c.local, c.adapter = addrPort(e.Local), e.Adapter
			c.wake()
		}
	case command.EventEstablished:
		if c.state == cmAccepting || c.state == cmConnecting || c.state == cmResponded {
			if c.state == cmConnecting {
				c.peer = peerParam(&e.Param)
				c.local, c.adapter = addrPort(e.Local), e.Adapter
			}
			c.state = cmConnected
			c.wake()
		}
	case command.EventAddressResolved:
		if c.state == cmConnecting {
			c.state, c.local, c.adapter = cmResponded, addrPort(e.Remote), e.Adapter
			c.wake()
		}
	case command.EventRejected:
		c.end(cmFailed, &RejectedError{Addr: c.remote, Reason: RejectReason(e.Status), Private: private(&e.Param)})
	case command.EventUnreachable, command.EventConnectError, command.EventAddressError:
		c.end(cmFailed, c.statusError(command.Code(e.Status)))
	case command.EventDisconnected:
		c.end(cmDisconnected, &Error{Op: "connection", Addr: c.remote, Class: ErrDisconnected})
	case command.EventDeviceRemoval:
		c.end(cmFailed, &Error{Op: "connection", Addr: c.remote, Class: ErrRemoved})
	}
}

// Bind gives the id a local address; with port 0 the adapter chooses one.
func (id *ID) Bind(local netip.AddrPort) error {
	c := id.cm
	h, err := c.make()
	if err != nil {
		return err
	}
	e, err := c.host.backend.CMBind(c.host.ctx, h, endpoint(local))
	if err != nil {
		return wrapAddr("bind", local, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.local = addrPort(e)
	return nil
}

// move changes the state to to if it is one of from now; otherwise it returns an error for op.
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

// await waits until the id leaves state in.
func (c *cmID) await(ctx context.Context, in cmState) (cmState, error) {
	for {
		c.mu.Lock()
		state, err := c.state, c.err
		if state == in && c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		if state != in {
			return state, err
		}
		if err := c.host.await(ctx, changed); err != nil {
			return in, err
		}
	}
}

// await waits until done is closed or holds a token, which it consumes. Its error is that of ctx.
func (h *Host) await(ctx context.Context, done <-chan struct{}) error {
	if h.carrier != nil {
		return h.carrier.Await(ctx, done)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Peer returns what the peer asked for (on a request) or answered (after Connect).
func (id *ID) Peer() PeerParam {
	id.cm.mu.Lock()
	defer id.cm.mu.Unlock()
	return id.cm.peer
}

// LocalAddr returns the local address, the zero value while there is none.
func (id *ID) LocalAddr() netip.AddrPort {
	id.cm.mu.Lock()
	defer id.cm.mu.Unlock()
	return id.cm.local
}

// RemoteAddr returns the peer's address, the zero value while there is none.
func (id *ID) RemoteAddr() netip.AddrPort {
	id.cm.mu.Lock()
	defer id.cm.mu.Unlock()
	return id.cm.remote
}

// Attributes returns the attributes that bring the connection's QP to state, for programs that passed no
// QP to Connect or Accept and move it themselves.
func (id *ID) Attributes(state QPState) (QPAttr, QPMask, error) {
	c := id.cm
	h, err := c.make()
	if err != nil {
		return QPAttr{}, 0, err
	}
	m, err := c.host.backend.CMAttributes(c.host.ctx, h, command.QPState(state))
	if err != nil {
		return QPAttr{}, 0, wrap("query connection attributes", err)
	}
	return attrFrom(&m), QPMask(m.Mask), nil
}
