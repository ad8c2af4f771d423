package nd

import (
	"context"
	"net/netip"
	"sync"

	"github.com/softvpi/softvpi/verbs"
)

// Listener waits for connection requests.
type Listener struct {
	overlapped
	adapter *Adapter
	l       *verbs.Listener

	state     sync.Mutex
	bound     bool
	listening bool
	closed    bool
}

// CreateListener creates a listener; call Bind and Listen next.
func (a *Adapter) CreateListener() (*Listener, error) {
	l, err := a.dev.NewListener()
	if err != nil {
		return nil, fail("Adapter.CreateListener", err)
	}
	return &Listener{adapter: a, l: l}, nil
}

// Listen creates a listener, binds it to local and starts it: CreateListener, Bind and Listen in one step.
func (a *Adapter) Listen(local netip.AddrPort, backlog int) (*Listener, error) {
	l, err := a.CreateListener()
	if err != nil {
		return nil, err
	}
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

// Bind gives the listener a local address of the adapter; with port 0 the adapter chooses one.
// ND_SHARING_VIOLATION if another listener has it, ND_ADDRESS_ALREADY_EXISTS if this one is already bound,
// ND_INVALID_ADDRESS.
func (l *Listener) Bind(local netip.AddrPort) error {
	const op = "Listener.Bind"
	l.state.Lock()
	defer l.state.Unlock()
	if l.closed {
		return refuse(StatusCanceled, op, "the listener is closed")
	}
	if l.bound {
		return &Error{Status: StatusAddressAlreadyExists, Op: op, Addr: local, Detail: "the listener has an address already"}
	}
	if err := l.l.Bind(local); err != nil {
		return failAddr(op, local, err)
	}
	l.bound = true
	return nil
}

// Listen starts a bound listener. At most backlog requests (up to 65536; 0 stands for 128) wait for
// GetConnectionRequest; further ones are refused.
func (l *Listener) Listen(backlog int) error {
	const op = "Listener.Listen"
	l.state.Lock()
	defer l.state.Unlock()
	switch {
	case l.closed:
		return refuse(StatusCanceled, op, "the listener is closed")
	case backlog < 0:
		return refuse(StatusInvalidParameter, op, "backlog is %d, want 0 or more", backlog)
	case !l.bound:
		return refuse(StatusInvalidDeviceState, op, "the listener is not bound")
	case l.listening:
		return refuse(StatusInvalidDeviceState, op, "the listener listens already")
	}
	if err := l.l.Listen(backlog); err != nil {
		return failAddr(op, l.l.Addr(), err)
	}
	l.listening = true
	return nil
}

// GetLocalAddress returns the listener's address. ND_INVALID_DEVICE_STATE if it is not listening.
func (l *Listener) GetLocalAddress() (netip.AddrPort, error) {
	l.state.Lock()
	defer l.state.Unlock()
	if !l.listening || l.closed {
		return netip.AddrPort{}, refuse(StatusInvalidDeviceState, "Listener.GetLocalAddress", "the listener does not listen")
	}
	return l.l.Addr(), nil
}

// GetConnectionRequest waits for a request and hands it to connector, which must be idle; call its Accept
// or Reject next. Several calls may wait; each gets a request of its own. ND_CANCELED when the listener is
// closed.
func (l *Listener) GetConnectionRequest(ctx context.Context, connector *Connector) error {
	const op = "Listener.GetConnectionRequest"
	if connector == nil || connector.adapter != l.adapter {
		return refuse(StatusInvalidParameter, op, "connector is not one of this adapter")
	}
	l.state.Lock()
	listening := l.listening && !l.closed
	l.state.Unlock()
	if !listening {
		return refuse(StatusInvalidDeviceState, op, "the listener does not listen")
	}
	if err := connector.reserve(op); err != nil {
		return err
	}
	ctx, done := l.begin(ctx)
	defer done()
	id, err := l.l.Request(ctx)
	if !connector.adopt(id) && id != nil {
		_ = id.Close()
		return refuse(StatusCanceled, op, "the connector was closed")
	}
	return failAddr(op, l.l.Addr(), err)
}

// reserve reserves an idle connector for a request.
func (c *Connector) reserve(op string) error {
	c.state.Lock()
	defer c.state.Unlock()
	if c.phase != phaseIdle {
		return refuse(StatusConnectionActive, op, "the connector is not idle")
	}
	c.phase = phaseConnecting
	return nil
}

// adopt gives a reserved connector its request; a nil id makes it idle again.
func (c *Connector) adopt(id *verbs.ID) bool {
	c.state.Lock()
	defer c.state.Unlock()
	if c.phase != phaseConnecting {
		return false
	}
	if id == nil {
		c.phase = phaseIdle
		return true
	}
	c.id, c.phase = id, phaseRequested
	return true
}

// Close stops listening: waiting requests are refused and waiting calls return ND_CANCELED.
func (l *Listener) Close() error {
	l.state.Lock()
	l.closed = true
	l.state.Unlock()
	_ = l.CancelOverlappedRequests()
	return fail("Listener.Close", l.l.Close())
}
