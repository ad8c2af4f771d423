package ibport

import (
	"slices"

	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	// PhysicalGIDs and VirtualGIDs are how many rows of a port's GID table its physical function and each virtual one have (WinOF 5.50,
	// 4.5.3.2.2, Feature Limitations).
	PhysicalGIDs = 16
	VirtualGIDs  = 2
)

// MostVirtual returns how many virtual functions a port with a GID table of so many rows has. The rows are divided for as many, so that
// none moves when one comes: of the remaining ones, which the manual gives "to the VFs, one GID to every VF - starting from the lower VF",
// there is one at most, which nobody has.
func MostVirtual(rows int) int { return max(rows-PhysicalGIDs, 0) / VirtualGIDs }

// FirstRow returns the first row of virtual function n.
func FirstRow(n int) int { return PhysicalGIDs + VirtualGIDs*n }

// Share is what a virtual function has of a port: its LIDs and rows of its GIDs, or a virtual port.
type Share struct {
	// Virtual is the index of its virtual port, which has a LID, a GUID and a partition table of its own; 0: it has none.
	Virtual uint16
	// First is its first row of the port's GUIDInfo, of VirtualGIDs.
	First int
	// Aliases are the GUIDs that are asked for its rows, as many as given; 0: the subnet manager chooses.
	Aliases [VirtualGIDs]uint64
	Used    int // of Aliases, at least 1
	// Keys are its partition table: what it may have of those of the port. AllKeys: it has them all; without either it has the default
	// partition's, or the port's first.
	Keys    []ib.PKey
	AllKeys bool
	// Down says that an administrator keeps it down.
	Down bool
}

// SetShare makes the port a virtual function's view of it, from the next Take on.
func (p *Port) SetShare(s Share) {
	if s.Virtual == 0 && (p.share == nil || p.share.First != s.First || p.share.Aliases != s.Aliases || p.share.Used != s.Used) {
		p.alias.again()
	}
	p.share = &s
	p.seen--
}

// Reserve leaves rows of the GUIDInfo to virtual functions, from the given one on; 0: there are none.
func (p *Port) Reserve(from int) {
	if p.reserved != from {
		p.reserved = from
		p.seen--
	}
}

// Management returns the partition by which messages go to the subnet administration: the physical port's, whose QP1 is used, or that of a
// virtual port, which has its own.
func (p *Port) Management() ib.PKey {
	if p.share != nil && p.share.Virtual != 0 {
		return member(p.set.PKeys, ib.PKeyDefault)
	}
	return member(p.physical.PKeys, ib.PKeyDefault)
}

// look reads the state of the link's port, as far as it concerns this one.
func (p *Port) look() link.Port {
	s := p.link.Port()
	p.physical = s
	if p.reserved > 0 && len(s.GUIDs) > p.reserved {
		s.GUIDs = s.GUIDs[:p.reserved:p.reserved]
	}
	v := p.share
	if v == nil {
		return s
	}
	if v.Virtual != 0 {
		return p.lookVirtual(s)
	}
	s.GUIDs = make([]uint64, VirtualGIDs)
	for i := range v.Used {
		if at := v.First + i; at < len(p.physical.GUIDs) && p.mine(i) {
			s.GUIDs[i] = p.physical.GUIDs[at]
		}
	}
	s.PKeys = v.keys(p.physical.PKeys)
	switch {
	case v.Down:
		s.State, s.Physical = mad.PortDown, mad.PhysicalDisabled
	case s.GUIDs[0] == 0 && s.State == mad.PortActive:
		s.State = mad.PortInit // until it has its first alias
	}
	s.Capabilities &^= mad.CapIsSM // nobody manages a subnet from there: QP0 is the physical function's
	if s.GUIDs[0] != 0 {
		s.NodeGUID = s.GUIDs[0]
	}
	return s
}

// mine reports whether the GUID in a row is the one that was asked for.
func (p *Port) mine(i int) bool {
	have := p.physical.GUIDs[p.share.First+i]
	return have != 0 && (have == p.share.Aliases[i] || p.share.Aliases[i] == 0)
}

// keys returns the partition table of a virtual function at a port with another.
func (v *Share) keys(port []ib.PKey) []ib.PKey {
	if len(port) == 0 {
		port = []ib.PKey{ib.PKeyDefault}
	}
	switch {
	case v.AllKeys:
		return port
	case len(v.Keys) == 0:
		if k := member(port, ib.PKeyDefault); k != 0 {
			return []ib.PKey{k}
		}
		return port[:1]
	}
	out := make([]ib.PKey, len(v.Keys))
	for i, k := range v.Keys {
		out[i] = member(port, k)
		if !k.Full() && out[i] != 0 { // less than the port has
			out[i] = k
		}
	}
	return out
}

// member returns the key of a table in the partition of k, a full member's before a limited one's; 0: there is none.
func member(keys []ib.PKey, k ib.PKey) (have ib.PKey) {
	for _, o := range keys {
		if k.Valid() && o.Base() == k.Base() && (have == 0 || o.Full()) {
			have = o
		}
	}
	return have
}

// Virtual reports whether the port is a virtual function's view.
func (p *Port) Virtual() bool { return p.share != nil }

// Aliases returns the GUIDs that a virtual function has, by its rows, and why it has not all that were asked for.
func (p *Port) Aliases() (have []uint64, why error) {
	if p.share == nil {
		return nil, nil
	}
	if p.share.Virtual != 0 {
		return []uint64{p.share.Aliases[0]}, p.whyDown()
	}
	return slices.Clone(p.set.GUIDs), p.alias.err
}
