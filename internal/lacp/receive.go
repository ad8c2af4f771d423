package lacp

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/lacp"
)

// receiveState is the state of the receive machine (6.4.12), in the order of how much is known of the partner.
type receiveState uint8

const (
	portDisabled receiveState = iota
	expired
	defaulted
	current
)

var receiveNames = [...]string{"disabled", "expired", "defaulted", "current"}

// enable is what INITIALIZE, PORT_DISABLED and EXPIRED do when a link comes or goes (figure 6-18). What was heard before is kept while
// the link is away: the same partner is found again soon.
func (p *port) enable(now clock.Time, up bool) {
	p.up = up
	if !up {
		p.receive, p.whileTimer = portDisabled, clock.Never
		p.partner.State &^= lacp.Synchronization
		p.selected = unselected
		p.actor.State &^= lacp.Expired
		p.ntt, p.marks = false, false
		return
	}
	p.expire(now)
}

// expire enters EXPIRED: the partner is asked to speak soon, and what it said counts no more for collecting.
func (p *port) expire(now clock.Time) {
	p.receive = expired
	p.partner.State &^= lacp.Synchronization
	p.partner.State |= lacp.Timeout
	p.whileTimer = now.Add(ShortTimeout)
	p.actor.State |= lacp.Expired
}

// timeout is what follows when current_while_timer ends: CURRENT leads to EXPIRED, and that to DEFAULTED.
func (p *port) timeout(now clock.Time) {
	if p.receive == current {
		p.timeouts++
		p.expire(now)
		return
	}
	p.receive, p.whileTimer = defaulted, clock.Never
	if !same(&p.partner, &silent) { // update_Default_Selected
		p.selected = unselected
	}
	p.recordDefault()
	p.actor.State &^= lacp.Expired
}

// recordDefault takes the partner that is assumed for one that is silent.
func (p *port) recordDefault() {
	p.partner = silent
	p.actor.State |= lacp.Defaulted
}

// hear enters CURRENT with a data unit.
func (p *port) hear(now clock.Time, u *lacp.PDU) {
	if !same(&u.Actor, &p.partner) { // update_Selected
		p.selected = unselected
	}
	const told = lacp.Activity | lacp.Timeout | lacp.Synchronization | lacp.Aggregation
	if !same(&u.Partner, &p.actor) || (u.Partner.State^p.actor.State)&told != 0 { // update_NTT
		p.ntt = true
	}
	p.record(u)
	p.receive = current
	p.actor.State &^= lacp.Expired
	p.whileTimer = now.Add(LongTimeout)
	if p.actor.State&lacp.Timeout != 0 {
		p.whileTimer = now.Add(ShortTimeout)
	}
}

// record is recordPDU (6.4.9). The partner is in synchronization if it says so, knows who it speaks with or is individual, and one of the
// two will go on speaking.
func (p *port) record(u *lacp.PDU) {
	p.partner = u.Actor
	p.actor.State &^= lacp.Defaulted
	active := u.Actor.State&lacp.Activity != 0 || p.actor.State&u.Partner.State&lacp.Activity != 0
	if !active || !same(&u.Partner, &p.actor) && u.Actor.State&lacp.Aggregation != 0 {
		p.partner.State &^= lacp.Synchronization
	}
}

// same reports whether two participants are the same port of the same system with the same key, which may be aggregated or not.
func same(a, b *lacp.Participant) bool {
	x, y := *a, *b
	x.State &= lacp.Aggregation
	y.State &= lacp.Aggregation
	return x == y
}
