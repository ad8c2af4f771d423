package subnet

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Packet is a MAD with its destination or sender.
type Packet struct {
	LID       ib.LID // the other end's; ib.LIDPermissive for a directed route
	QPN       ib.QPN // the other end's: 0 for subnet management, 1 or a program's own for the rest
	LocalQPN  ib.QPN // 0 or 1
	SL        uint8
	PKeyIndex uint16
	MAD       [mad.Len]byte
}

// transaction returns the low 32 bits of the MAD's transaction ID, which this manager assigns.
func (p *Packet) transaction() uint32 {
	b := p.MAD[12:16]
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}
