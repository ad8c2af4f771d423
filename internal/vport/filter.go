package vport

import (
	"encoding/binary"
	"fmt"

	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/tunnel"
)

// Filter says which frames are for a virtual port.
type Filter struct {
	MAC eth.MAC
	// VLAN is that of the frames, 0 for those without one; AnyVLAN takes those of all. It needs *VMQVlanFiltering.
	VLAN    uint16
	AnyVLAN bool
	// Tunneled filters are about the frame inside a tunnel of the virtual network Network (WinOF 5.50, 4.1.15: "directing incoming VXLAN
	// packets to the appropriate VM queue").
	Tunneled bool
	Network  uint32
}

// key finds a filter: its address with the VLAN and the two flags above it, and its network.
type key struct {
	mac     uint64
	network uint32
}

const (
	vlanShift = 48
	anyVLAN   = 1 << 60
	tunneled  = 1 << 61
)

func (f *Filter) key() key {
	k := key{number(f.MAC[:]) | uint64(f.VLAN)<<vlanShift, f.Network}
	if f.AnyVLAN {
		k.mac |= anyVLAN
	}
	if f.Tunneled {
		k.mac |= tunneled
	}
	return k
}

// number returns an address, the first six bytes of b, as a number.
func number(b []byte) uint64 {
	return uint64(binary.BigEndian.Uint16(b))<<32 | uint64(binary.BigEndian.Uint32(b[2:]))
}

// AddFilter adds a filter to a virtual port; the default one has what no filter names. The error is a *FieldError; nothing has
// changed then.
func (s *Sorter) AddFilter(n int, f Filter) error {
	if err := s.checkFilter(n, &f); err != nil {
		return err
	}
	s.filters[f.key()] = uint8(n)
	if !f.AnyVLAN && f.VLAN != 0 {
		s.vlans[f.VLAN]++
	}
	s.ports[n].filters = append(s.ports[n].filters, f)
	return nil
}

func (s *Sorter) checkFilter(n int, f *Filter) error {
	switch {
	case n < 1 || n > Most || s.ports[n] == nil:
		return &FieldError{"virtual port", n, "one that there is, and not the default one"}
	case f.MAC[0]&1 != 0 || f.MAC == (eth.MAC{}):
		return &FieldError{"address", f.MAC, "one of a single station that is not 0"}
	case f.VLAN > 4094 || f.AnyVLAN && f.VLAN != 0:
		return &FieldError{"VLAN", f.VLAN, "0 to 4094, and 0 with any VLAN"}
	case !f.AnyVLAN && !s.cfg.VLANFiltering:
		return &FieldError{"*VMQVlanFiltering", 0, "1, for filters of a VLAN"}
	case f.Network > tunnel.MostID || !f.Tunneled && f.Network != 0:
		return &FieldError{"virtual network", f.Network, "0 to 16777215, and 0 without a tunnel"}
	}
	if o, there := s.filters[f.key()]; there {
		return &FieldError{"filter", f.MAC, fmt.Sprintf("one that no port has: port %d has it", o)}
	}
	if len(s.filters) == s.cfg.MACs {
		return &FieldError{"number of filters", len(s.filters) + 1, fmt.Sprintf("at most %d (MaxNumMacAddrFilters)", s.cfg.MACs)}
	}
	if !f.AnyVLAN && f.VLAN != 0 && s.vlans[f.VLAN] == 0 && len(s.vlans) == s.cfg.VLANs {
		return &FieldError{"number of VLANs", len(s.vlans) + 1, fmt.Sprintf("at most %d (MaxNumVlanFilters)", s.cfg.VLANs)}
	}
	return nil
}

// RemoveFilter takes a filter of a virtual port away, if it has it.
func (s *Sorter) RemoveFilter(n int, f Filter) {
	if n < 1 || n > Most || s.ports[n] == nil {
		return
	}
	p := s.ports[n]
	for i := range p.filters {
		if p.filters[i] != f {
			continue
		}
		p.filters = append(p.filters[:i], p.filters[i+1:]...)
		delete(s.filters, f.key())
		if !f.AnyVLAN && f.VLAN != 0 {
			if s.vlans[f.VLAN]--; s.vlans[f.VLAN] == 0 {
				delete(s.vlans, f.VLAN)
			}
		}
		return
	}
}
