package links

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/link"
)

// Join joins a group on the network (IGMP, MLD). Errors are *command.Error.
func (p *Set) Join(group netip.Addr) error {
	m := p.multicaster(group)
	if m == nil {
		return command.Errorf(command.Unsupported, "group %v: no link of the port takes part in groups of its family", group)
	}
	if err := m.Join(group); err != nil {
		return command.Errorf(command.Unsupported, "group %v: %v", group, err)
	}
	return nil
}

// Leave undoes Join.
func (p *Set) Leave(group netip.Addr) {
	if m := p.multicaster(group); m != nil {
		_ = m.Leave(group)
	}
}

// multicaster returns the first link that can join groups of that family.
func (p *Set) multicaster(group netip.Addr) link.Multicaster {
	for _, o := range p.addresses {
		if o.Link == nil || o.Addr.Is4() != group.Is4() && p.stations() == nil {
			continue
		}
		if m := o.Link.Capabilities().Multicaster; m != nil {
			return m
		}
	}
	return nil
}
