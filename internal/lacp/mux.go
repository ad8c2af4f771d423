package lacp

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/lacp"
)

// muxState is the state of the mux machine, with control of collecting and distributing one by one (6.4.15, independent control): frames
// are sent to who has said that it collects.
type muxState uint8

const (
	detached muxState = iota
	waiting
	attached
	collecting
	distributing
)

var muxNames = [...]string{"detached", "waiting", "attached", "collecting", "distributing"}

// step lets the mux machine go one state further; false: it stays. ready is that of the aggregator.
func (p *port) step(now clock.Time, ready bool) bool {
	next := p.next(ready)
	if next == p.mux {
		return false
	}
	p.mux = next
	const carrying = lacp.Collecting | lacp.Distributing
	switch next {
	case detached:
		p.actor.State &^= lacp.Synchronization | carrying
		p.waitTimer = clock.Never
		p.ntt = true
	case waiting:
		p.waitTimer = now.Add(AggregateWait)
	case attached:
		p.actor.State = p.actor.State&^carrying | lacp.Synchronization
		p.waitTimer = clock.Never
		p.ntt = true
	case collecting:
		p.actor.State = p.actor.State&^lacp.Distributing | lacp.Collecting
		p.ntt = true
	case distributing:
		p.actor.State |= lacp.Distributing
		p.ntt = true // the partner shows it, and need not wait for the next period to do so
	}
	return true
}

// next returns the state that follows.
func (p *port) next(ready bool) muxState {
	in := p.selected == selected && p.partner.State&lacp.Synchronization != 0
	switch p.mux {
	case detached:
		if p.selected != unselected {
			return waiting
		}
	case waiting:
		switch {
		case p.selected == unselected:
			return detached
		case p.selected == selected && ready:
			return attached
		}
	case attached:
		switch {
		case p.selected != selected:
			return detached
		case in:
			return collecting
		}
	case collecting:
		switch {
		case !in:
			return attached
		case p.partner.State&lacp.Collecting != 0:
			return distributing
		}
	case distributing:
		if !in || p.partner.State&lacp.Collecting == 0 {
			return collecting
		}
	}
	return p.mux
}
