package fabric

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// MostVirtual is the highest index of a virtual port.
const MostVirtual = 32

// virtualPKeys is how many rows the partition table of a virtual port has.
const virtualPKeys = 32

// VirtualPort is a virtual port as the program at a port wants it, by its index from 1 on: 0 is the port itself.
type VirtualPort struct {
	Index uint16
	GUID  uint64
}

// VirtualState is what the subnet manager has set of a virtual port.
type VirtualState struct {
	VirtualPort
	State      mad.PortState
	LID        ib.LID // 0: none yet
	PKeys      []ib.PKey
	Reregister uint64 // how often its clients were asked to
}

// virtual is the virtual ports of a port of a channel adapter.
type virtual struct {
	enabled bool // by the subnet manager
	changed bool // a state has, since that was cleared
	ports   []virtualPort
}

type virtualPort struct {
	VirtualPort
	state mad.PortState // while the port is up and they are enabled
	lid   ib.LID
	pkeys mad.PKeyTable
	asked uint64
}

// SetVirtual says which virtual ports a port of a channel adapter has from now on. Those that it had stay as they are; what has changed
// is reported by trap 144, and the subnet manager sees it in VirtualizationInfo. Indices beyond MostVirtual, and doubled ones, are ignored.
func (f *Fabric) SetVirtual(now clock.Time, at Place, want []VirtualPort) {
	f.traps.now = now
	p := f.port(at)
	if p.virtual == nil {
		if len(want) == 0 {
			return
		}
		p.virtual = &virtual{}
	}
	v, changed := p.virtual, false
	keep := v.ports[:0:0]
	for _, w := range want {
		if w.Index == 0 || w.Index > MostVirtual || w.GUID == 0 ||
			slices.ContainsFunc(keep, func(o virtualPort) bool { return o.Index == w.Index || o.GUID == w.GUID }) {
			continue
		}
		if i := slices.IndexFunc(v.ports, func(o virtualPort) bool { return o.VirtualPort == w }); i >= 0 {
			keep = append(keep, v.ports[i])
			continue
		}
		changed = true
		keep = append(keep, virtualPort{VirtualPort: w, state: mad.PortInit, pkeys: mad.PKeyTable{ib.PKeyDefault}})
	}
	changed = changed || len(keep) != len(v.ports)
	if v.ports = keep; changed {
		v.changed = true
		f.touch(p)
		f.capabilityChanged(p, 0)
	}
}

// fall makes all virtual ports ready to be set up, since their port went down.
func (v *virtual) fall() {
	if v != nil {
		for i := range v.ports {
			v.ports[i].state = mad.PortInit
		}
	}
}

// forget forgets what a subnet manager has set, as when the node around the port starts anew.
func (v *virtual) forget() {
	if v != nil {
		v.enabled, v.changed = false, true
		for i := range v.ports {
			v.ports[i] = virtualPort{VirtualPort: v.ports[i].VirtualPort, state: mad.PortInit, pkeys: mad.PKeyTable{ib.PKeyDefault}}
		}
	}
}

// has reports whether a LID is one of a virtual port.
func (v *virtual) has(lid ib.LID) bool {
	if v == nil || !v.enabled || lid == 0 {
		return false
	}
	for i := range v.ports {
		if v.ports[i].lid == lid {
			return true
		}
	}
	return false
}

// at returns the virtual port with an index; nil: there is none.
func (v *virtual) at(index uint16) *virtualPort {
	if v != nil {
		for i := range v.ports {
			if v.ports[i].Index == index {
				return &v.ports[i]
			}
		}
	}
	return nil
}

// top returns the highest index of a virtual port.
func (v *virtual) top() (top uint16) {
	if v != nil {
		for i := range v.ports {
			top = max(top, v.ports[i].Index)
		}
	}
	return top
}

// stateOf returns the state of a virtual port, 0 being the port itself.
func (p *port) stateOf(index uint16) mad.PortState {
	if index == 0 {
		return p.info.PortState
	}
	x := p.virtual.at(index)
	if x == nil || !p.virtual.enabled || p.info.PortState < mad.PortInit {
		return mad.PortDown
	}
	return x.state
}

// Virtual returns the virtual ports of a port, and whether the subnet manager has enabled them.
func (f *Fabric) Virtual(at Place) (all []VirtualState, enabled bool) {
	p := f.port(at)
	if p.virtual == nil {
		return nil, false
	}
	for i := range p.virtual.ports {
		x := &p.virtual.ports[i]
		all = append(all, VirtualState{x.VirtualPort, p.stateOf(x.Index), x.lid, x.pkeys[:], x.asked})
	}
	return all, p.virtual.enabled
}
