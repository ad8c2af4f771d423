package lacp

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/lacp"
)

// mostUnits is how many data units a port sends in FastPeriod at most (6.4.16).
const mostUnits = 3

// may returns when the port may send the next data unit.
func (p *port) may() clock.Time {
	if p.sent < mostUnits {
		return 0
	}
	return p.last[p.sent%mostUnits].Add(FastPeriod)
}

// unit returns the data unit that is to be sent (Need To Transmit); false: there is none, or not yet.
func (p *port) unit(now clock.Time) (lacp.PDU, bool) {
	if !p.ntt || !p.speaks() || now < p.may() {
		return lacp.PDU{}, false
	}
	p.last[p.sent%mostUnits] = now
	p.sent++
	p.ntt = false
	return lacp.PDU{Version: 1, Actor: p.actor, Partner: p.partner}, true
}
