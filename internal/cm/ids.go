package cm

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/mad"
)

// Open creates an idle id. context is returned in its events.
func (e *Engine) Open(space command.PortSpace, context uint64) (ID, error) {
	if !space.Valid() {
		return 0, fieldError("space", uint32(space), command.PortSpaces)
	}
	if e.ids.Len() >= e.cfg.MaxIDs {
		return 0, ErrTooManyIDs
	}
	return e.add(space, context).id, nil
}

// Bind gives an idle id its address and port. The zero address and :: are the wildcard for every address,
// 0.0.0.0 for every IPv4 address. Port 0 selects an ephemeral one. Bind returns what was bound.
func (e *Engine) Bind(id ID, local netip.AddrPort) (netip.AddrPort, error) {
	c, err := e.in("Bind", id, stateIdle)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if c.binding != nil {
		return netip.AddrPort{}, &stateError{"Bind", "bound"}
	}
	c.binding, err = e.ports.bind(c.space, barePort(local), netip.AddrPort{}, c.bind, e.cfg.Rand())
	if err != nil {
		return netip.AddrPort{}, err
	}
	c.local = c.binding.local
	return c.local, nil
}

// SetBind sets options for the address and port of an id that does not listen or connect yet, before or
// after Bind.
func (e *Engine) SetBind(id ID, o BindOptions) error {
	c, err := e.in("SetBind", id, stateIdle)
	if err != nil {
		return err
	}
	c.bind = o
	if c.binding != nil {
		c.binding.BindOptions = o
	}
	return nil
}

// Listen makes a bound id accept requests. backlog is how many may wait to be claimed or answered; 0 means
// defaultBacklog.
func (e *Engine) Listen(id ID, backlog int) error {
	c, err := e.in("Listen", id, stateIdle)
	if err != nil {
		return err
	}
	if c.binding == nil {
		return &stateError{"Listen", "not bound"}
	}
	if backlog < 0 {
		return fieldError("backlog", backlog, "0 or more")
	}
	if backlog == 0 {
		backlog = defaultBacklog
	}
	if c.binding.Reuse {
		if err := e.ports.alone(c.binding); err != nil {
			return err
		}
	}
	c.listen = &listenState{backlog: backlog, waiting: map[ID]*conn{}, shares: newShares()}
	e.enter(c, stateListen)
	key := portKey{c.space, c.local.Port()}
	e.listeners[key] = append(e.listeners[key], c)
	return nil
}

// listener returns the listener at an address. There is at most one: overlapping bindings conflict.
func (e *Engine) listener(space command.PortSpace, at netip.AddrPort) *conn {
	for _, l := range e.listeners[portKey{space, at.Port()}] {
		if l.binding.covers(at.Addr()) {
			return l
		}
	}
	return nil
}

// Claim says that the program has taken a request from its listener: the request no longer counts in the
// backlog, outlives the listener, and its id remains until Destroy. Accept and Reject imply Claim.
func (e *Engine) Claim(id ID) error {
	c, err := e.find(id)
	if err != nil {
		return err
	}
	e.claim(c)
	return nil
}

func (e *Engine) claim(c *conn) {
	c.claimed = true
	e.unlist(c)
}

// Attributes returns the values for the QP of an id. They are complete once the peer has answered (active
// side) or Accept was called (passive side); before that they contain what is known.
func (e *Engine) Attributes(id ID) (Attributes, error) {
	c, err := e.find(id)
	if err != nil {
		return Attributes{}, err
	}
	return c.attr, nil
}

// Addresses returns the local and remote addresses and ports of an id, as far as it has them.
func (e *Engine) Addresses(id ID) (local, remote netip.AddrPort, err error) {
	c, err := e.find(id)
	if err != nil {
		return netip.AddrPort{}, netip.AddrPort{}, err
	}
	return c.local, c.remote, nil
}

// Destroy ends an id in any state, as its client's death does: peers are told, requests waiting at a
// listener are refused. The only later events are EventTimewaitExit of the id and EventConnectError of the
// requests.
func (e *Engine) Destroy(now clock.Time, id ID) error {
	c, err := e.find(id)
	if err != nil {
		return err
	}
	e.claim(c)
	c.destroyed, c.told = true, true
	switch c.state {
	case stateListen:
		e.closeListener(now, c)
	case stateReqSent:
		e.reject(c, mad.REJOfOther, mad.RejectTimeout, e.guid()) // as Linux does when it gives up a request
		e.counters.FailedAttempts++
		e.finish(c)
	case stateReqReceived, stateRepReceived, stateRepSent, stateSidrReceived:
		e.decline(now, c, mad.RejectConsumer, nil)
	case stateEstablished:
		e.requestRelease(now, c, nil)
	case stateSidrReplied:
		e.linger(now, c)
	case stateIdle, stateDone, stateSidrSent:
		e.finish(c)
	}
	return nil
}

func (e *Engine) closeListener(now clock.Time, l *conn) {
	key := portKey{l.space, l.local.Port()}
	left := slices.DeleteFunc(e.listeners[key], func(c *conn) bool { return c == l })
	if len(left) == 0 {
		delete(e.listeners, key)
	} else {
		e.listeners[key] = left
	}
	waiting := make([]*conn, 0, len(l.listen.waiting))
	for _, c := range l.listen.waiting {
		waiting = append(waiting, c)
	}
	slices.SortFunc(waiting, func(a, b *conn) int { return int(int64(a.id) - int64(b.id)) })
	for _, c := range waiting {
		e.unlist(c)
		e.refuse(now, c, mad.RejectConsumer, nil)
		e.event(c, Event{Type: EventConnectError})
	}
	e.finish(l)
}

// find returns the id's conn, unless its program has released it.
func (e *Engine) find(id ID) (*conn, error) {
	c := e.ids.Get(uint32(id))
	if c == nil || c.destroyed {
		return nil, ErrNoID
	}
	return c, nil
}

// in is find for a call that is allowed in one state only.
func (e *Engine) in(call string, id ID, s state) (*conn, error) {
	c, err := e.find(id)
	if err != nil {
		return nil, err
	}
	if c.state != s {
		return nil, &stateError{call, c.state.String()}
	}
	return c, nil
}

// guid returns the adapter's GUID as additional reject information.
func (e *Engine) guid() []byte {
	g := e.cfg.GUID
	return []byte{byte(g >> 56), byte(g >> 48), byte(g >> 40), byte(g >> 32), byte(g >> 24), byte(g >> 16), byte(g >> 8), byte(g)}
}
