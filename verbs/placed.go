package verbs

import "github.com/softvpi/softvpi/wire/ib"

// Flush says what an OpFlush does at the peer (IBA annex A19): by default it makes nothing sure, so Placement is needed.
type Flush struct {
	Length    uint32    // bytes from RemoteAddr; not used with Region
	Region    bool      // all of the region that RKey names
	Placement Placement // the peer grants FlushGlobal or, if it has persistent memory, flushes of that kind
}

// Placement says how far data is to get before a flush completes.
type Placement uint8

// The placement types, of which both may be given.
const (
	PlaceGlobal     = Placement(ib.PlaceGlobal)     // visible to everything at the peer
	PlacePersistent = Placement(ib.PlacePersistent) // kept there when power fails
)

// encoded returns what the ring's entry has of a flush.
func (f *Flush) encoded() uint32 {
	selectivity := ib.FlushRange
	if f.Region {
		selectivity = ib.FlushRegion
	}
	return uint32(f.Placement) | uint32(selectivity)<<4
}

// checkPlaced checks the operations of IBA annex A19.
func (qp *QP) checkPlaced(wr *SendWR) error {
	if p := wr.Flush.Placement; wr.Op == OpFlush && (p == 0 || p&^(PlaceGlobal|PlacePersistent) != 0) {
		return newError("post send", ErrInvalid, "Flush.Placement is %#x, want PlaceGlobal, PlacePersistent or both", uint8(p))
	}
	if b, ok := qp.backend.(placer); ok && !b.Places() {
		return newError("post send", ErrUnsupported, "%v: the driver is too old for it", wr.Op)
	}
	return nil
}
