package device

import (
	"net"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/device/notify"
	"github.com/softvpi/softvpi/internal/link"
)

// linkErrors passes the ICMP errors of destinations to the functions that sent there, and tells all what has become of their wires.
func (p *portLoop) linkErrors(now clock.Time) {
	p.errorsDue = now.Add(errorInterval)
	p.conflicts()
	p.tendSwitch(now)
	moved := now >= p.asleepDue
	for _, a := range p.owners {
		for _, o := range a.links.All() {
			if o.Link == nil || o.Shared() {
				continue
			}
			n := o.Link.Errors(p.errors)
			for _, e := range p.errors[:n] {
				p.unreachable(now, a, e)
			}
			moved = o.Moved() || moved
		}
	}
	if moved {
		p.asleepDue = now.Add(asleepInterval)
		for _, a := range p.functions {
			a.hearModes(now)
		}
		p.followWires()
		return
	}
	for i := 0; i < len(p.awake); i++ {
		p.awake[i].hearModes(now)
		p.awake[i].followWire()
	}
}

// followWires adapts the functions to the present state of their wires.
func (p *portLoop) followWires() {
	for _, a := range p.functions {
		a.followWire()
	}
}

// relight looks whether wires that are down have come back, because something is to be sent or has arrived. The system is not
// asked about interfaces all the time: that takes long.
func (p *portLoop) relight(now clock.Time) {
	p.linkErrors(now)
	if now < p.lightDue {
		return
	}
	p.lightDue = now.Add(lightInterval)
	for _, a := range p.functions {
		if w, ok := p.host.wireOf(&a.cfg); ok {
			a.heed(w)
		}
	}
}

// conflictInterval is how often subscribers are told of conflicts about an adapter's addresses, at most.
const conflictInterval = time.Minute

// conflicts tells subscribers whose addresses others on the wire use, too.
func (p *portLoop) conflicts() {
	for _, a := range p.owners {
		for _, o := range a.links.All() {
			if o.Link == nil || o.Shared() {
				continue
			}
			if s := o.Link.Capabilities().Stations; s != nil {
				for _, c := range s.Conflicts() {
					p.conflict(c)
				}
			}
		}
	}
}

func (p *portLoop) conflict(c link.Conflict) {
	now := p.host.now()
	for _, a := range p.functions {
		if a.cfg.VLAN != c.VLAN || a.cfg.Addr != c.Addr && !slices.Contains(a.links.Addrs(), c.Addr) {
			continue
		}
		if c.Over {
			p.host.log.Info("nobody else on the wire has the adapter's address any more", "adapter", a.name, "address", c.Addr)
			a.conflictDue = 0
			continue
		}
		if now < a.conflictDue {
			continue
		}
		a.conflictDue = now.Add(conflictInterval)
		p.host.log.Warn("somebody else on the wire has the adapter's address", "adapter", a.name, "address", c.Addr,
			"mac", net.HardwareAddr(c.MAC[:]).String(), "used", !c.Lost)
		if a.virtual() {
			continue
		}
		p.host.subscribers.Report(notify.Change{Adapter: a.index, Addr: c.Addr, Flags: notify.SameAddress, MAC: c.MAC})
	}
}

// hear lets the links of a port that is not driven follow changes of their wires.
func (p *portLoop) hear() {
	if p.enabled() {
		return
	}
	for _, a := range p.functions {
		for _, o := range a.links.All() {
			if o.Link != nil && !o.Shared() {
				_ = o.Link.Errors(p.errors) // nobody has sent anything
			}
		}
	}
}

// unreachable passes an ICMP error that the link of an adapter reports to that adapter, and to all those that share it: it
// does not say whose packet it was.
func (p *portLoop) unreachable(now clock.Time, by *adapter, e link.Unreachable) {
	for _, a := range p.functions {
		if a == by || a.links.All()[0].Shared() && a.subnet() == 0 { // no wire knows customers
			a.unreachable(now, e)
		}
	}
}
