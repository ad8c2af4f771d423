package links

import "github.com/softvpi/softvpi/internal/command"

// Unplug closes the links. A given link stays open, and serves the set no longer.
func (p *Set) Unplug() {
	_ = p.leave() // there is nothing to do about it
	for _, o := range p.addresses {
		if o.Socket() {
			p.unplug(o)
			o.Link, o.base, o.impair, o.shown, o.way, o.carrier = nil, nil, nil, nil, nil, nil
		}
	}
}

// PlugAgain reopens the links. Errors are *command.Error.
func (p *Set) PlugAgain() error {
	if err := p.settle(p.settled); err != nil {
		return err
	}
	for _, o := range p.addresses {
		if o.Link != nil {
			continue
		}
		l, err := p.openUDP(o.Addr)
		if err != nil {
			return err
		}
		n, err := p.newAddress(o.Addr, l, true)
		if err != nil {
			_ = l.Close()
			return err
		}
		*o = *n
	}
	return nil
}

// Reframe changes the format of packets, at once or for closed links when they are reopened. Errors are
// *command.Error.
func (p *Set) Reframe(f Framing) error {
	stationed := p.stationed
	if stationed && f.MAC != p.cfg.MAC {
		if err := p.leave(); err != nil {
			return command.Errorf(command.Internal, "Link: %v", err)
		}
	}
	p.cfg.Framing = f
	for _, o := range p.addresses {
		if o.Link == nil {
			continue // a new one is opened by PlugAgain
		}
		e, err := f.encap(o.Addr, o.Link)
		if err != nil {
			return err
		}
		add(&p.retired.encap, o.Encap.Counters())
		if o.Encap = e; p.station != nil {
			p.station.Reframe(o.Wire, e)
		}
	}
	switch {
	case stationed:
		return p.settle(p.settled)
	case p.stations() != nil:
		p.addresses[0].Encap.SetAddrs(p.ends())
	}
	return nil
}
