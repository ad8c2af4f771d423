package encap

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

const (
	// vlManagement is VL15, used only by subnet management packets.
	vlManagement = 15
	wordLen      = 4
)

// infiniband holds the settings of an InfiniBand port.
type infiniband struct {
	lid   ib.LID // base LID, 0 for none
	mask  ib.LID // of the path bits
	lanes [16]uint8
}

// SetPort passes the settings of an InfiniBand port by the subnet manager. Before that, and while the port
// has no LID, all packets are refused. The port's GIDs are the addresses of SetAddrs.
func (e *Encap) SetPort(p *link.Port) {
	e.ib = infiniband{lid: p.LID, mask: 1<<(p.LMC&7) - 1, lanes: p.SLtoVL}
}

// sealIB writes LRH and GRH before the BTH, and pad and ICRC after the payload (IBA 7.7, 8.3, 7.8.1).
func (e *Encap) sealIB(o *frame.Out) {
	r := o.Route
	bth := o.Head[frame.HeadRoom:o.HeadEnd]
	length := len(bth) + len(o.Payload) + int(o.Pad&3) + ib.ICRCLen
	at, next := frame.HeadRoom, uint8(ib.LNHLocal)
	var grh []byte
	if r.IB.Global {
		at, next = at-ib.GRHLen, ib.LNHGlobal
		grh = o.Head[at:frame.HeadRoom]
		ib.GRH(grh).Encode(r.TrafficClass, r.FlowLabel, length, frame.Hops(r.HopLimit), r.IB.SGID, r.IB.DGID)
	}
	at -= ib.LRHLen
	lrh := ib.LRH(o.Head[at : at+ib.LRHLen])
	lrh[0], lrh[1] = e.ib.lanes[r.IB.SL&15]<<4, r.IB.SL<<4|next
	lrh.SetDLID(r.IB.DLID)
	lrh.SetPktLen((frame.HeadRoom - at + length) / wordLen)
	lrh.SetSLID(e.ib.lid | ib.LID(r.IB.PathBits)&e.ib.mask)
	crc := ib.ICRCSeedLRH(&e.icrc, lrh, grh, bth)
	o.HeadStart, o.Segment = uint16(at), 0
	finish(o, ib.ICRCUpdate(crc, bth[ib.BTHLen:]), 0)
}

// openIB checks a packet from the LRH to the ICRC, and fills in the fields outside the BTH (IBA 7.7, 8.3).
func (e *Encap) openIB(p *frame.In) bool {
	b := p.Data
	if len(b) < ib.LRHLen {
		e.counters.Malformed++
		return false
	}
	lrh, data := ib.LRH(b[:ib.LRHLen]), b[ib.LRHLen:]
	next := lrh.NextHeader()
	switch {
	case lrh.Version() != 0, lrh.PktLen()*wordLen != len(b):
		e.counters.Malformed++
		return false
	case next != ib.LNHLocal && next != ib.LNHGlobal, lrh.VL() == vlManagement: // raw packets, and QP0's
		e.counters.NotForUs++
		return false
	}
	var grh []byte
	if next == ib.LNHGlobal {
		if len(data) < ib.GRHLen {
			e.counters.Malformed++
			return false
		}
		grh, data = data[:ib.GRHLen], data[ib.GRHLen:]
	}
	if !e.addressed(lrh, grh, len(data)) || !e.wellFormed(len(data)) {
		return false
	}
	p.Src, p.Dst, p.SrcPort = frame.LIDAddr(lrh.SLID()), frame.LIDAddr(lrh.DLID()), 0
	p.SLID, p.SL, p.PathBits = lrh.SLID(), lrh.SL(), uint8(lrh.DLID()&e.ib.mask)
	p.TrafficClass, p.HopLimit, p.FlowLabel, p.GRH = 0, 0, 0, nil
	p.IDKnown, p.ID, p.Segment = false, 0, 0
	if grh != nil {
		h := ib.GRH(grh)
		p.GRH = (*[ib.GRHLen]byte)(grh)
		p.TrafficClass, p.HopLimit, p.FlowLabel = h.TrafficClass(), h.HopLimit(), h.FlowLabel()
		if lrh.DLID() >= ib.LIDFirstMulticast {
			p.Dst = h.DGID().Addr()
		}
	}
	return e.check(p, data, ib.ICRCSeedLRH(&e.icrc, lrh, grh, data[:ib.BTHLen]))
}

// addressed refuses and counts packets that are not for the port, or not between two ports: a packet to a
// multicast LID must have a GRH with the group's GID, one to another LID none or one with a GID of the
// port (IBA 9.6.1.1). n is the length after the headers.
func (e *Encap) addressed(lrh ib.LRH, grh []byte, n int) bool {
	group := lrh.DLID() >= ib.LIDFirstMulticast && lrh.DLID() != ib.LIDPermissive
	switch {
	case lrh.SLID() == 0 || lrh.SLID() > ib.LIDMaxUnicast, group && grh == nil:
		e.counters.Malformed++
		return false
	case !group && (e.ib.lid == 0 || lrh.DLID()&^e.ib.mask != e.ib.lid):
		e.counters.NotForUs++
		return false
	case grh == nil:
		return true
	}
	h := ib.GRH(grh)
	if h.Version() != 6 || h.NextHeader() != ib.GRHNextHeader || h.PayLen() != n || (grh[24] == 0xff) != group {
		e.counters.Malformed++
		return false
	}
	return group || e.mine(h.DGID().Addr())
}
