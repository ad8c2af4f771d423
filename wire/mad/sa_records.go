package mad

import "github.com/softvpi/softvpi/wire/ib"

// Lengths of the records of subnet administration. In tables they are padded to a multiple of 8.
const (
	NodeRecordLen       = 108
	PortInfoRecordLen   = 68
	SLtoVLRecordLen     = 16
	SwitchInfoRecordLen = 24
	LFTRecordLen        = 72
	MFTRecordLen        = 72
	SMInfoRecordLen     = 25
	LinkRecordLen       = 8
	GUIDInfoRecordLen   = 72
	PKeyTableRecordLen  = 72
	VLArbRecordLen      = 72
)

// AttributeOffset returns a record's length in tables, in the 8-byte words of SA.AttrOffset.
func AttributeOffset(length int) uint16 { return uint16((length + 7) / 8) }

// NodeRecord is a node's NodeInfo and NodeDescription, by the LID of an end port (IBA 15.2.5.2).
type NodeRecord struct {
	LID         ib.LID
	Info        NodeInfo
	Description NodeDescription
}

// Append appends the record to b.
func (r *NodeRecord) Append(b []byte) []byte {
	b = append(b, byte(r.LID>>8), byte(r.LID), 0, 0)
	b = r.Info.Append(b)
	return append(b, r.Description[:]...)
}

// ParseNodeRecord reads the record from the start of b. The error is an *Error.
func ParseNodeRecord(b []byte) (r NodeRecord, err error) {
	if err = atLeast("NodeRecord", b, NodeRecordLen); err != nil {
		return r, err
	}
	r.LID, r.Description = ib.LID(get16(b)), NodeDescription(b[44:])
	r.Info, err = ParseNodeInfo(b[4:])
	return r, err
}

// PortInfoRecord is the PortInfo of a port (IBA 15.2.5.3).
type PortInfoRecord struct {
	EndPortLID ib.LID
	PortNum    uint8
	Options    uint8
	Info       PortInfo
}

// Append appends the record to b.
func (r *PortInfoRecord) Append(b []byte) []byte {
	b = append(b, byte(r.EndPortLID>>8), byte(r.EndPortLID), r.PortNum, r.Options)
	return r.Info.Append(b)
}

// ParsePortInfoRecord reads the record from the start of b. The error is an *Error.
func ParsePortInfoRecord(b []byte) (r PortInfoRecord, err error) {
	if err = atLeast("PortInfoRecord", b, PortInfoRecordLen); err != nil {
		return r, err
	}
	r.EndPortLID, r.PortNum, r.Options = ib.LID(get16(b)), b[2], b[3]
	r.Info, err = ParsePortInfo(b[4:])
	return r, err
}

// SLtoVLRecord maps service levels to virtual lanes between two ports of a node (IBA 15.2.5.4).
type SLtoVLRecord struct {
	LID             ib.LID
	InPort, OutPort uint8
	Table           SLtoVLMappingTable
}

// Append appends the record to b.
func (r *SLtoVLRecord) Append(b []byte) []byte {
	b = append(b, byte(r.LID>>8), byte(r.LID), r.InPort, r.OutPort, 0, 0, 0, 0)
	return r.Table.Append(b)
}

// ParseSLtoVLRecord reads the record from the start of b. The error is an *Error.
func ParseSLtoVLRecord(b []byte) (r SLtoVLRecord, err error) {
	if err = atLeast("SLtoVLMappingTableRecord", b, SLtoVLRecordLen); err != nil {
		return r, err
	}
	r.LID, r.InPort, r.OutPort = ib.LID(get16(b)), b[2], b[3]
	r.Table, err = ParseSLtoVLMappingTable(b[8:])
	return r, err
}

// SwitchInfoRecord is the SwitchInfo of a switch (IBA 15.2.5.5).
type SwitchInfoRecord struct {
	LID  ib.LID
	Info SwitchInfo
}

// Append appends the record to b.
func (r *SwitchInfoRecord) Append(b []byte) []byte {
	return r.Info.Append(append(b, byte(r.LID>>8), byte(r.LID), 0, 0))
}

// ParseSwitchInfoRecord reads the record from the start of b. The error is an *Error.
func ParseSwitchInfoRecord(b []byte) (r SwitchInfoRecord, err error) {
	if err = atLeast("SwitchInfoRecord", b, SwitchInfoRecordLen); err != nil {
		return r, err
	}
	r.LID = ib.LID(get16(b))
	r.Info, err = ParseSwitchInfo(b[4:])
	return r, err
}

// LFTRecord is a block of a linear forwarding table (IBA 15.2.5.6).
type LFTRecord struct {
	LID   ib.LID
	Block uint16
	Table LinearForwardingTable
}

// Append appends the record to b.
func (r *LFTRecord) Append(b []byte) []byte {
	b = append(b, byte(r.LID>>8), byte(r.LID), byte(r.Block>>8), byte(r.Block), 0, 0, 0, 0)
	return append(b, r.Table[:]...)
}

// ParseLFTRecord reads the record from the start of b. The error is an *Error.
func ParseLFTRecord(b []byte) (r LFTRecord, err error) {
	if err = atLeast("LinearForwardingTableRecord", b, LFTRecordLen); err != nil {
		return r, err
	}
	return LFTRecord{ib.LID(get16(b)), get16(b[2:]), LinearForwardingTable(b[8:])}, nil
}

// MFTRecord is a block of a multicast forwarding table (IBA 15.2.5.8).
type MFTRecord struct {
	LID      ib.LID
	Position uint8  // 4 bits
	Block    uint16 // 9 bits
	Table    MulticastForwardingTable
}

// Append appends the record to b.
func (r *MFTRecord) Append(b []byte) []byte {
	w := uint16(r.Position)<<12 | r.Block&0x1ff
	return r.Table.Append(append(b, byte(r.LID>>8), byte(r.LID), byte(w>>8), byte(w), 0, 0, 0, 0))
}

// ParseMFTRecord reads the record from the start of b. The error is an *Error.
func ParseMFTRecord(b []byte) (r MFTRecord, err error) {
	if err = atLeast("MulticastForwardingTableRecord", b, MFTRecordLen); err != nil {
		return r, err
	}
	w := get16(b[2:])
	r.LID, r.Position, r.Block = ib.LID(get16(b)), uint8(w>>12), w&0x1ff
	r.Table, err = ParseMulticastForwardingTable(b[8:])
	return r, err
}

// SMInfoRecord is the SMInfo of a subnet manager (IBA 15.2.5.10).
type SMInfoRecord struct {
	LID  ib.LID
	Info SMInfo
}

// Append appends the record to b.
func (r *SMInfoRecord) Append(b []byte) []byte {
	return r.Info.Append(append(b, byte(r.LID>>8), byte(r.LID), 0, 0))
}

// ParseSMInfoRecord reads the record from the start of b. The error is an *Error.
func ParseSMInfoRecord(b []byte) (r SMInfoRecord, err error) {
	if err = atLeast("SMInfoRecord", b, SMInfoRecordLen); err != nil {
		return r, err
	}
	r.LID = ib.LID(get16(b))
	r.Info, err = ParseSMInfo(b[4:])
	return r, err
}

// LinkRecord is one direction of a link (IBA 15.2.5.13).
type LinkRecord struct {
	FromLID          ib.LID
	FromPort, ToPort uint8
	ToLID            ib.LID
}

// Append appends the record to b.
func (r *LinkRecord) Append(b []byte) []byte {
	return append(b, byte(r.FromLID>>8), byte(r.FromLID), r.FromPort, r.ToPort, byte(r.ToLID>>8), byte(r.ToLID), 0, 0)
}

// ParseLinkRecord reads the record from the start of b. The error is an *Error.
func ParseLinkRecord(b []byte) (r LinkRecord, err error) {
	if err = atLeast("LinkRecord", b, LinkRecordLen); err != nil {
		return r, err
	}
	return LinkRecord{ib.LID(get16(b)), b[2], b[3], ib.LID(get16(b[4:]))}, nil
}

// Components of a GUIDInfoRecord (IBA 15.2.5.18).
const (
	GUIDComponentLID   = 1 << 0
	GUIDComponentBlock = 1 << 1
	GUIDComponentFirst = 1 << 4 // the first GUID of the block, before the others
)

// GUIDInfoRecord is a block of the GUIDs of a port (IBA 15.2.5.18).
type GUIDInfoRecord struct {
	LID   ib.LID
	Block uint8
	Table GUIDInfo
}

// Append appends the record to b.
func (r *GUIDInfoRecord) Append(b []byte) []byte {
	return r.Table.Append(append(b, byte(r.LID>>8), byte(r.LID), r.Block, 0, 0, 0, 0, 0))
}

// ParseGUIDInfoRecord reads the record from the start of b. The error is an *Error.
func ParseGUIDInfoRecord(b []byte) (r GUIDInfoRecord, err error) {
	if err = atLeast("GUIDInfoRecord", b, GUIDInfoRecordLen); err != nil {
		return r, err
	}
	r.LID, r.Block = ib.LID(get16(b)), b[2]
	r.Table, err = ParseGUIDInfo(b[8:])
	return r, err
}

// PKeyTableRecord is a block of the P_Keys of a port (IBA 15.2.5.11).
type PKeyTableRecord struct {
	LID   ib.LID
	Block uint16
	Port  uint8
	Table PKeyTable
}

// Append appends the record to b.
func (r *PKeyTableRecord) Append(b []byte) []byte {
	return r.Table.Append(append(b, byte(r.LID>>8), byte(r.LID), byte(r.Block>>8), byte(r.Block), r.Port, 0, 0, 0))
}

// ParsePKeyTableRecord reads the record from the start of b. The error is an *Error.
func ParsePKeyTableRecord(b []byte) (r PKeyTableRecord, err error) {
	if err = atLeast("P_KeyTableRecord", b, PKeyTableRecordLen); err != nil {
		return r, err
	}
	r.LID, r.Block, r.Port = ib.LID(get16(b)), get16(b[2:]), b[4]
	r.Table, err = ParsePKeyTable(b[8:])
	return r, err
}

// VLArbRecord is a block of the arbitration tables of a port (IBA 15.2.5.9).
type VLArbRecord struct {
	LID     ib.LID
	OutPort uint8
	Block   uint8
	Table   VLArbitrationTable
}

// Append appends the record to b.
func (r *VLArbRecord) Append(b []byte) []byte {
	return r.Table.Append(append(b, byte(r.LID>>8), byte(r.LID), r.OutPort, r.Block, 0, 0, 0, 0))
}

// ParseVLArbRecord reads the record from the start of b. The error is an *Error.
func ParseVLArbRecord(b []byte) (r VLArbRecord, err error) {
	if err = atLeast("VLArbitrationTableRecord", b, VLArbRecordLen); err != nil {
		return r, err
	}
	r.LID, r.OutPort, r.Block = ib.LID(get16(b)), b[2], b[3]
	r.Table, err = ParseVLArbitrationTable(b[8:])
	return r, err
}
