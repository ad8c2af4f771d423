package agent

import (
	"encoding/binary"

	"github.com/softvpi/softvpi/internal/fabric"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// HeaderLen is the length of the header before each MAD that a program writes or reads (struct ib_user_mad
// with a P_Key index).
const HeaderLen = 64

// timedOut is the status of a MAD that is returned because nobody answered: ETIMEDOUT.
const timedOut = 110

// GRH is a global route header as programs see it.
type GRH struct {
	GIDIndex     uint8
	HopLimit     uint8
	TrafficClass uint8
	GID          ib.GID // the other end's
	FlowLabel    uint32
}

// Header precedes a MAD between a program and its port. Its fields are those of ib_user_mad.
type Header struct {
	Agent     uint32
	Status    uint32
	Timeout   uint32 // milliseconds per try; 0: no response is expected
	Retries   uint32 // after the first try
	Length    uint32 // of header and MAD, when a program reads
	QPN       ib.QPN // the other end's, as are the LID and SL
	QKey      uint32
	LID       ib.LID
	SL        uint8
	PathBits  uint8 // of the own LID
	HasGRH    bool
	GRH       GRH
	PKeyIndex uint16
}

// Append appends the 64 bytes to b. The first 20 bytes and the P_Key index are in host byte order, which
// is little-endian on all supported machines; the rest is in network byte order.
func (h *Header) Append(b []byte) []byte {
	for _, v := range [...]uint32{h.Agent, h.Status, h.Timeout, h.Retries, h.Length} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(h.QPN))
	b = binary.BigEndian.AppendUint32(b, h.QKey)
	b = binary.BigEndian.AppendUint16(b, uint16(h.LID))
	present := byte(0)
	if h.HasGRH {
		present = 1
	}
	b = append(b, h.SL, h.PathBits, present, h.GRH.GIDIndex, h.GRH.HopLimit, h.GRH.TrafficClass)
	b = append(b, h.GRH.GID[:]...)
	b = binary.BigEndian.AppendUint32(b, h.GRH.FlowLabel)
	b = binary.LittleEndian.AppendUint16(b, h.PKeyIndex)
	return append(b, 0, 0, 0, 0, 0, 0)
}

// ParseHeader reads a header from b, which has at least HeaderLen bytes.
func ParseHeader(b []byte) Header {
	_ = b[HeaderLen-1]
	return Header{
		Agent: binary.LittleEndian.Uint32(b), Status: binary.LittleEndian.Uint32(b[4:]), Timeout: binary.LittleEndian.Uint32(b[8:]),
		Retries: binary.LittleEndian.Uint32(b[12:]), Length: binary.LittleEndian.Uint32(b[16:]),
		QPN: ib.QPN(binary.BigEndian.Uint32(b[20:])) & 0xffffff, QKey: binary.BigEndian.Uint32(b[24:]),
		LID: ib.LID(binary.BigEndian.Uint16(b[28:])),
		SL:  b[30] & 15, PathBits: b[31], HasGRH: b[32] != 0,
		GRH: GRH{GIDIndex: b[33], HopLimit: b[34], TrafficClass: b[35], GID: ib.GID(b[36:52]),
			FlowLabel: binary.BigEndian.Uint32(b[52:])},
		PKeyIndex: binary.LittleEndian.Uint16(b[56:]),
	}
}

// Message is a MAD with its header. Data longer than a MAD is that of a transfer: the headers once, then
// the payloads of the segments, one after the other.
type Message struct {
	Header
	Data []byte
}

// Packet is a MAD in the fabric, with details that only programs are told.
type Packet struct {
	fabric.Packet
	HasGRH   bool
	GRH      GRH
	PathBits uint8 // of the own LID, if SLID is not set
}

// Offsets of fields in a MAD.
const (
	atClass   = 1
	atVersion = 2
	atMethod  = 3
	atTID     = 8
	atAttr    = 16
	atMod     = 20
	atRMPP    = 24 // version, type, flags, status
	atFlags   = 26
	atStatus  = 27
	atData1   = 28
	atData2   = 32
	atOUI     = 37
)

const responding = 0x80 // bit of the method

// response reports whether a MAD goes to the agent that its transaction ID identifies (IBA 13.4.5).
func response(m []byte) bool {
	return m[atMethod]&responding != 0 || m[atMethod] == mad.MethodTrapRepress || m[atClass] == mad.ClassBM && m[atMod+3]&1 != 0
}

// vendorOUI reports whether MADs of the class bear the OUI of the organisation that defined them (IBA
// 16.5.1).
func vendorOUI(class uint8) bool { return class >= 0x30 && class <= 0x4f }

// segmentable reports whether MADs of the class have an RMPP header.
func segmentable(class uint8) bool {
	switch class {
	case mad.ClassSubnetAdm, mad.ClassDeviceMgt, 0x10, 0x12: // device administration, boot information
		return true
	}
	return vendorOUI(class)
}

// headerLen returns where a segment's own payload begins in a MAD.
func headerLen(class uint8) int {
	switch {
	case class == mad.ClassSubnetAdm:
		return 56
	case class == mad.ClassDeviceMgt || class == 0x10 || class == 0x12:
		return 64
	case vendorOUI(class):
		return 40
	}
	return mad.HeaderLen
}

// active reports whether a MAD is part of a transfer.
func active(m []byte) bool { return segmentable(m[atClass]) && m[atFlags]&mad.RMPPActive != 0 }
