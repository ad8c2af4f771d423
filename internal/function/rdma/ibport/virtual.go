package ibport

import (
	"errors"
	"slices"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

var (
	errNotVirtual = errors.New("the subnet manager does not enable virtualization (virt_enable 2), which gives virtual functions LIDs of their own")
	errNoPlace    = errors.New("the link of the port knows no virtual ports")
)

// ErrNotActive says that a virtual port is on its way, or that something keeps the subnet manager from it.
var ErrNotActive = errors.New("the subnet manager has enabled virtualization, and has not activated this virtual port")

// lookVirtual returns what a virtual function has of a port with state s where its virtual port is its own.
func (p *Port) lookVirtual(s link.Port) link.Port {
	v := p.share
	x := v.of(&s)
	s.GUIDs = make([]uint64, VirtualGIDs)
	s.GUIDs[0], s.NodeGUID = v.Aliases[0], v.Aliases[0]
	s.LID, s.LMC, s.Capabilities = 0, 0, s.Capabilities&^mad.CapIsSM
	switch {
	case v.Down:
		s.State, s.Physical = mad.PortDown, mad.PhysicalDisabled
	case x == nil || x.State < mad.PortActive || x.LID == 0:
		s.State = min(s.State, mad.PortInit)
	}
	var keys []ib.PKey
	if x != nil {
		s.LID, s.Reregister = x.LID, s.Reregister+x.Reregister
		keys = slices.Clone(x.PKeys)
		for len(keys) > 1 && keys[len(keys)-1] == 0 {
			keys = keys[:len(keys)-1]
		}
	}
	s.PKeys = v.keys(keys)
	return s
}

// of returns the virtual port of a share; nil: the port has none, or nobody has enabled them.
func (v *Share) of(s *link.Port) *link.VirtualPort {
	if !s.Virtualized {
		return nil
	}
	for i := range s.Virtual {
		if x := &s.Virtual[i]; x.Index == v.Virtual && x.GUID == v.Aliases[0] {
			return x
		}
	}
	return nil
}

// whyDown returns why a virtual port is not active at a port that is; nil: there is nothing to be said, or it is.
func (p *Port) whyDown() error {
	_, can := p.link.(link.VirtualPorts)
	switch {
	case !can:
		return errNoPlace
	case p.share.Down || p.physical.State != mad.PortActive || p.physical.SMLID == 0 || p.set.State == mad.PortActive:
		return nil
	case !p.physical.Virtualized:
		return errNotVirtual
	}
	return ErrNotActive
}
