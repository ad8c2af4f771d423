package mad

import "github.com/softvpi/softvpi/wire/ib"

// Path is a primary or alternate path in a REQ or LAP (IBA 12.7.10 to 12.7.21). On RoCE the LIDs are
// 0xffff and the GIDs are those of the ports.
type Path struct {
	LocalLID, RemoteLID ib.LID
	LocalGID, RemoteGID ib.GID
	FlowLabel           uint32 // 20 bits
	PacketRate          uint8  // 6 bits: inter-packet delay
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8 // 4 bits
	SubnetLocal         bool
	AckTimeout          uint8 // 5 bits: see ib.AckTimeout
}

const pathLen = 44

// put writes the path in the layout of a REQ.
func (p *Path) put(b []byte) {
	put16(b, uint16(p.LocalLID))
	put16(b[2:], uint16(p.RemoteLID))
	copy(b[4:20], p.LocalGID[:])
	copy(b[20:36], p.RemoteGID[:])
	put32(b[36:], p.FlowLabel<<12|uint32(p.PacketRate&0x3f))
	b[40], b[41] = p.TrafficClass, p.HopLimit
	p.putService(b[42:])
}

func getPath(b []byte) Path {
	p := Path{
		LocalLID: ib.LID(get16(b)), RemoteLID: ib.LID(get16(b[2:])),
		LocalGID: ib.GID(b[4:20]), RemoteGID: ib.GID(b[20:36]),
		FlowLabel: get32(b[36:]) >> 12, PacketRate: b[39] & 0x3f,
		TrafficClass: b[40], HopLimit: b[41],
	}
	p.getService(b[42:])
	return p
}

// putService writes the two bytes with service level, subnet local and ACK timeout.
func (p *Path) putService(b []byte) {
	b[0] = p.SL<<4 | flag(p.SubnetLocal, 0x08)
	b[1] = p.AckTimeout << 3
}

func (p *Path) getService(b []byte) {
	p.SL, p.SubnetLocal, p.AckTimeout = b[0]>>4, b[0]&0x08 != 0, b[1]>>3
}
