package transport

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
)

// MADLen is the length of the management datagrams of QP1 (IBA 13.4.2).
const MADLen = 256

// Datagram is a MAD that arrived on QP1, the general service interface.
type Datagram struct {
	Src, Dst     netip.Addr
	SrcPort      uint16 // UDP source port
	SrcQP        uint32
	PKey         ib.PKey
	SL           uint8 // InfiniBand
	TrafficClass uint8
	FlowLabel    uint32
	Global       bool   // InfiniBand: it had a GRH, with these GIDs
	SGID, DGID   ib.GID // and the TrafficClass and FlowLabel above
	MAD          [MADLen]byte
}

// outgoing is a MAD to be sent.
type outgoing struct {
	route *frame.Route
	qpn   uint32
	key   ib.PKey
	mad   [MADLen]byte
}

// datagrams is QP1: a bounded queue in, one out for each priority, together bounded too, and one PSN counter.
type datagrams struct {
	in      queue[Datagram]
	out     [frame.Priorities]queue[outgoing]
	waiting uint8 // bit p: out[p] is not empty
	queued  int   // in all of out
	psn     ib.PSN
	// sending are the MADs whose frames are being sent, kept until the next Transmit.
	sending *[16]outgoing // nil before the first MAD
}

// toSend reports whether there are MADs to be sent at a priority.
func (d *datagrams) toSend(priority uint8) bool { return d.waiting>>priority&1 != 0 }

// SendDatagram queues a MAD for QP qpn, usually 1, at the end of route. key is its partition, 0 for that
// of row 0; mad is copied and zero-padded to MADLen. Errors are ErrFull, and *command.Error for a longer
// mad.
func (e *Engine) SendDatagram(route *frame.Route, qpn uint32, key ib.PKey, mad []byte) error {
	if e.mads.sending == nil {
		e.mads.sending = new([16]outgoing)
	}
	if key == 0 {
		key = e.pkeyAt(0)
	}
	if len(mad) > MADLen {
		return fieldError("MAD length", len(mad), "at most 256")
	}
	if e.mads.queued >= e.cfg.MaxDatagrams {
		return ErrFull
	}
	e.bell.Ring()
	e.mads.queued++
	e.mads.waiting |= 1 << route.Priority
	d := e.mads.out[route.Priority].push()
	d.route, d.qpn, d.key = route, qpn, key
	clear(d.mad[copy(d.mad[:], mad):])
	return nil
}

// Datagrams moves MADs that arrived on QP1 out and returns their number.
func (e *Engine) Datagrams(out []Datagram) int { return e.mads.in.take(out) }

// sendDatagrams emits queued MADs of a priority as UD SEND Only packets from QP1.
func (e *Engine) sendDatagrams(priority uint8, out []frame.Out) int {
	d := &e.mads
	q := &d.out[priority]
	n := q.take(d.sending[:min(len(d.sending), len(out))])
	if d.queued -= n; q.len() == 0 {
		d.waiting &^= 1 << priority
	}
	for i := range n {
		m, o := &d.sending[i], &out[i]
		o.Reset(m.route)
		o.Payload = m.mad[:]
		head := o.Head[frame.HeadRoom:]
		ib.BTH(head).Encode(ib.UDSendOnly, false, false, 0, m.key, ib.QPN(m.qpn), d.psn)
		ib.DETH(head[ib.BTHLen:]).Encode(ib.QKeyGSI, ib.QPGSI)
		o.HeadEnd = frame.HeadRoom + ib.BTHLen + ib.DETHLen
		d.psn = d.psn.Next()
	}
	return n
}

// receiveMAD handles a datagram for QP1.
func (e *Engine) receiveMAD(in *frame.In, key ib.PKey, rest []byte, pad int) {
	deth := ib.DETH(rest)
	mad := rest[ib.DETHLen : len(rest)-pad]
	switch {
	case deth.QKey() != ib.QKeyGSI:
		e.violated(in, link.QKeyViolation)
		return
	case len(mad) != MADLen:
		e.counters.Malformed++
		return
	case e.mads.in.len() >= e.cfg.MaxDatagrams:
		e.counters.DatagramDrops++
		return
	}
	e.bell.Ring()
	d := e.mads.in.push()
	d.Src, d.Dst, d.SrcPort = in.Src, in.Dst, in.SrcPort
	d.SrcQP, d.PKey, d.SL = uint32(deth.SrcQP()), key, in.SL
	d.TrafficClass, d.FlowLabel = in.TrafficClass, in.FlowLabel
	d.Global, d.SGID, d.DGID = in.SLID != 0 && in.GRH != nil, ib.GID{}, ib.GID{}
	if d.Global {
		d.SGID, d.DGID = ib.GRH(in.GRH[:]).SGID(), ib.GRH(in.GRH[:]).DGID()
	}
	copy(d.MAD[:], mad)
}
