package device

import (
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/dcb"
	"github.com/softvpi/softvpi/internal/function/lldp"
	"github.com/softvpi/softvpi/internal/port"
	wire "github.com/softvpi/softvpi/wire/lldp"
)

// agent is the LLDP agent of a port with a wire of whole Ethernet frames, in the name of its first adapter. It is at the port
// while any function of the port works and it is not off in both directions.
type agent struct {
	a       *adapter
	f       *lldp.Function
	station *port.Station // nil: it is not at the port
	deaf    error         // why its wire does not hear the others; nil: it does
}

// LLDPStatus is what the agent of a port knows.
type LLDPStatus struct {
	Running    bool
	Config     dcb.Config
	Counters   dcb.Counters
	DCBX       dcb.DCBXStatus
	Neighbours []NeighbourStatus
	Crowded    bool // there are more neighbours than are known
	// Deaf is why the wire does not hear the others; nil: it does.
	Deaf error
}

// NeighbourStatus is a neighbour with how long it is known, and for how much longer.
type NeighbourStatus struct {
	dcb.Neighbour
	Known, Left time.Duration
}

// SetLLDP changes how the LLDP agent of an adapter's port works, at once. The MAC is the adapter's, and IDs that are empty are made
// of it: the chassis is that of the device's first port. Errors are a *command.Error: Unsupported on a port that has none, unless
// it is to be off.
func (h *Host) SetLLDP(index uint32, cfg dcb.Config) error {
	h.lock()
	defer h.finish()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	if err := a.checkAgent(); err != nil {
		if cfg.Transmit == dcb.Off && cfg.Receive == dcb.Off {
			return nil
		}
		return err
	}
	cfg.MAC = a.mac
	if cfg.Local.ChassisID == (wire.ID{}) {
		cfg.Local.ChassisID = wire.ChassisOf(a.chassis())
	}
	if cfg.Local.PortID == (wire.ID{}) {
		cfg.Local.PortID = wire.PortOf(a.mac)
	}
	p, now := a.port, h.now()
	if p.agent == nil {
		g := &agent{a: a}
		g.f = lldp.New(dcb.New(cfg), p.agree)
		p.agent = g
	}
	p.agent.f.Follow(func(x *dcb.Agent) { x.Configure(now, cfg) })
	p.followAgent()
	return nil
}

// CheckLLDP reports why the port of an adapter has no LLDP agent of its own. Errors are a *command.Error.
func (h *Host) CheckLLDP(index uint32) error {
	h.lock()
	defer h.unlock()
	a, err := h.adapter(index)
	if err != nil {
		return err
	}
	return a.checkAgent()
}

// checkAgent reports why the adapter's port has no LLDP agent of its own.
func (a *adapter) checkAgent() error {
	switch o := a.links.All()[0]; {
	case a.ib != nil:
		return command.Errorf(command.Unsupported, "adapter %q is an InfiniBand port, which has no LLDP", a.name)
	case o.Shared():
		return command.Errorf(command.Unsupported, "adapter %q is a function at the port of another, whose settings of LLDP count", a.name)
	case !o.Whole():
		return command.Errorf(command.Unsupported,
			"adapter %q has UDP sockets, which carry no LLDP frames: it needs a wire of whole frames (interface=, tap=, datagram= or switch=)",
			a.name)
	}
	return nil
}

// chassis returns the MAC of the device's first port.
func (a *adapter) chassis() [6]byte {
	first := a
	for _, o := range a.host.adapters {
		if a.cfg.Device != "" && o.cfg.Device == a.cfg.Device && o.ib == nil && o.cfg.Port < first.cfg.Port {
			first = o
		}
	}
	return first.mac
}

// agree lets the port work by what was agreed, and tells the driver.
func (p *portLoop) agree(x lldp.Agreement) {
	p.work(x.Operative)
	if told := p.host.cfg.Agreed; told != nil && p.agent != nil {
		told(p.agent.a.index, x)
	}
}

// on reports whether the agent is at the port.
func (g *agent) on() bool { return g != nil && g.station != nil }

// followAgent puts the port's agent at the port, or takes it away.
func (p *portLoop) followAgent() {
	if p.agent == nil {
		return
	}
	c := p.agent.f.Configuration()
	switch want := p.enabled() && (c.Transmit != dcb.Off || c.Receive != dcb.Off); {
	case want && !p.agent.on():
		p.startAgent()
	case !want:
		p.stopAgent()
	}
}

func (p *portLoop) startAgent() {
	g, now := p.agent, p.host.now()
	o := g.a.links.All()[0]
	if g.deaf = o.Hear(wire.NearestBridge, true); g.deaf != nil {
		p.host.log.Warn("the wire does not hear LLDP", "adapter", g.a.name, "cause", g.deaf)
	}
	g.station = p.Attach(g.f, port.Station{MAC: g.a.mac, Kind: port.Agent})
	g.station.Plug(o.Wire, netip.Addr{}, nil)
	g.f.Follow(func(x *dcb.Agent) {
		x.SetWire(now, g.a.wire.Up)
		x.Start(now)
	})
}

// stopAgent takes the agent away; the other end hears of it.
func (p *portLoop) stopAgent() {
	if !p.agent.on() {
		return
	}
	g, now := p.agent, p.host.now()
	g.f.Follow(func(x *dcb.Agent) { x.Stop(now) })
	p.transmit(now)
	p.forget(g.station)
	p.Detach(g.station)
	g.station = nil
	_ = g.a.links.All()[0].Hear(wire.NearestBridge, false) // it is heard, or was never
}

// agentCarrier tells the agent of an adapter's port whether there is a wire.
func (a *adapter) agentCarrier() {
	if g := a.port.agent; g.on() && g.a == a {
		now := a.host.now()
		g.f.Follow(func(x *dcb.Agent) { x.SetWire(now, a.wire.Up) })
	}
}

// lldpCounters returns those of the agent of an adapter's port.
func (a *adapter) lldpCounters() dcb.Counters {
	if g := a.port.agent; g != nil && g.a == a {
		return g.f.Counters()
	}
	return dcb.Counters{}
}

// lldpStatus returns what the agent of an adapter's port knows; nil if it has none.
func (a *adapter) lldpStatus() *LLDPStatus {
	g := a.port.agent
	if g == nil || g.a != a {
		return nil
	}
	now := a.host.now()
	s := &LLDPStatus{Running: g.on(), Config: g.f.Configuration(), Counters: g.f.Counters(), DCBX: g.f.DCBX(), Crowded: g.f.Crowded(now),
		Deaf: g.deaf}
	for _, n := range g.f.Neighbours() {
		s.Neighbours = append(s.Neighbours, NeighbourStatus{n, now.Sub(n.Since), n.Expires.Sub(now)})
	}
	return s
}
