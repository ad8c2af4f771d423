package lacp

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/lacp"
)

// speaks reports whether data units are sent at all: the periodic machine is in another state than NO_PERIODIC (6.4.13).
func (p *port) speaks() bool {
	return p.up && (p.actor.State|p.partner.State)&lacp.Activity != 0
}

// period does what the periodic machine has to: it begins, and goes to the other period, when the partner wants that.
func (p *port) period(now clock.Time) {
	if !p.speaks() {
		p.periodic, p.ntt = clock.Never, false
		return
	}
	fast := p.partner.State&lacp.Timeout != 0
	switch {
	case p.periodic == clock.Never:
	case p.periodic <= now, fast && !p.fast: // PERIODIC_TX
		p.ntt = true
	case fast == p.fast:
		return
	}
	p.fast, p.periodic = fast, now.Add(SlowPeriod)
	if fast {
		p.periodic = now.Add(FastPeriod)
	}
}
