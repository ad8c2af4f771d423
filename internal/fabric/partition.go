package fabric

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Like all packets on queue pair 1, datagrams of general services belong to a partition: the sender
// chooses it by an index into the P_Key table of its port, and the receiver accepts them with any P_Key of
// its own (IBA 9.6.1.1.3, 10.9.4).

// stamp gives a datagram without a P_Key the one at its index; false: there is none.
func (p *port) stamp(q *Packet) bool {
	if q.PKey != 0 {
		return true
	}
	switch {
	case p.tables != nil && p.tables.pkeys != nil:
		if int(q.PKeyIndex) < len(p.tables.pkeys) {
			q.PKey = p.tables.pkeys[q.PKeyIndex]
		}
	case q.PKeyIndex == 0:
		q.PKey = ib.PKeyDefault
	}
	return q.PKey.Valid()
}

// index returns where a port has a P_Key that admits a datagram with the given one; false: nowhere.
func (p *port) index(key ib.PKey) (uint16, bool) {
	if p.tables == nil || p.tables.pkeys == nil {
		return 0, ib.PKeyMatch(ib.PKeyDefault, key)
	}
	for i, k := range p.tables.pkeys {
		if ib.PKeyMatch(k, key) {
			return uint16(i), true
		}
	}
	return 0, false
}

// admit admits a datagram of general services at its destination port; false: its P_Key matches none of
// the port's, which the port reports by trap 257.
func (f *Fabric) admit(now clock.Time, p *port, q *Packet) bool {
	i, ok := p.index(q.PKey)
	if q.PKeyIndex = i; !ok {
		f.BadPKey(now, f.place(p), KeyViolation{From: q.SLID, To: q.DLID, Key: uint32(q.PKey), SL: q.SL, FromQP: q.SQP, ToQP: q.DQP})
	}
	return ok
}

// subnet reports whether the packet is one of subnet management, which belongs to no partition.
func (q *Packet) subnet() bool {
	return q.MAD[1] == mad.ClassSubnetLID || q.MAD[1] == mad.ClassSubnetDir
}
