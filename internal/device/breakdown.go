package device

import (
	"errors"
	"runtime/debug"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/port"
)

// turn gives a port its turn. If somebody is told of breakdowns, a panic of the port's engines is one: then the port, whose state
// nobody knows any more, has no further turns, and the others go on.
func (h *Host) turn(p *portLoop, now clock.Time) bool {
	if p.fault == halted {
		return false
	}
	p.turns++
	if h.cfg.Broken == nil {
		return p.step(now)
	}
	return p.guarded(now)
}

func (p *portLoop) guarded(now clock.Time) (worked bool) {
	defer func() {
		if v := recover(); v != nil {
			p.breaks(v)
		}
	}()
	switch p.fault {
	case panics:
		panic("a fault that was asked for")
	case endless:
		select {}
	}
	return p.step(now)
}

// orderly reports whether the port's engines may be asked for anything.
func (p *portLoop) orderly() bool { return !p.broken && p.fault != halted }

// breaks notes that the port is broken. The caller is a deferred function of the panicking one.
func (p *portLoop) breaks(value any) {
	first := !p.broken
	p.broken, p.sent, p.queued = true, 0, 0
	p.host.watched++
	if !first {
		return
	}
	b := Breakdown{Value: value, Stack: debug.Stack()}
	for _, a := range p.functions {
		if !a.virtual() {
			b.Adapters = append(b.Adapters, a.index)
		}
	}
	p.host.log.Error("the engines of a port have panicked; the port stands still", "adapter", p.functions[0].name, "panic", value,
		"stack", string(b.Stack))
	p.host.cfg.Broken(b)
}

// attempt does a part of what ends a function. At a broken port that may panic too, and the other parts are done nevertheless.
func (a *adapter) attempt(part func()) {
	if a.port.broken {
		defer func() {
			if v := recover(); v != nil {
				a.host.log.Warn("a broken function did not end in order", "adapter", a.name, "panic", v)
			}
		}()
	}
	part()
}

// Mend makes the port of an adapter work again whose engines have panicked: its functions, all of which must be disabled, get new
// engines, with new counters; virtual ones are disabled for that time. Errors are *command.Error: Busy while a function is enabled;
// without a breakdown nothing is done.
func (h *Host) Mend(index uint32) error {
	stopped := h.stopFunctions(index)
	err := h.mend(index)
	for _, i := range stopped {
		err = errors.Join(err, h.SetAdapterState(i, true))
	}
	return err
}

func (h *Host) mend(index uint32) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil || !a.port.broken {
		return err
	}
	p := a.port
	for _, o := range p.functions {
		if o.enabled || o.nic.on() {
			return command.Errorf(command.Busy, "adapter %q is enabled; its port is mended while it is disabled", o.name)
		}
	}
	for _, o := range p.functions {
		if err := o.renew(); err != nil {
			return err
		}
	}
	p.broken, p.fault = false, 0
	return nil
}

// renew gives a disabled function new engines at its place at the port. What its peers have not confirmed of the ends of their connections
// is the new connection manager's to repeat: all that the broken one could do was to say it once.
func (a *adapter) renew() error {
	a.attempt(func() { a.port.Detach(a.station) })
	former := a.cm
	if err := a.makeEngines(); err != nil {
		return err
	}
	a.attempt(func() { a.cm.Inherit(a.host.now(), former) })
	a.record()
	clear(a.byNumber)
	clear(a.ids)
	a.station = a.stand()
	a.port.relist()
	a.rejoin()
	a.switchStation(false) // until it is enabled
	return a.controlCongestion()
}

// stand puts the adapter's function behind its port.
func (a *adapter) stand() *port.Station {
	s := a.port.Attach(a.function, port.Station{MAC: a.mac, VLAN: a.cfg.VLAN, UDPPort: a.cfg.UDPPort, At: a.at,
		Attached: a.attached, Carried: a.counted(&a.carried.rdma), Sleeps: a.followStation})
	if a.ib != nil {
		s.Owns, s.Virtual = a.ownsGID, a.virtual()
		if a.cfg.byLID {
			s.OwnsLID = a.ownsLID
		}
	}
	if a.virtual() {
		s.SetShare(a.host.now(), a.cfg.Virtual.Share)
	}
	if a.cfg.ofTenant {
		s.Join(a.purse())
	}
	a.links.Attach(s)
	return s
}
