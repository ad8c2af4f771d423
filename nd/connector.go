package nd

import (
	"context"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

// Connector connects a queue pair to a peer's.
//
// The active side calls Connect and, after checking the answer, CompleteConnect or Reject. The passive
// side gets its connector from Listener.GetConnectionRequest and calls Accept or Reject. A connector whose
// Connect failed may try again; after a connection it cannot be reused.
type Connector struct {
	overlapped
	adapter *Adapter

	state  sync.Mutex
	id     *verbs.ID // nil until Bind, Connect or a request
	local  netip.AddrPort
	qp     *QueuePair
	phase  phase
	limits readLimits
}

type phase uint8

const (
	phaseIdle phase = iota
	phaseBound
	phaseConnecting
	phaseAnswered  // Connect returned; CompleteConnect comes next
	phaseRequested // by a peer; Accept comes next
	phaseAccepting
	phaseConnected
	phaseEnded
)

type readLimits struct{ inbound, outbound int }

// ConnectParams is what a side offers when setting up a connection.
type ConnectParams struct {
	// InboundReadLimit is how many of the peer's reads this side serves at a time, OutboundReadLimit how
	// many it wants to have outstanding; 0 if it serves or issues none. Both are reduced to what the
	// adapter and the peer allow.
	InboundReadLimit  int
	OutboundReadLimit int
	// PrivateData is private data for the peer: at most MaxCallerData bytes with Connect, MaxCalleeData
	// with Accept, else ND_INVALID_BUFFER_SIZE.
	PrivateData []byte
}

func (p *ConnectParams) verbs(op string, most int, qp *QueuePair) (verbs.ConnParam, error) {
	if len(p.PrivateData) > most {
		return verbs.ConnParam{}, refuse(StatusInvalidBufferSize, op, "PrivateData has %d bytes, at most %d", len(p.PrivateData), most)
	}
	if p.InboundReadLimit < 0 || p.OutboundReadLimit < 0 {
		return verbs.ConnParam{}, refuse(StatusInvalidParameter, op, "read limits are not below 0")
	}
	c := verbs.ConnParam{
		ResponderResources: p.InboundReadLimit, InitiatorDepth: p.OutboundReadLimit,
		RNRRetry: rnrRetry, Private: p.PrivateData,
	}
	if qp.srq != nil {
		c.RNRRetry = rnrForever // an empty shared queue must not end the connection
	}
	return c, nil
}

// A message for which the peer posts no receive fails with ND_IO_TIMEOUT, as NdSendNoReceive of
// Microsoft's ndmemorytest requires, but not before 6 times 327.68 ms (IBA 9.7.5.2.8), because a program
// can be held up for surprisingly long by the scheduler or a disk. The long timer does not delay a message
// whose receive is posted meanwhile, since the peer announces that. For a shared queue it does not; its
// timer is therefore shorter and the retries unlimited. When the peer's program ends, its driver ends the
// connection, so nothing keeps waiting.
const (
	rnrRetry          = 6
	rnrForever        = 7
	minRNRTimer       = 30
	minRNRTimerShared = 22 // 20.48 ms
)

// up prepares the queue pair for sending and marks it connected.
func (qp *QueuePair) up() {
	timer := uint8(minRNRTimer)
	if qp.srq != nil {
		timer = minRNRTimerShared
	}
	// This fails if the connection has already ended, and is not needed then.
	_ = qp.qp.Modify(verbs.QPAttr{MinRNRTimer: timer}, verbs.MaskMinRNRTimer)
	qp.connected.Store(true)
}

// CreateConnector creates an idle connector.
func (a *Adapter) CreateConnector() (*Connector, error) {
	return &Connector{adapter: a}, nil
}

// Bind gives the connector a local address of the adapter; with port 0 the adapter chooses one. Without
// Bind, Connect chooses both. Errors: ND_SHARING_VIOLATION, ND_ADDRESS_ALREADY_EXISTS (already bound or
// connected), ND_INVALID_ADDRESS.
func (c *Connector) Bind(local netip.AddrPort) error {
	const op = "Connector.Bind"
	c.state.Lock()
	defer c.state.Unlock()
	if c.phase != phaseIdle {
		return &Error{Status: StatusAddressAlreadyExists, Op: op, Addr: local, Detail: "the connector has an address already"}
	}
	id, err := c.newID(local)
	if err != nil {
		return failAddr(op, local, err)
	}
	c.id, c.phase, c.local = id, phaseBound, id.LocalAddr()
	return nil
}

func (c *Connector) newID(local netip.AddrPort) (*verbs.ID, error) {
	id, err := c.adapter.dev.NewID()
	if err != nil {
		return nil, err
	}
	if local.IsValid() {
		if err := id.Bind(local); err != nil {
			_ = id.Close()
			return nil, err
		}
	}
	return id, nil
}

// take reserves qp for the connector. The caller holds the lock.
func (c *Connector) take(op string, qp *QueuePair) error {
	if qp == nil || qp.adapter != c.adapter {
		return refuse(StatusInvalidParameter, op, "qp is not a queue pair of this adapter")
	}
	if qp.closed.Load() {
		return refuse(StatusCanceled, op, "the queue pair is closed")
	}
	if !qp.inUse.CompareAndSwap(false, true) {
		return refuse(StatusConnectionActive, op, "the queue pair belongs to another connection")
	}
	c.qp = qp
	return nil
}

// Connect asks the program that listens at remote for a connection with qp and returns when it has
// accepted or refused. Next call CompleteConnect, or Reject if GetReadLimits or GetPrivateData are not
// acceptable. It takes at most 10 s unless ctx has a deadline.
//
// Errors, all naming remote: ND_CONNECTION_REFUSED (nobody listens there, or the peer rejected),
// ND_IO_TIMEOUT, ND_HOST_UNREACHABLE, ND_NETWORK_UNREACHABLE; after these the connector may try again.
// ND_CONNECTION_ACTIVE, ND_INVALID_BUFFER_SIZE, ND_INVALID_ADDRESS, ND_CANCELED, ND_DEVICE_REMOVED.
func (c *Connector) Connect(ctx context.Context, qp *QueuePair, remote netip.AddrPort, p ConnectParams) error {
	const op = "Connector.Connect"
	if !remote.IsValid() || remote.Addr().IsUnspecified() || remote.Addr().IsMulticast() {
		return &Error{Status: StatusInvalidAddress, Op: op, Addr: remote, Detail: "not the address of a host"}
	}
	id, param, err := c.start(op, qp, remote.Addr(), &p)
	if err != nil {
		return err
	}
	ctx, done := c.begin(ctx)
	defer done()
	err = id.Connect(ctx, remote, qp.qp, param)
	c.state.Lock()
	defer c.state.Unlock()
	if c.phase != phaseConnecting { // closed meanwhile
		return &Error{Status: StatusCanceled, Op: op, Addr: remote, Detail: "the connector was closed"}
	}
	if err != nil {
		c.forget()
		return failConnect(op, remote, err)
	}
	c.phase, c.local = phaseAnswered, id.LocalAddr()
	return nil
}

func (c *Connector) start(op string, qp *QueuePair, remote netip.Addr, p *ConnectParams) (*verbs.ID, verbs.ConnParam, error) {
	c.state.Lock()
	defer c.state.Unlock()
	switch c.phase {
	case phaseIdle, phaseBound:
	case phaseEnded:
		return nil, verbs.ConnParam{}, refuse(StatusConnectionInvalid, op, "the connector was used for a connection that ended")
	default:
		return nil, verbs.ConnParam{}, refuse(StatusConnectionActive, op, "the connector has a connection already")
	}
	if qp == nil || qp.adapter != c.adapter {
		return nil, verbs.ConnParam{}, refuse(StatusInvalidParameter, op, "qp is not a queue pair of this adapter")
	}
	param, err := p.verbs(op, MaxCallerData, qp)
	if err != nil {
		return nil, param, err
	}
	if err := c.take(op, qp); err != nil {
		return nil, param, err
	}
	if c.id == nil {
		local := netip.AddrPortFrom(c.adapter.dev.Addr(), 0)
		if local.Addr().Is4() != remote.Unmap().Is4() {
			local = netip.AddrPort{} // the adapter picks its address of the other family
		}
		id, err := c.newID(local)
		if err != nil {
			c.release()
			return nil, param, fail(op, err)
		}
		c.id = id
	}
	c.phase, c.limits = phaseConnecting, readLimits{p.InboundReadLimit, p.OutboundReadLimit}
	return c.id, param, nil
}

// release lets go of the queue pair. The caller holds the lock.
func (c *Connector) release() {
	if c.qp != nil {
		c.qp.inUse.Store(false)
		c.qp = nil
	}
}

// forget makes the connector idle after a failed attempt. The caller holds the lock.
func (c *Connector) forget() {
	_ = c.id.Close()
	c.id, c.phase, c.local = nil, phaseIdle, netip.AddrPort{}
	c.release()
}

// CompleteConnect completes a connection after Connect, upon which the peer's Accept returns.
// ND_CONNECTION_INVALID if there is no answer to complete.
func (c *Connector) CompleteConnect(ctx context.Context) error {
	const op = "Connector.CompleteConnect"
	if err := ctx.Err(); err != nil {
		return fail(op, canceled(err))
	}
	c.state.Lock()
	defer c.state.Unlock()
	if c.phase != phaseAnswered {
		return refuse(StatusConnectionInvalid, op, "the connector is not connecting")
	}
	if err := c.id.Establish(); err != nil {
		c.phase = phaseEnded
		return failConnect(op, c.id.RemoteAddr(), err)
	}
	c.phase = phaseConnected
	c.qp.up()
	return nil
}

// Accept accepts the peer's request with qp and returns when the peer has completed the connection.
// Errors: ND_CONNECTION_REFUSED (the peer rejected the answer), ND_CONNECTION_ABORTED (it had given up),
// ND_IO_TIMEOUT (it never completed), ND_CONNECTION_ACTIVE, ND_INVALID_BUFFER_SIZE (the request can still
// be accepted or rejected), ND_CANCELED, ND_DEVICE_REMOVED.
func (c *Connector) Accept(ctx context.Context, qp *QueuePair, p ConnectParams) error {
	const op = "Connector.Accept"
	id, param, err := c.startAccept(op, qp, &p)
	if err != nil {
		return err
	}
	ctx, done := c.begin(ctx)
	defer done()
	err = id.Accept(ctx, qp.qp, param)
	c.state.Lock()
	defer c.state.Unlock()
	if c.phase != phaseAccepting {
		return &Error{Status: StatusCanceled, Op: op, Addr: id.RemoteAddr(), Detail: "the connector was closed"}
	}
	if err != nil {
		c.phase = phaseEnded
		c.release()
		return failConnect(op, id.RemoteAddr(), err)
	}
	c.phase = phaseConnected
	qp.up()
	return nil
}

func (c *Connector) startAccept(op string, qp *QueuePair, p *ConnectParams) (*verbs.ID, verbs.ConnParam, error) {
	c.state.Lock()
	defer c.state.Unlock()
	if c.phase != phaseRequested {
		return nil, verbs.ConnParam{}, refuse(StatusConnectionInvalid, op, "the connector has no request to accept")
	}
	if qp == nil || qp.adapter != c.adapter {
		return nil, verbs.ConnParam{}, refuse(StatusInvalidParameter, op, "qp is not a queue pair of this adapter")
	}
	// The answer's limits are reduced to what the peer offered.
	peer := c.id.Peer()
	p.InboundReadLimit = min(p.InboundReadLimit, peer.ResponderResources)
	p.OutboundReadLimit = min(p.OutboundReadLimit, peer.InitiatorDepth)
	param, err := p.verbs(op, MaxCalleeData, qp)
	if err != nil {
		return nil, param, err
	}
	if err := c.take(op, qp); err != nil {
		return nil, param, err
	}
	c.phase, c.limits = phaseAccepting, readLimits{p.InboundReadLimit, p.OutboundReadLimit}
	return c.id, param, nil
}

// Reject refuses the peer's request, or its answer to Connect, with at most MaxCalleeData bytes of private
// data.
func (c *Connector) Reject(privateData []byte) error {
	const op = "Connector.Reject"
	if len(privateData) > MaxCalleeData {
		return refuse(StatusInvalidBufferSize, op, "privateData has %d bytes, at most %d", len(privateData), MaxCalleeData)
	}
	c.state.Lock()
	defer c.state.Unlock()
	if c.phase != phaseRequested && c.phase != phaseAnswered {
		return refuse(StatusConnectionInvalid, op, "there is nothing to reject")
	}
	err := c.id.Reject(privateData)
	c.phase = phaseEnded
	c.release()
	return failAddr(op, c.id.RemoteAddr(), err)
}

// peerOf returns the id if its peer has sent a request or an answer.
func (c *Connector) peerOf(op string) (*verbs.ID, error) {
	switch {
	case c.id == nil, c.phase == phaseIdle, c.phase == phaseBound, c.phase == phaseConnecting:
		return nil, refuse(StatusConnectionInvalid, op, "the connector is not connected")
	}
	return c.id, nil
}

// NotifyDisconnect returns when the connection has been ended by either side. ND_CONNECTION_INVALID if
// there never was one.
func (c *Connector) NotifyDisconnect(ctx context.Context) error {
	const op = "Connector.NotifyDisconnect"
	c.state.Lock()
	id, phase := c.id, c.phase
	c.state.Unlock()
	if id == nil || phase != phaseConnected && phase != phaseEnded {
		return refuse(StatusConnectionInvalid, op, "the connector is not connected")
	}
	ctx, done := c.begin(ctx)
	defer done()
	select {
	case <-id.Disconnected():
		return nil
	case <-ctx.Done():
		return fail(op, canceled(ctx.Err()))
	}
}

// Disconnect ends the connection and flushes the requests of its queue pair: their results are
// ND_CANCELED. It returns once the peer knows or can no longer be told, which is after ten seconds at
// most. ND_CONNECTION_INVALID if there is no connection.
func (c *Connector) Disconnect(ctx context.Context) error {
	const op = "Connector.Disconnect"
	c.state.Lock()
	if c.phase != phaseConnected {
		c.state.Unlock()
		return refuse(StatusConnectionInvalid, op, "the connector is not connected")
	}
	id, qp := c.id, c.qp
	c.phase = phaseEnded
	c.state.Unlock()
	qp.connected.Store(false)
	ctx, done := c.begin(ctx)
	defer done()
	err := id.Disconnect(ctx)
	if err != nil && id.Err() != nil { // the peer disconnected first
		_ = qp.qp.Flush()
		err = nil
	}
	return failConnect(op, id.RemoteAddr(), err)
}

// Close releases the connector: it rejects an unanswered request, abandons an attempt, ends a connection;
// waiting calls return ND_CANCELED.
func (c *Connector) Close() error {
	c.state.Lock()
	id, qp := c.id, c.qp
	c.phase, c.id, c.qp = phaseEnded, nil, nil
	c.state.Unlock()
	_ = c.CancelOverlappedRequests()
	if qp != nil {
		qp.connected.Store(false)
	}
	if id == nil {
		return nil
	}
	return fail("Connector.Close", id.Close())
}
