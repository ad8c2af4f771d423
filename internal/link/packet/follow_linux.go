package packet

import (
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Tend follows changes of the system. Call it every few milliseconds, and when the descriptor of Changes is readable.
func (p *Port) Tend(now time.Time) {
	p.ticks++
	if p.intake != nil {
		p.intake.Tend(now)
	}
	if !p.system.changes(p.changed) {
		p.forget()
	}
	if p.other {
		p.other = false
		if d, ok := p.system.device(p.cfg.Interface); ok {
			p.device = d
		}
		if p.device.enslaved {
			p.stop(partOfAnother)
		}
	}
	for range resolveMost {
		if p.redo >= len(p.hops) {
			break
		}
		p.resolve(&p.hops[p.redo])
		p.redo++
	}
	refresh := p.ticks%refreshTicks == 0
	if refresh || p.late {
		p.late = false
		p.followIngress()
	}
	if refresh && p.wall != nil && p.wall.stands() {
		p.stop(firewallStands)
	}
}

// followIngress opens the gate as long as tc has nothing at the interface's ingress: programs there may drop, change and
// redirect packets. While it is shut, the filter takes them, behind tc.
func (p *Port) followIngress() {
	if p.intake == nil || p.intake.gate == nil || p.off != "" {
		return
	}
	g := p.intake.gate
	open := !p.system.filtersIngress(p.cfg.Interface, p.system.socket(), g.id)
	if open && !g.tried {
		// It opens the next time, when it has counted all that is on its way to the filter.
		p.late = g.attach(p.cfg.Interface) == nil
		return
	}
	p.intake.open(open)
}

// stop ends frames for good: packets come and go through the socket.
func (p *Port) stop(why string) {
	if p.off != "" {
		return
	}
	p.off = why
	if p.intake != nil {
		p.intake.Stop()
	}
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
