package fabric

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// relay forwards a packet according to the switch's tables (IBA 18.2.4).
func (f *Fabric) relay(now clock.Time, n *node, in *port, q *Parcel) {
	if in.info.PartitionEnforcementInbound && !in.allows(q, true) {
		in.count(ctrRcvConstraint, 1)
		f.filtered(n, in, q)
		f.release(now, q)
		return
	}
	if q.hops++; q.hops > maxHops { // if nothing takes time, nothing else ends a forwarding loop
		f.discard(now, in, q, ctrLifetimeDiscards)
		return
	}
	lid := q.lrh().DLID()
	own := &f.ports[n.first]
	switch {
	case multicast(lid):
		f.spread(now, n, in, q)
		return
	case lid != ib.LIDPermissive && own.matches(lid):
		f.deliver(now, own, q)
		return
	}
	out := f.forward(n, in, lid)
	if out == nil {
		f.release(now, q)
		return
	}
	f.sendOn(now, n, in, out, q)
}

// spread sends a packet to each port in the multicast table's mask, except back (IBA 18.2.4.3.3).
func (f *Fabric) spread(now clock.Time, n *node, in *port, q *Parcel) {
	entry := int(q.lrh().DLID() - ib.LIDFirstMulticast)
	var outs [topology.MaxNodePorts + 1]uint8
	count := 0
	for position, masks := range n.sw.cast {
		if entry >= len(masks) || q.lrh().DLID() > ib.LID(n.sw.info.MulticastFDBTop) &&
			n.sw.info.MulticastFDBTop >= uint16(ib.LIDFirstMulticast) {
			continue
		}
		for bit := range 16 {
			number := position*16 + bit
			if masks[entry]>>bit&1 != 0 && number != int(in.number) && number <= int(n.count) {
				outs[count] = uint8(number)
				count++
			}
		}
	}
	if count == 0 {
		in.count(ctrSwitchRelayErrors, 1)
		in.count(ctrDLIDMapping, 1)
		f.release(now, q)
		return
	}
	if count > 1 {
		shared := count
		q.held.shared = &shared
	}
	for _, number := range outs[1:count] {
		c := f.data.take()
		c.length, c.since, c.hops, c.held = copy(c.frame[:], q.frame[:q.length]), q.since, q.hops, q.held
		f.toPort(now, n, in, number, c)
	}
	f.toPort(now, n, in, outs[0], q)
}

func (f *Fabric) toPort(now clock.Time, n *node, in *port, number uint8, q *Parcel) {
	out := &f.ports[int(n.first)+int(number)]
	if number == 0 {
		f.deliver(now, out, q)
		return
	}
	f.sendOn(now, n, in, out, q)
}

// sendOn queues a packet at another port, if nothing forbids it.
func (f *Fabric) sendOn(now clock.Time, n *node, in, out *port, q *Parcel) {
	switch {
	case out.info.PortState != mad.PortActive:
		f.discard(now, out, q, ctrInactiveDiscards)
		return
	case tooLong(out, q.length):
		f.discard(now, out, q, ctrMTUDiscards)
		return
	case out.info.PartitionEnforcementOutbound && !out.allows(q, false):
		out.count(ctrXmitConstraint, 1)
		f.filtered(n, out, q)
		f.release(now, q)
		return
	}
	vl := out.laneOf(in.number, q.lrh().SL())
	if vl >= dataLanes(out.info.OperationalVLs) {
		in.count(ctrSwitchRelayErrors, 1)
		in.count(ctrVLMapping, 1)
		f.release(now, q)
		return
	}
	q.vl = vl
	f.enqueue(now, out, q)
}

// pkey returns the P_Key of the packet.
func (p *Parcel) pkey() ib.PKey { return p.bth().PKey() }

// allows reports whether the port's table lets a packet pass (IBA 18.2.4.2.1): it has a P_Key of the
// packet's partition, and not both are limited members. The table is a copy of that of the host behind the
// port, so an inbound packet with a limited P_Key legitimately comes from a limited member.
func (p *port) allows(q *Parcel, inbound bool) bool {
	key := q.pkey()
	if p.tables == nil || p.tables.pkeys == nil {
		return key.Valid() && key.Base() == ib.PKeyDefault.Base()
	}
	for _, k := range p.tables.pkeys {
		if ib.PKeyMatch(k, key) || inbound && k == key && k.Valid() {
			return true
		}
	}
	return false
}

// filtered reports by trap 259 that a switch port dropped a packet because of its P_Key.
func (f *Fabric) filtered(n *node, p *port, q *Parcel) {
	own := &f.ports[n.first]
	h := q.lrh()
	f.trap(own, mad.NoticeSecurity, mad.TrapBadPKeySwitchPort, mad.TrapSwitchPKey{
		DataValid: mad.ValidLID1 | mad.ValidLID2 | mad.ValidPKey | mad.ValidSL, LID1: h.SLID(), LID2: h.DLID(), PKey: q.pkey(), SL: h.SL(),
		SwitchLID: own.info.LID, Port: p.number,
	}.Details())
}
