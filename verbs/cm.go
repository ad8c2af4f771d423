package verbs

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// Lengths of private data (IBA 12.6, annex A11): what a program may send with
// each message.
const (
	MaxConnectPrivate = 56  // a connection request, less the IP CM header
	MaxAcceptPrivate  = 196 // a reply
	MaxRejectPrivate  = 148 // a reject
	MaxResolvePrivate = 180 // a UD service request, less the IP CM header
)

// ConnParam is what one side asks for when a connection is set up.
type ConnParam struct {
	// ResponderResources is how many reads and atomics of the peer this side
	// keeps at a time; InitiatorDepth how many it may have outstanding itself.
	// Both are cut to what the adapter and the peer allow.
	ResponderResources int
	InitiatorDepth     int
	// RetryCount is how often a request is sent again for want of an answer, 1 to
	// 7; 0 means the default of 7.
	RetryCount int
	// RNRRetry is how often the peer sends again because no receive was posted
	// here, 1 to 6; 0 and 7 mean without end.
	RNRRetry int
	// NoFlowControl declines end-to-end credits.
	NoFlowControl bool
	// QKey of a UD service.
	QKey uint32
	// Private data for the peer; at most MaxConnectPrivate, MaxAcceptPrivate or
	// MaxResolvePrivate bytes.
	Private []byte
}

// PeerParam is what the peer asked for or answered, as it looks from this side.
type PeerParam struct {
	ResponderResources int // reads and atomics that the peer would like to have outstanding here
	InitiatorDepth     int // reads and atomics of this side that the peer keeps
	FlowControl        bool
	SRQ                bool
	QPN                uint32
	QKey               uint32 // UD
	Private            []byte // padded with zeros to the size of the message's field
}

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

func private(p *command.ConnParam) []byte {
	n := min(int(p.PrivateLen), len(p.Private))
	if n == 0 {
		return nil
	}
	return append([]byte(nil), p.Private[:n]...)
}

func peerParam(p *command.ConnParam) PeerParam {
	return PeerParam{
		ResponderResources: int(p.ResponderResources), InitiatorDepth: int(p.InitiatorDepth),
		FlowControl: p.FlowControl != 0, SRQ: p.SRQ != 0, QPN: p.QPN, QKey: p.QKey, Private: private(p),
	}
}

// param checks p and puts it in the command's form.
func (p *ConnParam) param(op string, limit int, qp *QP) (command.ConnParam, error) {
	out := command.ConnParam{QKey: p.QKey}
	if len(p.Private) > limit {
		return out, newError(op, ErrInvalid, "Private has %d bytes, at most %d", len(p.Private), limit)
	}
	if p.RetryCount < 0 || p.RetryCount > 7 {
		return out, newError(op, ErrInvalid, "RetryCount is %d, want 0 to 7", p.RetryCount)
	}
	if p.RNRRetry < 0 || p.RNRRetry > 7 {
		return out, newError(op, ErrInvalid, "RNRRetry is %d, want 0 to 7", p.RNRRetry)
	}
	if p.ResponderResources < 0 || p.InitiatorDepth < 0 {
		return out, newError(op, ErrInvalid, "ResponderResources and InitiatorDepth are not below 0")
	}
	out.ResponderResources = uint8(min(p.ResponderResources, 255))
	out.InitiatorDepth = uint8(min(p.InitiatorDepth, 255))
	out.RetryCount, out.RNRRetry = uint8(p.RetryCount), uint8(p.RNRRetry)
	if out.RetryCount == 0 {
		out.RetryCount = 7
	}
	if out.RNRRetry == 0 {
		out.RNRRetry = 7
	}
	if !p.NoFlowControl {
		out.FlowControl = 1
	}
	if qp != nil {
		out.QPN = qp.number
		if qp.cfg.SRQ != nil {
			out.SRQ, out.FlowControl = 1, 0
		}
		out.ResponderResources = uint8(min(int(out.ResponderResources), qp.pd.dev.limit.MaxReadResponder))
		out.InitiatorDepth = uint8(min(int(out.InitiatorDepth), qp.pd.dev.limit.MaxReadInitiator))
	}
	out.PrivateLen = uint8(copy(out.Private[:], p.Private))
	return out, nil
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

// Connect asks the program that listens at remote for a connection with qp, and
// returns when it answered. The adapter moves qp to ready-to-send. Call Establish
// next, or Reject where the answer (see Peer) does not suit. A nil qp leaves the
// moving of the QP to the program: see Attributes.
//
// Where ctx has a deadline the attempt is given up at it, else after 10 s. A
// cancelled ctx abandons the attempt. Errors: a *RejectedError or ErrRefused,
// ErrTimedOut, ErrHostUnreachable, ErrNetworkUnreachable, ErrRemoved,
// ErrCanceled; each names the address.
func (id *ID) Connect(ctx context.Context, remote netip.AddrPort, qp *QP, p ConnParam) error {
	param, err := p.param("connect", MaxConnectPrivate, qp)
	if err != nil {
		return err
	}
	return id.request(ctx, "connect", remote, qp, param)
}

// Resolve looks up the UD service at remote (a SIDR request, IBA 12.11) and
// returns its QP number and Q_Key.
func (id *ID) Resolve(ctx context.Context, remote netip.AddrPort, private []byte) (PeerParam, error) {
	p := ConnParam{Private: private}
	param, err := p.param("resolve", MaxResolvePrivate, nil)
	if err != nil {
		return PeerParam{}, err
	}
	if err := id.request(ctx, "resolve", remote, nil, param); err != nil {
		return PeerParam{}, err
	}
	return id.Peer(), nil
}

func (id *ID) request(ctx context.Context, op string, remote netip.AddrPort, qp *QP, param command.ConnParam) error {
	c := id.cm
	if !remote.IsValid() || remote.Addr().IsUnspecified() {
		return &Error{Op: op, Addr: remote, Class: ErrInvalid, Detail: "remote is not the address of a host"}
	}
	if err := ctx.Err(); err != nil {
		return wrapAddr(op, remote, err)
	}
	if err := c.move(op, cmConnecting, cmIdle); err != nil {
		return err
	}
	c.mu.Lock()
	c.remote = remote
	c.mu.Unlock()
	cmd := command.CMConnect{ID: c.handleNo, Remote: endpoint(remote), Param: param, Timeout: attemptTime(ctx)}
	if qp != nil {
		cmd.QP = qp.handle
	}
	if err := c.host.backend.CMConnect(ctx, cmd); err != nil {
		err = c.unroutable(wrapCtxAddr(ctx, op, remote, err))
		c.mu.Lock()
		c.end(cmFailed, err)
		c.mu.Unlock()
		return err
	}
	state, err := c.await(ctx, cmConnecting)
	if state == cmConnecting { // ctx ended
		_ = id.Close()
		return wrapAddr(op, remote, err)
	}
	if err != nil {
		return err
	}
	id.readLocal()
	return nil
}

// unroutable makes the error of a destination of another address family than the
// adapter's what it is to the program: a network that cannot be reached.
func (c *cmID) unroutable(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Class != ErrInvalid || !e.Addr.IsValid() {
		return err
	}
	devices, listErr := c.host.Devices(c.host.ctx)
	for _, d := range devices {
		if d.index != c.adapter || listErr != nil || d.addr.Is4() == e.Addr.Addr().Unmap().Is4() {
			continue
		}
		e.Class = ErrNetworkUnreachable
	}
	return err
}

// attemptTime is the time for an attempt in milliseconds: up to the deadline of
// ctx and a little, so that it is ctx that ends it; 0, the default, without one.
func attemptTime(ctx context.Context) uint32 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline) + 50*time.Millisecond
	return uint32(min(max(left.Milliseconds(), 1), 1<<31))
}

// readLocal learns the local address that the adapter chose.
func (id *ID) readLocal() {
	c := id.cm
	info, err := c.host.backend.CMQuery(c.host.ctx, c.handleNo)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.local, c.adapter = addrPort(info.Local), info.Adapter
	if !c.remote.IsValid() {
		c.remote = addrPort(info.Remote)
	}
}

// Establish completes a connection after Connect: the passive side learns that
// this side is ready (RTU).
func (id *ID) Establish() error {
	c := id.cm
	c.mu.Lock()
	state, cause := c.state, c.err
	c.mu.Unlock()
	if state == cmConnected {
		return nil
	}
	if state != cmResponded {
		if cause != nil {
			return cause
		}
		return newError("establish", ErrState, "the connection id is %s", state)
	}
	if err := c.host.backend.CMEstablish(c.host.ctx, c.handleNo); err != nil {
		return wrapAddr("establish", c.remote, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == cmResponded {
		c.state = cmConnected
		c.wake()
	}
	if c.state != cmConnected {
		return c.err
	}
	return nil
}

// Accept answers a connection request with qp and returns when the peer has
// established the connection. For a UD service it answers with the QP's number
// and p.QKey and returns at once.
func (id *ID) Accept(ctx context.Context, qp *QP, p ConnParam) error {
	c := id.cm
	param, err := p.param("accept", MaxAcceptPrivate, qp)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return wrapAddr("accept", c.remote, err)
	}
	if err := c.move("accept", cmAccepting, cmRequested); err != nil {
		return err
	}
	cmd := command.CMAccept{ID: c.handleNo, Param: param}
	if qp != nil {
		cmd.QP = qp.handle
	}
	if err := c.host.backend.CMAccept(ctx, cmd); err != nil {
		_ = c.move("accept", cmRequested, cmAccepting)
		return wrapCtxAddr(ctx, "accept", c.remote, err)
	}
	if c.space == command.UDP {
		return c.move("accept", cmConnected, cmAccepting)
	}
	state, err := c.await(ctx, cmAccepting)
	if state == cmAccepting {
		_ = id.Close()
		return wrapAddr("accept", c.remote, err)
	}
	if err != nil {
		return err
	}
	id.readLocal()
	return nil
}

// Reject refuses a request of a peer, or its answer to Connect, with at most
// MaxRejectPrivate bytes of private data.
func (id *ID) Reject(private []byte) error {
	c := id.cm
	if len(private) > MaxRejectPrivate {
		return newError("reject", ErrInvalid, "private has %d bytes, at most %d", len(private), MaxRejectPrivate)
	}
	if err := c.move("reject", cmDisconnecting, cmRequested, cmResponded); err != nil {
		return err
	}
	cmd := command.CMReject{ID: c.handleNo, PrivateLen: uint32(len(private))}
	copy(cmd.Private[:], private)
	err := c.host.backend.CMReject(c.host.ctx, cmd)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(cmFailed, &Error{Op: "connection", Addr: c.remote, Class: ErrAborted, Detail: "rejected by this side"})
	return wrapAddr("reject", c.remote, err)
}

// Disconnect ends a connection and returns when the peer knows or can no longer
// be told. The QP goes to the error state and its requests are flushed.
func (id *ID) Disconnect(ctx context.Context) error {
	c := id.cm
	if err := c.move("disconnect", cmDisconnecting, cmConnected, cmDisconnecting); err != nil {
		return err
	}
	if err := c.host.backend.CMDisconnect(ctx, c.handleNo); err != nil {
		return wrapCtxAddr(ctx, "disconnect", c.remote, err)
	}
	state, err := c.await(ctx, cmDisconnecting)
	if state == cmDisconnecting {
		return wrapAddr("disconnect", c.remote, err)
	}
	return nil
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
