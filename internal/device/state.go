package device

import (
	"slices"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/device/lease"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/link/impair"
)

// SetAdapterState enables or disables an adapter while programs use it (WinOF manual 4.11.2): while it is
// disabled, new requests fail with Removed, waiting ones are canceled, sends are flushed with errors, and
// its resources are released. Programs then destroy their objects, and start again when it is enabled.
// Errors of enabling are those of AddAdapter.
func (h *Host) SetAdapterState(index uint32, enabled bool) error {
	h.lockHome(func() []*lease.Lease {
		if a, err := h.adapter(index); err == nil && !enabled {
			return h.leasesOf(a)
		}
		return nil
	})
	a, err := h.adapter(index)
	if err == nil && !enabled {
		was := a.linked()
		if a.nic.stop(); !a.enabled {
			a.moved(was)
		}
	}
	if err != nil || a.enabled == enabled {
		if err == nil {
			a.port.followAgent()
			a.port.followFlow()
		}
		h.unlock()
		return err
	}
	var releases []func()
	if enabled {
		if err = a.plugAgain(); err == nil {
			if err = a.nic.start(); err != nil {
				a.unplug()
			}
		}
		if err == nil {
			a.restarting()
			a.enabled, a.leaves = true, make(chan struct{})
			a.port.listPolling()
			if a.ib != nil {
				a.ib.Renew() // its addresses are offered again
			}
			h.extendWildcards(a)
			if a.started()&notify.Up != 0 {
				a.broadcast(command.EventPortActive)
			}
			a.report(a.started())
		}
	} else {
		flags := a.stopping()
		releases = a.disable()
		a.report(flags)
	}
	a.port.followAgent()
	a.port.followFlow()
	h.finish()
	if !enabled {
		h.evict() // a closed socket keeps its address while somebody sleeps on it
	}
	for _, r := range releases {
		r()
	}
	return err
}

// disable takes the adapter away from its programs. It returns functions to be called without the loop lock.
func (a *adapter) disable() (releases []func()) {
	h := a.host
	now := h.now()
	a.mendFaults()
	for _, c := range h.clients {
		a.attempt(func() { a.takeConnections(c) })
	}
	for _, q := range a.byNumber {
		a.attempt(q.error)
	}
	a.attempt(func() {
		if a.ib != nil {
			a.ib.Depart(now)
		}
		a.function.GSI.Step(now)
		a.function.Complete(now) // the flushed requests
		a.transmit(now)          // peers learn of it
	})
	h.exchange(now)
	a.attempt(func() { a.function.Complete(now) })
	for _, c := range h.clients {
		a.attempt(func() { a.takeObjects(c, &releases) })
		if c.sees(a) {
			c.event(command.Event{Type: command.EventDeviceFatal, Adapter: a.index})
		}
	}
	if a.stopping()&notify.Down != 0 {
		a.linkDowns++
	}
	a.retire()
	a.attempt(a.unplug)
	for _, j := range a.joining {
		j.drop()
	}
	a.joining = nil
	return releases
}

// takeConnections ends the CM ids of a client on the adapter.
func (a *adapter) takeConnections(c *Client) {
	c.cms.Each(func(o *cmid) {
		if o.adapter != a {
			o.others = slices.DeleteFunc(o.others, func(p placed) bool {
				if p.adapter == a {
					a.dropID(o, p.id)
				}
				return p.adapter == a
			})
			return
		}
		a.dropID(o, o.id)
		o.part()
		if len(o.others) > 0 { // a wildcard continues on other adapters
			o.adapter, o.id, o.others = o.others[0].adapter, o.others[0].id, o.others[1:]
			return
		}
		if o.stop != nil {
			o.stop()
		}
		o.state, o.removed = cmEnded, true
		o.adapter = nil
		c.event(command.Event{Type: command.EventDeviceRemoval, Object: o.handle, Context: o.context, Adapter: a.index})
	})
}

// takeObjects releases the objects of a client on the adapter, and appends what is to be called for that without the loop lock. The
// handles remain until the program destroys them, and so do its rings, where it finds the flushed requests.
func (a *adapter) takeObjects(c *Client, releases *[]func()) {
	c.qps.Each(func(q *qp) {
		if q.adapter == a {
			q.unmake()
		}
	})
	c.mws.Each(func(m *mw) {
		if m.pd.adapter == a && m.window != nil {
			_ = a.memory.FreeWindow(m.window.Key())
			m.window = nil
			a.objects.MW--
		}
	})
	c.mrs.Each(func(m *mr) {
		if m.pd.adapter == a && m.region != nil {
			m.withdraw(c)                         // nobody is in the middle of an operation: the pairs are owned by the driver
			_ = a.memory.Deregister(m.region.Key) // its windows are gone
			a.disown(m.region.Bytes)
			a.objects.MR--
			a.regionPages -= pagesOf(m.region)
			m.region = nil
			if m.release != nil {
				*releases = append(*releases, m.release)
				m.release = nil
			}
		}
	})
	c.cqs.Each(func(q *cq) {
		if q.adapter == a {
			q.end(errRemoved())
		}
	})
}

// SetImpairment sets what the adapter's port does to the packets that it sends. A running connection on
// the local path moves to the wire at its next message.
func (h *Host) SetImpairment(index uint32, set impair.Impairment) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	a.links.SetImpairment(set)
	a.reroute()
	return a.controlCongestion() // the line rate may be another one
}

// Impairment returns the setting of the adapter's port.
func (h *Host) Impairment(index uint32) (impair.Impairment, error) {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return impair.Impairment{}, err
	}
	return *a.links.Impairment(), nil
}

// SetPath changes the path policy of an adapter. Under PathWire, running local connections move to the
// wire at their next message boundary.
func (h *Host) SetPath(index uint32, p PathPolicy) error {
	if p > PathDirect {
		return command.Errorf(command.Invalid, "Path is %d, want auto, wire, local or direct", p)
	}
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	a.path = p
	a.reroute()
	return nil
}

// Subscribe calls fn after every change of an adapter's state until cancel is called. fn runs without the
// loop lock on a goroutine of its own, in order; cancel returns after its last call, and must not be called by
// fn.
func (h *Host) Subscribe(fn func(notify.Change)) (cancel func()) { return h.subscribers.Subscribe(fn) }

// report tells the subscribers of a change.
func (a *adapter) report(flags notify.Flags) {
	if a.virtual() { // subscribers know adapters
		return
	}
	a.recordChange(flags)
	a.host.subscribers.Report(notify.Change{Adapter: a.index, Addr: a.cfg.Addr, Flags: flags})
}

// Settle returns when subscribers have been told of every change of state so far. A subscriber must not
// call it.
func (h *Host) Settle() { h.subscribers.Settle() }
