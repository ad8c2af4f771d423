package packet

import (
	"golang.org/x/sys/unix"
)

// Tend follows changes of the system. Call it every few milliseconds while packets are sent, and when the
// second descriptor is readable. It returns true once, when the Port was switched off for good: the ring
// gets nothing more, and the socket's filter must be removed.
func (p *Port) Tend() (off bool) {
	p.ticks++
	p.ring.settle()
	if !p.system.changes(p.changed) {
		p.forget()
	}
	if p.other {
		p.other = false
		if d, ok := p.system.device(p.cfg.Interface); ok {
			p.device = d
		}
		if p.device.enslaved && p.off == "" {
			return p.stop(partOfAnother)
		}
	}
	for range resolveMost {
		if p.redo >= len(p.hops) {
			break
		}
		p.resolve(&p.hops[p.redo])
		p.redo++
	}
	if refresh := p.ticks%refreshTicks == 0; p.off == "" && (refresh || p.late && p.early) {
		p.late = false
		p.followIngress()
	}
	if p.off == "" && p.wall != nil && p.ticks%refreshTicks == 0 && p.wall.stands() {
		return p.stop(firewallStands)
	}
	return false
}

// followIngress makes the ring get packets early as long as tc has nothing at the interface's ingress.
func (p *Port) followIngress() {
	early := !p.system.filtersIngress(p.cfg.Interface, p.system.ask, p.gate.own())
	if early == p.early {
		return
	}
	p.gate.set(false) // what arrives late would not arrive at all
	if p.ring.bind(p.Rule(), early) == nil {
		p.early = early
	}
	p.setGate()
}

// Sole says that what is completely in the ring is wanted only there, until Pause: the socket need not get
// it.
func (p *Port) Sole() {
	p.sole = true
	p.setGate()
}

// setGate makes the gate drop what the ring has if nobody else needs it.
func (p *Port) setGate() { p.gate.set(p.sole && p.early) }

// Dropped returns how many frames completely in the ring were dropped by the system before they reached
// the socket and its filter.
func (p *Port) Dropped() uint64 { return p.gate.dropped() }

// stop makes the ring take nothing more.
func (p *Port) stop(why string) bool {
	if !p.Pause() {
		return false
	}
	p.off = why
	return true
}

// Pause makes the ring take nothing until Resume. Its content stays. Both report whether the system
// complied.
func (p *Port) Pause() bool {
	p.sole = false
	p.setGate()
	return attach(p.ring.fd, []instruction{{Code: take}}) == nil
}

// Resume makes the ring take what its rule says again, unless it was switched off for good.
func (p *Port) Resume() bool { return p.off == "" && attach(p.ring.fd, p.Rule().ring()) == nil }

// changed handles a change of the system.
func (p *Port) changed(kind uint16, body []byte) {
	switch kind {
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		n, ok := parseNeighbour(body, kind == unix.RTM_DELNEIGH)
		if !ok || n.out != p.cfg.Interface {
			return
		}
		for i := range p.hops {
			if p.hops[i].next == n.addr {
				p.meet(&p.hops[i], &n)
			}
		}
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC:
		q, ok := parseQdisc(body)
		p.late = p.late || ok && q.out == p.cfg.Interface
	case unix.RTM_NEWTCLASS, unix.RTM_DELTCLASS, unix.RTM_NEWTFILTER, unix.RTM_DELTFILTER, unix.RTM_NEWACTION, unix.RTM_DELACTION,
		unix.RTM_NEWCHAIN, unix.RTM_DELCHAIN: // concerns existing qdiscs
	default:
		p.forget()
	}
}

// forget invalidates everything, so that it is queried again.
func (p *Port) forget() {
	for i := range p.hops {
		p.hops[i].usable = false
	}
	p.redo, p.other, p.late = 0, true, true
}
