package packet

import (
	"github.com/vishvananda/netlink/nl"
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

// followIngress receives packets early as long as tc has nothing at the interface's ingress, and through the gate as long
// as that is attached.
func (p *Port) followIngress() {
	was := p.early
	early := !p.system.filtersIngress(p.cfg.Interface, p.system.socket(), p.gate.own())
	lost := early && p.gate.lost(p.cfg.Interface)
	if early == was && !lost {
		return
	}
	p.gate.set(shut) // what the gate drops would not reach the ring
	p.early = early
	if lost {
		p.gate.gone = true
	}
	if !p.changeRing() {
		p.early = was
	}
	p.to = p.source()
	p.lone = p.only()
	p.setGate()
}

// changeRing gives the ring its filter and protocol. It reports whether the system complied.
func (p *Port) changeRing() bool {
	if p.from != source(p.ring) {
		p.ring.discard() // it only woke the consumer
	}
	if Attach(p.ring.fd, p.filter()...) != nil {
		return false
	}
	protocol := p.shown()
	return protocol == p.ring.protocol || p.ring.bind(p.Rule(), protocol) == nil
}

// Sole says that what the Port receives completely is wanted only here, until Pause: the socket need not get it.
func (p *Port) Sole() {
	p.sole = true
	p.setGate()
}

// setGate tells the gate what to do.
func (p *Port) setGate() {
	switch {
	case !p.gated() || p.paused:
		p.gate.set(shut)
	case p.sole:
		p.gate.set(copyDrops)
	default:
		p.gate.set(copies)
	}
}

// Dropped returns how many frames the gate dropped before they reached the socket and its filter, because they were
// received completely or found no room.
func (p *Port) Dropped() uint64 { return p.gate.dropped() }

// stop makes the ring take nothing more.
func (p *Port) stop(why string) bool {
	if !p.Pause() {
		return false
	}
	p.off = why
	return true
}

// Pause stops receiving until Resume; packets received before stay. Both report whether the system complied.
func (p *Port) Pause() bool {
	p.sole, p.paused = false, true
	p.setGate()
	p.paused = Attach(p.ring.fd, p.filter()...) == nil || p.gated()
	return p.paused
}

// Resume receives the packets of the rule again, unless the Port was switched off for good.
func (p *Port) Resume() bool {
	if p.off != "" {
		return false
	}
	p.paused = false
	if Attach(p.ring.fd, p.filter()...) != nil {
		p.paused = true
	}
	p.setGate()
	return !p.paused
}

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
		p.late = p.late || int(nl.DeserializeTcMsg(body).Ifindex) == p.cfg.Interface
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
