package fabric

import (
	"encoding/binary"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// mkeyLease is the time after which an M_Key that nobody uses stops protecting.
type mkeyLease struct{ until clock.Time }

// checkMKey reports whether the port's M_Key permits a packet (IBA 14.2.4). If not, the violation is
// counted and reported by trap 256, and the lease begins to run.
func (f *Fabric) checkMKey(now clock.Time, own, in *port, b *[mad.Len]byte) bool {
	f.expire(now, own)
	i := &own.info
	if i.MKey == 0 {
		return true
	}
	if i.MKey == binary.BigEndian.Uint64(b[atMKey:]) {
		own.lease = nil
		return true
	}
	if b[3] == mad.MethodGet && i.MKeyProtectBits < 2 {
		return true
	}
	if i.MKeyViolations < 0xffff {
		i.MKeyViolations++
	}
	if i.MKeyLeasePeriod != 0 && own.lease == nil {
		own.lease = &mkeyLease{now.Add(time.Duration(i.MKeyLeasePeriod) * time.Second)}
	}
	f.trap(own, mad.NoticeSecurity, mad.TrapBadMKey, mkeyTrap(own, in, b).Details())
	return false
}

// expire ends the protection if its lease has run out.
func (f *Fabric) expire(now clock.Time, p *port) {
	if p.lease != nil && !now.Before(p.lease.until) {
		p.lease = nil
		p.info.MKeyProtectBits = 0
	}
}

// mkeyTrap returns the data of trap 256 for a packet.
func mkeyTrap(own, in *port, b *[mad.Len]byte) mad.TrapMKey {
	t := mad.TrapMKey{LID: own.info.LID, Method: b[3], AttributeID: binary.BigEndian.Uint16(b[16:]),
		AttributeModifier: binary.BigEndian.Uint32(b[20:]), MKey: binary.BigEndian.Uint64(b[atMKey:])}
	if b[1] != mad.ClassSubnetDir {
		return t
	}
	t.Directed, t.DrSLID = true, ib.LID(binary.BigEndian.Uint16(b[atDrSLID:]))
	hops := int(b[atHopCount])
	t.Hops, t.Truncated = uint8(min(hops, mad.TrapMKeyPath)), hops > mad.TrapMKeyPath
	copy(t.ReturnPath[:t.Hops], b[atReturnPath+1:])
	return t
}
