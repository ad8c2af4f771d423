package device

import (
	"context"
	"errors"
	"net/netip"

	"github.com/softvpi/softvpi/internal/cm"
	"github.com/softvpi/softvpi/internal/command"
)

// CMBind implements command.Commands.
func (c *Client) CMBind(ctx context.Context, h command.Handle, local command.Endpoint) (command.Endpoint, error) {
	if err := c.enter(ctx); err != nil {
		return command.Endpoint{}, err
	}
	defer c.host.unlock()
	o, err := c.connection(h)
	if err != nil {
		return command.Endpoint{}, err
	}
	if o.state != cmIdle {
		return command.Endpoint{}, command.Errorf(command.State, "the id is bound already")
	}
	addr := local.Addr.IP()
	if addr.IsUnspecified() {
		err = o.bindAny(netip.AddrPortFrom(addr, local.Port))
	} else {
		err = o.bindTo(netip.AddrPortFrom(addr, local.Port))
	}
	if err != nil {
		return command.Endpoint{}, err
	}
	o.state = cmBound
	return command.EndpointFrom(o.local), nil
}

// bindTo binds to an address of an adapter.
func (o *cmid) bindTo(local netip.AddrPort) error {
	h := o.client.host
	for _, a := range h.adapters {
		if !a.owns(local.Addr()) || !o.mayBeOn(a) {
			continue
		}
		if err := a.usable(); err != nil {
			return err
		}
		return o.place(a, local)
	}
	if err := o.barredAll(func(a *adapter) bool { return a.owns(local.Addr()) }); err != nil {
		return err
	}
	return command.Errorf(command.AddrNotAvailable, "%v is not an address of an adapter", local.Addr())
}

// place opens and binds the id on an adapter.
func (o *cmid) place(a *adapter, local netip.AddrPort) error {
	id, bound, err := o.openOn(a, local)
	if err != nil {
		return err
	}
	o.adapter, o.id, o.local = a, id, bound
	return nil
}

func (o *cmid) openOn(a *adapter, local netip.AddrPort) (cm.ID, netip.AddrPort, error) {
	id, err := a.cm.Open(o.space, 0)
	if err != nil {
		return 0, local, cm.CommandError(err)
	}
	if o.bind != (cm.BindOptions{}) {
		_ = a.cm.SetBind(id, o.bind) // cannot fail: the id is new
	}
	if local.Addr().IsValid() {
		if local, err = a.cm.Bind(id, local); err != nil {
			_ = a.cm.Destroy(a.host.now(), id)
			return 0, local, cm.CommandError(err)
		}
	}
	a.ids[id] = o
	a.objects.CM++
	return id, local, nil
}

// bindAny binds to a port on all adapters that the id may use: every address for ::, every IPv4 address
// for 0.0.0.0. Adapters added later are included, see extendWildcards.
func (o *cmid) bindAny(any netip.AddrPort) error {
	o.wildcard = true
	for tries := 0; ; tries++ {
		err := o.bindAll(any)
		if err == nil {
			return nil
		}
		o.unplace()
		// An ephemeral port of the first adapter may be taken on the next one.
		if any.Port() != 0 || tries == 8 || !errors.Is(err, &command.Error{Code: command.InUse}) {
			o.wildcard = false
			return err
		}
	}
}

func (o *cmid) bindAll(any netip.AddrPort) error {
	for _, a := range o.client.host.adapters {
		if !a.enabled || !o.mayBeOn(a) {
			continue
		}
		if o.adapter != nil {
			if err := o.placeToo(a); err != nil {
				return err
			}
			continue
		}
		if err := o.place(a, any); err != nil {
			return err
		}
	}
	if o.adapter == nil {
		if err := o.barredAll(func(*adapter) bool { return true }); err != nil {
			return err
		}
		return command.Errorf(command.AddrNotAvailable, "no adapter is enabled")
	}
	return nil
}

func (o *cmid) mayBeOn(a *adapter) bool {
	return (o.want == command.AnyAdapter || o.want == a.index) && o.client.sees(a) && o.client.barred(a) == nil
}

// placeToo opens and binds the id on an additional adapter.
func (o *cmid) placeToo(a *adapter) error {
	id, _, err := o.openOn(a, o.local)
	if err != nil {
		return err
	}
	if o.state == cmListening {
		if err := a.cm.Listen(id, o.backlog); err != nil {
			a.dropID(o, id)
			return cm.CommandError(err)
		}
	}
	o.others = append(o.others, placed{a, id})
	return nil
}

// extendWildcards binds the wildcard ids of all programs on an adapter that was added or enabled, and
// listens there for those that listen elsewhere.
func (h *Host) extendWildcards(a *adapter) {
	if !a.enabled {
		return
	}
	for _, c := range h.clients {
		c.cms.Each(func(o *cmid) {
			if !o.wildcard || o.state != cmBound && o.state != cmListening || !o.mayBeOn(a) {
				return
			}
			if err := o.placeToo(a); err != nil {
				h.log.Warn("a program's wildcard address does not reach this adapter", "adapter", a.name,
					"client", c.cfg.Name, "pid", c.cfg.PID, "address", o.local, "cause", err)
			}
		})
	}
}

// unplace removes the id from its adapters; peers are notified.
func (o *cmid) unplace() {
	if o.adapter != nil {
		o.adapter.dropID(o, o.id)
	}
	for _, p := range o.others {
		p.adapter.dropID(o, p.id)
	}
	o.adapter, o.id, o.others = nil, 0, nil
}

// dropID ends an id of the CM that o has. One that the CM has ended by itself may be another's by now: it draws its ids anew.
func (a *adapter) dropID(o *cmid, id cm.ID) {
	a.objects.CM--
	if a.ids[id] != o {
		return
	}
	_ = a.cm.Destroy(a.host.now(), id)
	delete(a.ids, id)
}

// settle restricts a wildcard id to one adapter.
func (o *cmid) settle(a *adapter) {
	if o.adapter != a {
		for i, p := range o.others {
			if p.adapter == a {
				o.others[i] = placed{o.adapter, o.id}
				o.adapter, o.id = a, p.id
				break
			}
		}
	}
	for _, p := range o.others {
		p.adapter.dropID(o, p.id)
	}
	o.others = nil
}

// CMListen implements command.Commands.
func (c *Client) CMListen(ctx context.Context, h command.Handle, backlog uint32) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	defer c.host.unlock()
	o, err := c.connection(h)
	if err != nil {
		return err
	}
	if err := within("backlog", backlog, 0, 1<<16); err != nil {
		return err
	}
	if o.state == cmIdle {
		if err := o.bindAny(netip.AddrPortFrom(netip.IPv6Unspecified(), 0)); err != nil {
			return err
		}
		o.state = cmBound
	}
	if o.state != cmBound {
		return command.Errorf(command.State, "the id listens or connects already")
	}
	for _, p := range append([]placed{{o.adapter, o.id}}, o.others...) {
		if err := p.adapter.cm.Listen(p.id, int(backlog)); err != nil {
			return cm.CommandError(err)
		}
	}
	o.state, o.backlog = cmListening, int(backlog)
	return nil
}
