package mad

import "github.com/softvpi/softvpi/wire/ib"

// Details is the DataDetails of a Notice.
type Details = [NoticeDetailsLen]byte

// TrapGID is the data of traps 64 to 67 (IBA 14.2.5.1).
type TrapGID struct{ GID ib.GID }

// Details returns the notice's data.
func (t TrapGID) Details() (d Details) {
	copy(d[6:], t.GID[:])
	return d
}

// ParseTrapGID reads the data of traps 64 to 67.
func ParseTrapGID(d *Details) TrapGID { return TrapGID{ib.GID(d[6:])} }

// TrapSwitch is the data of trap 128: a port of this switch has changed its state.
type TrapSwitch struct{ LID ib.LID }

// Details returns the notice's data.
func (t TrapSwitch) Details() (d Details) {
	put16(d[0:], uint16(t.LID))
	return d
}

// ParseTrapSwitch reads the data of trap 128.
func ParseTrapSwitch(d *Details) TrapSwitch { return TrapSwitch{ib.LID(get16(d[0:]))} }

// TrapPort is the data of traps 129 (LocalPhyErrors), 130 (OverrunErrors) and 131 (the flow control
// watchdog).
type TrapPort struct {
	LID  ib.LID
	Port uint8
}

// Details returns the notice's data.
func (t TrapPort) Details() (d Details) {
	put16(d[2:], uint16(t.LID))
	d[4] = t.Port
	return d
}

// ParseTrapPort reads the data of traps 129 to 131.
func ParseTrapPort(d *Details) TrapPort { return TrapPort{ib.LID(get16(d[2:])), d[4]} }

// Flags of TrapCapability.ChangeFlags.
const (
	ChangedNodeDescription  = 1 << 0
	ChangedLinkWidthEnabled = 1 << 1
	ChangedLinkSpeedEnabled = 1 << 2
	ChangedSMPriority       = 1 << 3
)

// TrapCapability is the data of trap 144: the capability mask has changed or, with OtherLocalChanges, what
// ChangeFlags says.
type TrapCapability struct {
	LID               ib.LID
	OtherLocalChanges bool
	CapabilityMask    uint32
	ChangeFlags       uint16
	CapabilityMask2   uint16
}

// Details returns the notice's data.
func (t TrapCapability) Details() (d Details) {
	put16(d[2:], uint16(t.LID))
	d[5] = flag(t.OtherLocalChanges, 1)
	put32(d[6:], t.CapabilityMask)
	put16(d[10:], t.ChangeFlags)
	put16(d[12:], t.CapabilityMask2)
	return d
}

// ParseTrapCapability reads the data of trap 144.
func ParseTrapCapability(d *Details) TrapCapability {
	return TrapCapability{ib.LID(get16(d[2:])), d[5]&1 != 0, get32(d[6:]), get16(d[10:]), get16(d[12:])}
}

// TrapSystemImage is the data of trap 145: the SystemImageGUID has changed.
type TrapSystemImage struct {
	LID             ib.LID
	SystemImageGUID uint64
}

// Details returns the notice's data.
func (t TrapSystemImage) Details() (d Details) {
	put16(d[2:], uint16(t.LID))
	put64(d[6:], t.SystemImageGUID)
	return d
}

// ParseTrapSystemImage reads the data of trap 145.
func ParseTrapSystemImage(d *Details) TrapSystemImage {
	return TrapSystemImage{ib.LID(get16(d[2:])), get64(d[6:])}
}

// TrapMKeyPath is the number of bytes of TrapMKey.ReturnPath.
const TrapMKeyPath = 30

// TrapMKey is the data of trap 256: a packet had the wrong M_Key.
type TrapMKey struct {
	LID, DrSLID       ib.LID
	Method            uint8
	AttributeID       uint16
	AttributeModifier uint32
	MKey              uint64
	// For a directed packet: the hops, 6 bits, and the ports by which it arrived, beginning with the first
	// hop at ReturnPath[0]. Truncated: there were more than fit.
	Directed, Truncated bool
	Hops                uint8
	ReturnPath          [TrapMKeyPath]uint8
}

// Details returns the notice's data.
func (t TrapMKey) Details() (d Details) {
	put16(d[2:], uint16(t.LID))
	put16(d[4:], uint16(t.DrSLID))
	d[6] = t.Method
	put16(d[8:], t.AttributeID)
	put32(d[10:], t.AttributeModifier)
	put64(d[14:], t.MKey)
	d[23] = flag(t.Directed, 0x80) | flag(t.Truncated, 0x40) | t.Hops&0x3f
	copy(d[24:], t.ReturnPath[:])
	return d
}

// ParseTrapMKey reads the data of trap 256.
func ParseTrapMKey(d *Details) TrapMKey {
	return TrapMKey{
		LID: ib.LID(get16(d[2:])), DrSLID: ib.LID(get16(d[4:])), Method: d[6], AttributeID: get16(d[8:]),
		AttributeModifier: get32(d[10:]), MKey: get64(d[14:]),
		Directed: d[23]&0x80 != 0, Truncated: d[23]&0x40 != 0, Hops: d[23] & 0x3f, ReturnPath: [TrapMKeyPath]uint8(d[24:]),
	}
}

// TrapKey is the data of traps 257 and 258: a packet from LID1 to LID2 had a P_Key or Q_Key that does not
// match.
type TrapKey struct {
	LID1, LID2 ib.LID
	Key        uint32 // a P_Key is in the low 16 bits
	SL         uint8  // 4 bits
	QP1, QP2   ib.QPN
	GID1, GID2 ib.GID
}

// Details returns the notice's data.
func (t TrapKey) Details() (d Details) {
	put16(d[2:], uint16(t.LID1))
	put16(d[4:], uint16(t.LID2))
	put32(d[6:], t.Key)
	put32(d[10:], uint32(t.SL&15)<<28|uint32(t.QP1&ib.QPNMask))
	put32(d[14:], uint32(t.QP2&ib.QPNMask))
	copy(d[18:], t.GID1[:])
	copy(d[34:], t.GID2[:])
	return d
}

// ParseTrapKey reads the data of traps 257 and 258.
func ParseTrapKey(d *Details) TrapKey {
	return TrapKey{
		LID1: ib.LID(get16(d[2:])), LID2: ib.LID(get16(d[4:])), Key: get32(d[6:]), SL: d[10] >> 4,
		QP1: getQPN(d[11:]), QP2: getQPN(d[15:]), GID1: ib.GID(d[18:34]), GID2: ib.GID(d[34:50]),
	}
}

// Bits of TrapSwitchPKey.DataValid, which tell what the switch could see of the packet.
const (
	ValidLID1 = 1 << 0
	ValidLID2 = 1 << 1
	ValidPKey = 1 << 2
	ValidSL   = 1 << 3
	ValidQP1  = 1 << 4
	ValidQP2  = 1 << 5
	ValidGID1 = 1 << 6
	ValidGID2 = 1 << 7
)

// TrapSwitchPKey is the data of trap 259: a port of a switch filtered a packet by its P_Key.
type TrapSwitchPKey struct {
	DataValid  uint16
	LID1, LID2 ib.LID
	PKey       ib.PKey
	SL         uint8 // 4 bits
	QP1, QP2   ib.QPN
	GID1, GID2 ib.GID
	SwitchLID  ib.LID
	Port       uint8
}

// Details returns the notice's data.
func (t TrapSwitchPKey) Details() (d Details) {
	put16(d[0:], t.DataValid)
	put16(d[2:], uint16(t.LID1))
	put16(d[4:], uint16(t.LID2))
	put16(d[6:], uint16(t.PKey))
	put32(d[8:], uint32(t.SL&15)<<28|uint32(t.QP1&ib.QPNMask))
	put32(d[12:], uint32(t.QP2&ib.QPNMask))
	copy(d[16:], t.GID1[:])
	copy(d[32:], t.GID2[:])
	put16(d[48:], uint16(t.SwitchLID))
	d[50] = t.Port
	return d
}

// ParseTrapSwitchPKey reads the data of trap 259.
func ParseTrapSwitchPKey(d *Details) TrapSwitchPKey {
	return TrapSwitchPKey{
		DataValid: get16(d[0:]), LID1: ib.LID(get16(d[2:])), LID2: ib.LID(get16(d[4:])), PKey: ib.PKey(get16(d[6:])),
		SL: d[8] >> 4, QP1: getQPN(d[9:]), QP2: getQPN(d[13:]),
		GID1: ib.GID(d[16:32]), GID2: ib.GID(d[32:48]), SwitchLID: ib.LID(get16(d[48:])), Port: d[50],
	}
}
