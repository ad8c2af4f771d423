package mad

import "github.com/softvpi/softvpi/wire/ib"

// PathRecordLen is the length of a PathRecord.
const PathRecordLen = 64

// Components of a PathRecord, bits of SA.ComponentMask (IBA 15.2.5.16).
const (
	PathServiceID8   = 1 << 0
	PathServiceID56  = 1 << 1
	PathDGID         = 1 << 2
	PathSGID         = 1 << 3
	PathDLID         = 1 << 4
	PathSLID         = 1 << 5
	PathRawTraffic   = 1 << 6
	PathFlowLabel    = 1 << 8
	PathHopLimit     = 1 << 9
	PathTrafficClass = 1 << 10
	PathReversible   = 1 << 11
	PathNumPath      = 1 << 12
	PathPKey         = 1 << 13
	PathQoSClass     = 1 << 14
	PathSL           = 1 << 15
	PathMTUSelector  = 1 << 16
	PathMTU          = 1 << 17
	PathRateSelector = 1 << 18
	PathRate         = 1 << 19
	PathLifeSelector = 1 << 20
	PathLife         = 1 << 21
	PathPreference   = 1 << 22
)

// Selectors of MTU, rate and packet life time (IBA 15.2.5.16).
const (
	SelectGreater = 0
	SelectLess    = 1
	SelectExactly = 2
	SelectBest    = 3 // the largest; for life times the smallest
)

// PathRecord is a path between two end ports (IBA 15.2.5.16).
type PathRecord struct {
	ServiceID    uint64
	DGID, SGID   ib.GID
	DLID, SLID   ib.LID
	RawTraffic   bool
	FlowLabel    uint32 // 20 bits
	HopLimit     uint8
	TrafficClass uint8
	Reversible   bool
	NumPath      uint8 // 7 bits
	PKey         ib.PKey
	QoSClass     uint16 // 12 bits
	SL           uint8  // 4 bits
	MTUSelector  uint8  // 2 bits
	MTU          ib.MTU // 6 bits
	RateSelector uint8
	Rate         uint8 // 6 bits
	LifeSelector uint8
	Life         uint8 // 6 bits: 4.096 us times two to the power of it
	Preference   uint8
}

// Append appends the record's PathRecordLen bytes to b.
func (r *PathRecord) Append(b []byte) []byte {
	b, p := zeros(b, PathRecordLen)
	put64(p, r.ServiceID)
	copy(p[8:], r.DGID[:])
	copy(p[24:], r.SGID[:])
	put16(p[40:], uint16(r.DLID))
	put16(p[42:], uint16(r.SLID))
	put32(p[44:], uint32(flag(r.RawTraffic, 0x80))<<24|r.FlowLabel&0xfffff<<8|uint32(r.HopLimit))
	p[48], p[49] = r.TrafficClass, flag(r.Reversible, 0x80)|r.NumPath&0x7f
	put16(p[50:], uint16(r.PKey))
	put16(p[52:], r.QoSClass<<4|uint16(r.SL&15))
	p[54], p[55], p[56] = r.MTUSelector<<6|uint8(r.MTU)&63, r.RateSelector<<6|r.Rate&63, r.LifeSelector<<6|r.Life&63
	p[57] = r.Preference
	return b
}

// ParsePathRecord reads the record from the start of b. The error is an *Error.
func ParsePathRecord(b []byte) (r PathRecord, err error) {
	if err = atLeast("PathRecord", b, PathRecordLen); err != nil {
		return r, err
	}
	w := get32(b[44:])
	return PathRecord{
		ServiceID: get64(b), DGID: ib.GID(b[8:24]), SGID: ib.GID(b[24:40]), DLID: ib.LID(get16(b[40:])), SLID: ib.LID(get16(b[42:])),
		RawTraffic: w>>31 != 0, FlowLabel: w >> 8 & 0xfffff, HopLimit: uint8(w), TrafficClass: b[48], Reversible: b[49]&0x80 != 0,
		NumPath: b[49] & 0x7f,
		PKey:    ib.PKey(get16(b[50:])), QoSClass: get16(b[52:]) >> 4, SL: b[53] & 15, MTUSelector: b[54] >> 6, MTU: ib.MTU(b[54] & 63),
		RateSelector: b[55] >> 6, Rate: b[55] & 63, LifeSelector: b[56] >> 6, Life: b[56] & 63, Preference: b[57],
	}, nil
}

// MultiPathRecordLen is the length of a MultiPathRecord without its GIDs.
const MultiPathRecordLen = 24

// Components of a MultiPathRecord (IBA 15.2.5.20).
const (
	MultiRawTraffic   = 1 << 0
	MultiFlowLabel    = 1 << 2
	MultiHopLimit     = 1 << 3
	MultiTrafficClass = 1 << 4
	MultiReversible   = 1 << 5
	MultiNumPath      = 1 << 6
	MultiPKey         = 1 << 7
	MultiQoSClass     = 1 << 8
	MultiSL           = 1 << 9
	MultiMTUSelector  = 1 << 10
	MultiMTU          = 1 << 11
	MultiRateSelector = 1 << 12
	MultiRate         = 1 << 13
	MultiLifeSelector = 1 << 14
	MultiLife         = 1 << 15
	MultiServiceID8   = 1 << 16
	MultiIndependence = 1 << 17
	MultiSGIDCount    = 1 << 19 // 18 is reserved
	MultiDGIDCount    = 1 << 20
	MultiServiceID56  = 1 << 21
)

// MultiPathRecord asks for paths between several end ports (IBA 15.2.5.20). Path holds what it has in
// common with a PathRecord; the GIDs are in SGIDs and DGIDs.
type MultiPathRecord struct {
	Path         PathRecord
	Independence uint8 // 2 bits
	SGIDs, DGIDs []ib.GID
}

// Append appends the record to b.
func (r *MultiPathRecord) Append(b []byte) []byte {
	p := &r.Path
	b, h := zeros(b, MultiPathRecordLen)
	put32(h, uint32(flag(p.RawTraffic, 0x80))<<24|p.FlowLabel&0xfffff<<8|uint32(p.HopLimit))
	h[4], h[5] = p.TrafficClass, flag(p.Reversible, 0x80)|p.NumPath&0x7f
	put16(h[6:], uint16(p.PKey))
	put16(h[8:], p.QoSClass<<4|uint16(p.SL&15))
	h[10], h[11], h[12] = p.MTUSelector<<6|uint8(p.MTU)&63, p.RateSelector<<6|p.Rate&63, p.LifeSelector<<6|p.Life&63
	put64(h[16:], p.ServiceID) // its first byte is moved to a place of its own
	h[13] = h[16]
	h[14], h[15], h[16] = r.Independence<<6, uint8(len(r.SGIDs)), uint8(len(r.DGIDs))
	for _, g := range r.SGIDs {
		b = append(b, g[:]...)
	}
	for _, g := range r.DGIDs {
		b = append(b, g[:]...)
	}
	return b
}

// ParseMultiPathRecord reads the record with its GIDs from the start of b. The error is an *Error.
func ParseMultiPathRecord(b []byte) (r MultiPathRecord, err error) {
	if err = atLeast("MultiPathRecord", b, MultiPathRecordLen); err != nil {
		return r, err
	}
	n := int(b[15]) + int(b[16])
	if err = atLeast("MultiPathRecord with its GIDs", b, MultiPathRecordLen+16*n); err != nil {
		return r, err
	}
	w := get32(b)
	r.Path = PathRecord{
		ServiceID: uint64(b[13])<<56 | get64(b[16:])&(1<<56-1), RawTraffic: w>>31 != 0, FlowLabel: w >> 8 & 0xfffff, HopLimit: uint8(w),
		TrafficClass: b[4], Reversible: b[5]&0x80 != 0, NumPath: b[5] & 0x7f, PKey: ib.PKey(get16(b[6:])), QoSClass: get16(b[8:]) >> 4,
		SL:          b[9] & 15,
		MTUSelector: b[10] >> 6, MTU: ib.MTU(b[10] & 63), RateSelector: b[11] >> 6, Rate: b[11] & 63, LifeSelector: b[12] >> 6,
		Life: b[12] & 63,
	}
	r.Independence = b[14] >> 6
	for i := range n {
		g := ib.GID(b[MultiPathRecordLen+16*i:])
		if i < int(b[15]) {
			r.SGIDs = append(r.SGIDs, g)
		} else {
			r.DGIDs = append(r.DGIDs, g)
		}
	}
	return r, nil
}
