package ib

import "encoding/binary"

// FETH is a view of a flush extended transport header (IBA annex A19), FETHLen bytes. It precedes the RETH.
type FETH []byte

const (
	fethPlacement        = 0xf
	fethSelectivity      = 0x3
	fethSelectivityShift = 4
)

// Placement says how far data is to get before a flush is answered: a set of bits.
type Placement uint8

// The placement types.
const (
	PlaceGlobal     Placement = 1 << iota // visible to everything on the responder's side
	PlacePersistent                       // kept when power fails
)

// Selectivity says what is flushed.
type Selectivity uint8

// The selectivity levels.
const (
	FlushRange  Selectivity = iota // what the RETH describes
	FlushRegion                    // all of the region that its R_Key names
)

// Placement is the placement type.
func (h FETH) Placement() Placement {
	return Placement(binary.BigEndian.Uint32(h) & fethPlacement)
}

// Selectivity is the selectivity level.
func (h FETH) Selectivity() Selectivity {
	return Selectivity(binary.BigEndian.Uint32(h) >> fethSelectivityShift & fethSelectivity)
}

// Encode sets every field; the reserved bits become 0.
func (h FETH) Encode(p Placement, s Selectivity) {
	binary.BigEndian.PutUint32(h, uint32(p)&fethPlacement|uint32(s)&fethSelectivity<<fethSelectivityShift)
}
