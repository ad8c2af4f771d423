package lacp

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/lacp"
)

// selection is the variable Selected of a port (6.4.8).
type selection uint8

const (
	unselected selection = iota
	standby
	selected
)

var selectedNames = [...]string{"unselected", "standby", "selected"}

// partnership is what links have to have in common to be aggregated, beside the system and key of this end (the LAG ID of 6.3.6): those
// of the other. A link that is individual has its own.
type partnership struct {
	priority uint16
	system   eth.MAC
	key      uint16
	alone    uint16 // the port of an individual link; 0: it may be aggregated
}

// partnership returns that of a port. A link to the system itself is individual, and so is one whose partner says nothing.
func (p *port) partnership(own *Config) partnership {
	x := partnership{priority: p.partner.SystemPriority, system: p.partner.System, key: p.partner.Key}
	if p.partner.State&lacp.Aggregation == 0 || p.partner.System == own.System {
		x.alone = p.actor.Port
	}
	return x
}

// candidate is one partnership of a group, and what speaks for it.
type candidate struct {
	partnership
	heard receiveState // the best of its ports
	links int
	rate  uint64
}

// better reports whether a candidate goes before another, which was found first: one that speaks before one that is known to be silent, to
// which frames can be sent, and that before one of which nothing is known yet.
func (c *candidate) better(than *candidate, by Choice) bool {
	if c.heard != than.heard {
		return c.heard > than.heard
	}
	if by == Bandwidth && c.rate != than.rate {
		return c.rate > than.rate
	}
	return c.links > than.links
}

// choose finds the partnership to which the group's aggregator belongs.
func (g *group) choose(own *Config) {
	var all []candidate
	for _, p := range g.ports {
		if !p.up {
			continue
		}
		id, i := p.partnership(own), 0
		for i < len(all) && all[i].partnership != id {
			i++
		}
		if i == len(all) {
			all = append(all, candidate{partnership: id})
		}
		all[i].heard = max(all[i].heard, p.receive)
		all[i].links++
		all[i].rate += p.rate
	}
	g.chosen = g.best(all)
}

// best returns which partnership is to be that of the aggregator; nil: no link is up.
func (g *group) best(all []candidate) *partnership {
	if len(all) == 0 {
		return nil
	}
	best := 0
	if g.chosen != nil {
		for i := range all {
			if all[i].partnership == *g.chosen {
				best = i
			}
		}
		kept := all[best].partnership == *g.chosen
		if kept && g.cfg.Choice == Stable && all[best].heard == current {
			return &all[best].partnership
		}
	}
	for i := range all {
		if all[i].better(&all[best], g.cfg.Choice) {
			best = i
		}
	}
	return &all[best].partnership
}

// selectPorts lets each port of the group that is detached, or waits, have the aggregator if its partner is the right one, and stand by
// otherwise (6.4.14). An aggregator is left before another partner gets it.
func (g *group) selectPorts(own *Config) {
	g.choose(own)
	for _, p := range g.ports {
		switch {
		case !p.up || p.selected == unselected && p.mux != detached:
			p.selected = unselected
		case p.partnership(own) == *g.chosen && !g.taken(p, own):
			p.selected = selected
		default:
			p.selected = standby
		}
	}
}

// taken reports whether another port is still attached to the aggregator for another partner.
func (g *group) taken(p *port, own *Config) bool {
	for _, o := range g.ports {
		if o != p && o.mux >= attached && o.partnership(own) != *g.chosen {
			return true
		}
	}
	return false
}

// ready is the variable Ready of the aggregator: all ports that wait for it have waited long enough.
func (g *group) ready(now clock.Time) bool {
	last := g.waits()
	return last == clock.Never || last <= now
}

// waits returns when the last port that waits for the aggregator has waited long enough.
func (g *group) waits() clock.Time {
	last := clock.Never
	for _, p := range g.ports {
		if p.mux == waiting && p.selected == selected && (last == clock.Never || p.waitTimer > last) {
			last = p.waitTimer
		}
	}
	return last
}
