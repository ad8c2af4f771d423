package verbs

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/command"
)

// Connect asks the program that listens at remote for a connection with qp and returns when it has
// answered. The adapter moves qp to ready-to-send. Next call Establish, or Reject if the answer (see Peer)
// is not acceptable. With a nil qp the program moves the QP itself: see Attributes.
//
// The attempt is given up at the deadline of ctx, or after 10 s if it has none. Canceling ctx abandons the
// attempt. Errors: a *RejectedError or ErrRefused, ErrTimedOut, ErrHostUnreachable, ErrNetworkUnreachable,
// ErrRemoved, ErrCanceled; each names the address.
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
	if c.qpType != 0 { // the adapter learns it first
		if _, err := c.make(); err != nil {
			return err
		}
	}
	if err := c.move(op, cmConnecting, cmIdle); err != nil {
		return err
	}
	c.mu.Lock()
	c.remote = remote
	cmd := command.CMConnect{
		ID: c.number, Remote: endpoint(remote), Param: param, Timeout: attemptTime(ctx),
		Space: c.space, Adapter: c.adapter, Context: c.token,
	}
	c.mu.Unlock()
	if qp != nil {
		qp.inUse.Store(true)
		cmd.QP = qp.handle
	}
	c.begin(ctx, op, remote, &cmd)
	state, err := c.await(ctx, cmConnecting)
	// The adapter's attempt may end before this thread sees the end of ctx.
	if ended := over(ctx); ended != nil && errors.Is(err, ErrTimedOut) {
		state, err = cmConnecting, ended
	}
	if state == cmConnecting { // ctx ended
		_ = id.Close()
		return wrapAddr(op, remote, err)
	}
	return c.unroutable(err)
}

// begin asks the adapter to connect. It does not wait for an answer that comes from another process. A
// failure ends the attempt.
func (c *cmID) begin(ctx context.Context, op string, remote netip.AddrPort, cmd *command.CMConnect) {
	answer := func(h command.Handle, err error) {
		if err == nil {
			c.made(h)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(cmFailed, wrapCtxAddr(ctx, op, remote, err))
	}
	if c.host.carrier == nil {
		answer(c.host.backend.CMConnect(ctx, *cmd))
	} else if err := c.host.carrier.BeginConnect(ctx, *cmd, answer); err != nil {
		answer(0, err)
	}
}

// made records the handle that the attempt to connect created. If the id was closed meanwhile, Close had
// no handle to destroy, so made destroys it.
func (c *cmID) made(h command.Handle) {
	c.mu.Lock()
	closed := c.state == cmClosed && c.number == 0
	if !closed {
		c.name(h)
	}
	c.mu.Unlock()
	if closed {
		go func() { _ = c.host.backend.Destroy(c.host.ctx, command.KindCM, h) }() // whoever delivers the handle must not block
	}
}

// unroutable turns the error about a destination of another address family than the adapter's into what it
// means to the program: an unreachable network.
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
		far := *e
		far.Class = ErrNetworkUnreachable
		c.mu.Lock()
		c.err = &far
		c.mu.Unlock()
		return &far
	}
	return err
}

// over is ctx.Err, also while the deadline has passed and the timer has not yet run that tells ctx.
func over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// attemptTime returns the time for an attempt in milliseconds: slightly past the deadline of ctx, so that
// it is ctx that ends the attempt; 0 (the default) if ctx has no deadline.
func attemptTime(ctx context.Context) uint32 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline) + 50*time.Millisecond
	return uint32(min(max(left.Milliseconds(), 1), 1<<31))
}

// Establish completes a connection after Connect by telling the passive side that this side is ready
// (RTU).
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
	if err := c.host.backend.CMEstablish(c.host.ctx, c.handle()); err != nil {
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

// Accept answers a connection request with qp and returns when the peer has established the connection.
// For a UD service it answers with the QP's number and p.QKey and returns at once.
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
	cmd := command.CMAccept{ID: c.handle(), Param: param}
	if qp != nil {
		qp.inUse.Store(true)
		cmd.QP = qp.handle
	}
	if c.host.carrier == nil || c.space == command.UDP {
		err = c.host.backend.CMAccept(ctx, cmd)
	} else {
		err = c.host.carrier.BeginAccept(ctx, cmd, c.refuse)
	}
	if c.refuse(err); err != nil {
		return wrapCtxAddr(ctx, "accept", c.remote, err)
	}
	if c.space == command.UDP {
		return c.move("accept", cmConnected, cmAccepting)
	}
	switch state, err := c.await(ctx, cmAccepting); state {
	case cmAccepting:
		_ = id.Close()
		return wrapAddr("accept", c.remote, err)
	case cmRequested:
		c.mu.Lock()
		defer c.mu.Unlock()
		return wrapCtxAddr(ctx, "accept", c.remote, c.refused)
	default:
		return err
	}
}

// refuse undoes an Accept that the adapter refused with err, so that it can be repeated. A nil err does
// nothing.
func (c *cmID) refuse(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == cmAccepting {
		c.state, c.refused = cmRequested, err
		c.wake()
	}
}

// Reject refuses a peer's request, or its answer to Connect, with at most MaxRejectPrivate bytes of
// private data.
func (id *ID) Reject(private []byte) error {
	c := id.cm
	if len(private) > MaxRejectPrivate {
		return newError("reject", ErrInvalid, "private has %d bytes, at most %d", len(private), MaxRejectPrivate)
	}
	if err := c.move("reject", cmDisconnecting, cmRequested, cmResponded); err != nil {
		return err
	}
	cmd := command.CMReject{ID: c.handle(), PrivateLen: uint32(len(private))}
	copy(cmd.Private[:], private)
	err := c.host.backend.CMReject(c.host.ctx, cmd)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(cmFailed, &Error{Op: "connection", Addr: c.remote, Class: ErrAborted, Detail: "rejected by this side"})
	return wrapAddr("reject", c.remote, err)
}

// Disconnect ends the connection and returns once the peer knows or can no longer be told, which is after
// ten seconds at most. The QP goes to the error state and its requests are flushed, both at once.
func (id *ID) Disconnect(ctx context.Context) error {
	c := id.cm
	if err := c.move("disconnect", cmDisconnecting, cmConnected, cmDisconnecting); err != nil {
		return err
	}
	if err := c.host.backend.CMDisconnect(ctx, c.handle()); err != nil {
		return wrapCtxAddr(ctx, "disconnect", c.remote, err)
	}
	state, err := c.await(ctx, cmDisconnecting)
	if state == cmDisconnecting {
		return wrapAddr("disconnect", c.remote, err)
	}
	return nil
}
