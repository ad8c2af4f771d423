package device

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/wire/eth"
)

// FlowControl is what the keys of an adapter say about pauses. The settings of priorities come first: while any priority is to be
// paused on its own (PFC), own or agreed by DCBX, that is obeyed and asked for, and nothing else.
type FlowControl struct {
	Obeys, Asks pause.Scope
	// Watch is how long the receive path may stand still, and Lifetime how long packets may be at the head of their class.
	Watch    port.Watch
	Lifetime port.Lifetime
}

// FlowStatus is how the flow control of an adapter's port stands.
type FlowStatus struct {
	// Refused is why the port has none; nil: it has. What follows is of no meaning then.
	Refused error
	// Deaf is why the wire does not hear pauses; nil: it does.
	Deaf error
	pause.Config
	// Paused are the priorities at which the port is silent now, and Told those at which its peer was told to be.
	Paused, Told uint8
	// Stalled says that there is none for now because the receive path stands still.
	Stalled bool
	// Dropless is for how long packets wait that find no receive; 0: dropless mode is off. Waiting are those that do.
	Dropless time.Duration
	Waiting  int
}

// FlowCounters are those of a port's flow control. They are the first adapter's if several share the port.
type FlowCounters struct {
	pause.Counters
	port.Stalls
	Control uint64 // MAC control frames received
	// Overruns were received in dropless mode, and lost because too many waited, and Discards lost instead of sent because they had
	// been at the head of their class for too long; by priority.
	Overruns, Discards [pause.Priorities]uint64
}

// SetFlowControl changes which pauses an adapter's port obeys and sends, at once. An adapter whose port has none keeps it for
// nothing: CheckFlowControl says why.
func (h *Host) SetFlowControl(index uint32, f FlowControl) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	a.flow = f
	a.port.followFlow()
	return nil
}

// SetDropless makes the port of an adapter enter dropless mode, in which a packet waits for so long for a receive, or leave it with 0.
// Errors are a *command.Error: Unsupported on a port without flow control.
func (h *Host) SetDropless(index uint32, timeout time.Duration) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	if err := a.checkFlow(); err != nil {
		return err
	}
	a.port.SetDropless(port.Dropless{Timeout: timeout, Expired: func(queue uint32) {
		if told := h.cfg.DroplessExpired; told != nil {
			told(index, queue)
		}
	}})
	return nil
}

// CheckFlowControl reports why the port of an adapter has no flow control of its own. Errors are a *command.Error.
func (h *Host) CheckFlowControl(index uint32) error {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	return a.checkFlow()
}

func (a *adapter) checkFlow() error {
	switch o := a.links.All()[0]; {
	case a.ib != nil:
		return command.Errorf(command.Unsupported, "adapter %q is an InfiniBand port, which has credits instead of pauses", a.name)
	case o.Shared():
		return command.Errorf(command.Unsupported, "adapter %q is a function at the port of another, whose flow control counts", a.name)
	case !o.Whole():
		return command.Errorf(command.Unsupported,
			"adapter %q has UDP sockets, which carry no pause frames: it needs a wire of whole frames (interface=, tap=, datagram= or switch=)",
			a.name)
	}
	return nil
}

// flowOwner returns the adapter whose settings are the port's; nil: its wire has no pauses.
func (p *portLoop) flowOwner() *adapter {
	for _, a := range p.functions {
		if a.checkFlow() == nil {
			return a
		}
	}
	return nil
}

// followFlow makes the port's flow control follow the settings, the wire's speed, and whether the port works at all.
func (p *portLoop) followFlow() {
	a := p.flowOwner()
	if a == nil {
		return
	}
	o := a.links.All()[0]
	cfg := pause.Config{MAC: a.mac, Rate: a.speed()}
	if p.enabled() && o.Link != nil {
		cfg.Obeys, cfg.Asks = a.flow.Obeys, a.flow.Asks
		if only := p.operative.PFC; only != 0 {
			cfg.Obeys, cfg.Asks = pause.Only(only), pause.Only(only)
		}
	}
	on := cfg.Obeys.Mode != pause.None
	if p.deaf = nil; on || p.heard {
		if err := o.Hear(eth.PauseMAC, on); on {
			p.deaf = err
		}
		p.heard = on
	}
	if p.deaf != nil {
		p.host.log.Warn("the wire does not hear pauses", "adapter", a.name, "cause", p.deaf)
	}
	now := p.host.now()
	p.SetFlowControl(now, o.Wire, cfg)
	if !p.enabled() {
		p.resume(now)
	}
	if o.Link != nil {
		if far := o.Link.Capabilities().Pauses; far != nil {
			far.SetPauses(cfg.Obeys, cfg.Asks, cfg.Rate)
		}
	}
	p.SetWatch(a.flow.Watch)
	if p.Lifetime() != a.flow.Lifetime {
		if err := p.SetLifetime(a.flow.Lifetime); err != nil {
			p.host.log.Warn("the port does not follow the lifetime of packets", "adapter", a.name, "cause", err)
		}
	}
}

// stopFlow ends the port's flow control.
func (p *portLoop) stopFlow() {
	if a := p.flowOwner(); a != nil && p.FlowControl() != nil {
		now := p.host.now()
		p.SetFlowControl(now, a.links.All()[0].Wire, pause.Config{MAC: a.mac, Rate: a.speed()})
		p.resume(now)
	}
}

// resume tells the other end, before the port is not driven any more, that it may go on, if it was told to be silent: else it would be for
// as long as the last pause lasts.
func (p *portLoop) resume(now clock.Time) {
	if e := p.FlowControl(); e != nil && e.Told() != 0 {
		p.transmit(now)
	}
}

// flowStatus returns how the flow control of an adapter's port stands.
func (a *adapter) flowStatus() FlowStatus {
	s := FlowStatus{Refused: a.checkFlow(), Deaf: a.port.deaf}
	if e := a.port.FlowControl(); e != nil && s.Refused == nil {
		s.Config = e.Config()
		s.Paused, s.Told, s.Stalled = e.Paused(a.host.now()), e.Told(), a.port.Stalled()
		s.Dropless, s.Waiting = a.port.Dropless(), a.port.Waiting()
	}
	return s
}

// flowCounters returns those of the flow control of an adapter's port.
func (a *adapter) flowCounters() (c FlowCounters) {
	if e := a.port.FlowControl(); e != nil && a.port.flowOwner() == a {
		p := a.port
		c.Counters, c.Stalls, c.Control = *e.Counters(a.host.now()), p.Stalls(), p.ControlFrames()
		c.Overruns, c.Discards = p.Overruns(), p.Discarded()
	}
	return c
}

// The priorities of frames and of pauses are the same.
var _ = [1]struct{}{}[frame.Priorities-pause.Priorities]
