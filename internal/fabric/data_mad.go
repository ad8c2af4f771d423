package fabric

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// There are two ways for general services to pass through the fabric: adapters send and receive their
// datagrams as data packets, on data lanes and with credits, while programs that use a port for management
// only send and receive them by Send. The functions below convert between the two.

// datagramLen is the length of a packet with a MAD, without a GRH.
const datagramLen = ib.LRHLen + ib.BTHLen + ib.DETHLen + mad.Len + ib.ICRCLen

// general reports whether the packet is a datagram of general services.
func (p *Parcel) general() bool {
	b := p.bth()
	return b.DestQP() == ib.QPGSI && b.Opcode() == ib.UDSendOnly && b.PadCount() == 0 && p.length == p.transport()-ib.LRHLen+datagramLen
}

// Claim lets programs take datagrams of general services that arrive at ports as packets, before the
// program plugged in there gets them. take must not call the fabric, and the packet is valid only until it
// returns.
func (f *Fabric) Claim(take func(now clock.Time, at Place, p *Packet) bool) { f.data.claim = take }

// manage offers a datagram of general services to the port's agents and to programs; false: it is for the
// adapter.
func (f *Fabric) manage(now clock.Time, p *port, q *Parcel) bool {
	h, b, d := q.lrh(), q.bth(), ib.DETH(q.frame[q.transport()+ib.BTHLen:][:ib.DETHLen])
	m := &f.data.packet
	body := q.frame[q.length-ib.ICRCLen-mad.Len:][:mad.Len]
	*m = Packet{SLID: h.SLID(), DLID: h.DLID(), SQP: d.SrcQP(), DQP: ib.QPGSI, SL: h.SL(), PKey: b.PKey(), MAD: [mad.Len]byte(body)}
	m.PKeyIndex, _ = p.index(m.PKey) // the adapter has ensured that there is one
	if m.subnet() {                  // these are only for queue pair 0
		f.release(now, q)
		return true
	}
	if f.agent(now, f.own(&f.nodes[p.node], p), p, m) {
		if m.MAD[3] == 0 || multicast(h.DLID()) {
			f.release(now, q)
			return true
		}
		copy(body, m.MAD[:])
		f.reply(now, p, q)
		return true
	}
	if f.data.claim != nil && f.data.claim(now, f.place(p), m) {
		f.release(now, q)
		return true
	}
	return false
}

// reply sends a packet back to where it came from, with the MAD now in it. If the port's lane is full it
// is lost.
func (f *Fabric) reply(now clock.Time, p *port, q *Parcel) {
	f.free(now, q)
	q.held = hold{port: noPort}
	h, b := q.lrh(), q.bth()
	to, from := h.SLID(), h.DLID()
	h.SetDLID(to)
	h.SetSLID(from)
	d := ib.DETH(q.frame[q.transport()+ib.BTHLen:][:ib.DETHLen])
	back := d.SrcQP()
	d.Encode(ib.QKeyGSI, ib.QPGSI)
	b.SetDestQP(back)
	if h.NextHeader() == ib.LNHGlobal {
		g := ib.GRH(q.frame[ib.LRHLen:][:ib.GRHLen])
		source, target := g.SGID(), g.DGID()
		g.SetSGID(target)
		g.SetDGID(source)
	}
	f.seal(q)
	if p.owns(to) {
		f.deliver(now, p, q)
		return
	}
	if q.vl = p.laneOf(0, h.SL()); p.info.PortState != mad.PortActive || q.vl >= dataLanes(p.info.OperationalVLs) || p.full(false, q.vl) {
		f.discard(now, p, q, ctrInactiveDiscards)
		return
	}
	f.send(now, &f.nodes[p.node], p, q)
}

// Hand gives the program plugged in at a port a datagram of general services that arrived there by Send,
// as a packet. False: there is no program, or it has not collected the earlier ones.
func (f *Fabric) Hand(now clock.Time, at Place, m *Packet) bool {
	f.traps.now = now
	p := f.port(at)
	if p.lanes == nil || !p.lanes.plugged || p.lanes.arrived.count >= handed {
		p.count(ctrQP1Dropped, 1)
		return false
	}
	q := f.data.take()
	q.length, q.since = datagramLen, now
	clear(q.frame[:datagramLen])
	h := q.lrh()
	h.SetSL(m.SL)
	h.SetNextHeader(ib.LNHLocal)
	h.SetDLID(m.DLID)
	h.SetSLID(m.SLID)
	h.SetPktLen(datagramLen / 4)
	key := m.PKey
	if key == 0 {
		key = ib.PKeyDefault
	}
	ib.BTH(q.frame[ib.LRHLen:][:ib.BTHLen]).Encode(ib.UDSendOnly, false, false, 0, key, m.DQP, 0)
	ib.DETH(q.frame[ib.LRHLen+ib.BTHLen:][:ib.DETHLen]).Encode(ib.QKeyGSI, m.SQP)
	copy(q.frame[datagramLen-ib.ICRCLen-mad.Len:], m.MAD[:])
	f.seal(q)
	p.lanes.arrived.add(q)
	f.tell(p)
	return true
}

// handed is how many packets may wait for a program before Hand refuses more: these have no credits.
const handed = 1024

// seal computes the invariant CRC of a packet.
func (f *Fabric) seal(q *Parcel) {
	at, end := q.transport(), q.length-ib.ICRCLen
	crc := ib.ICRCSeedLRH(&f.data.icrc, q.frame[:ib.LRHLen], q.frame[ib.LRHLen:at], q.frame[at:at+ib.BTHLen])
	ib.PutICRC(q.frame[end:q.length], ib.ICRCUpdate(crc, q.frame[at+ib.BTHLen:end]))
}
