package cm

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// receiveSIDRREQ handles a request for the datagram QP behind a port (IBA 12.11).
func (e *Engine) receiveSIDRREQ(now clock.Time, m *mad.SIDRREQ, from Peer) {
	peer := peerKey{addr: from.Remote, id: m.RequestID, sidr: true}
	if c := e.peers[peer]; c != nil {
		e.counters.Duplicates++
		c.again = true
		if c.message != nil && c.tid == m.TransactionID {
			e.enqueue(c)
		}
		return
	}
	if e.events.len() > 2*e.cfg.MaxHalfOpen {
		e.counters.HalfOpenLimit++
		return
	}
	space, port, ok := mad.ParseServiceID(m.ServiceID)
	if !ok || space != mad.PortSpaceUDP {
		e.refuseSIDR(m, from, mad.SIDRUnsupportedService)
		return
	}
	ip, err := mad.ParseIPHeader(m.PrivateData[:])
	key, member := e.cfg.member(m.PKey)
	named := onInfiniBand(from) || from.Remote.IsLinkLocalUnicast() || bare(ip.Source.Addr()) == from.Remote
	if err != nil || !named || !member {
		e.refuseSIDR(m, from, mad.SIDRRejected)
		return
	}
	at := barePort(addrPort(ip.Destination, port))
	l := e.listener(command.UDP, at)
	if l == nil {
		e.refuseSIDR(m, from, mad.SIDRUnsupportedService)
		return
	}
	a := e.admit(now, l, &request{from: from.Remote, id: m.RequestID, tid: m.TransactionID})
	if a.refuse {
		e.refuseSIDR(m, from, mad.SIDRNoQP)
	}
	if !a.room {
		return
	}
	c := e.add(command.UDP, l.context)
	c.at, c.again = from, a.again
	e.await(l, c)
	c.local, c.remote = at, barePort(ip.Source)
	c.remoteID, c.tid = m.RequestID, m.TransactionID
	c.maxRetries, c.interval = e.cfg.MaxRetries, interval(e.cfg.ResponseTimeout, e.cfg.PacketLifetime)
	c.attr = Attributes{Type: command.UD, MTU: e.cfg.MTU, PKey: key, LocalGID: from.Local, RemoteGID: from.Remote,
		HopLimit: frame.DefaultHopLimit, FlowLabel: flowLabel(c.local.Port(), c.remote.Port()),
		SrcPort: udpSourcePort(c.local.Port(), c.remote.Port())}
	c.at.Marks.Port = l.local.Port()
	if onInfiniBand(from) { // a SIDR_REQ contains no path: the way back is that by which it came
		c.attr.LocalLID, _ = frame.AddrLID(from.Local)
		c.attr.RemoteLID, _ = frame.AddrLID(from.Remote)
		c.attr.SL = from.SL
		if g := &from.Global; *g != (Global{}) {
			c.attr.Global, c.attr.LocalGID, c.attr.RemoteGID, c.attr.TrafficClass = true, g.Local.Addr(), g.Remote.Addr(), g.TrafficClass
		}
	}
	e.rememberPeer(c)
	c.expires = now.Add(e.cfg.RequestLifetime)
	e.set(c)
	e.enter(c, stateSidrReceived)
	e.event(c, Event{Type: EventConnectRequest, Listener: l.id, Private: m.PrivateData[mad.IPHeaderLen:]})
}

// acceptSIDR supplies the QP. The answer is kept for duplicates until Destroy and a while after.
func (e *Engine) acceptSIDR(now clock.Time, c *conn, a *Accept) (Attributes, error) {
	if err := a.check("SIDR_REP", mad.SIDRREPPrivateData); err != nil {
		return Attributes{}, err
	}
	e.claim(c)
	a.mark(c)
	c.attr.LocalQPN, c.attr.QKey = a.QPN, a.QKey
	if a.QKey == 0 {
		c.attr.QKey = ib.QKeyRDMAUDP
	}
	e.quiet(c)
	e.enter(c, stateSidrReplied)
	e.keep(c, c.sidrRep(mad.SIDRValid, c.attr.LocalQPN, c.attr.QKey, a.Private))
	e.enqueue(c)
	return c.attr, nil
}

// refuseSIDR refuses a request for which no id was created.
func (e *Engine) refuseSIDR(m *mad.SIDRREQ, from Peer, status mad.SIDRStatus) {
	e.reply(from, &mad.SIDRREP{TransactionID: m.TransactionID, RequestID: m.RequestID, Status: status, ServiceID: m.ServiceID})
}

// receiveSIDRREP handles the answer to this side's request.
func (e *Engine) receiveSIDRREP(m *mad.SIDRREP, from Peer) {
	c := e.ids.Get(m.RequestID)
	switch {
	case c == nil || c.at.Remote != from.Remote:
		e.counters.Unknown++
		return
	case c.state != stateSidrSent:
		e.counters.Unexpected++
		return
	case m.TransactionID != c.tid || m.Status == mad.SIDRValid && (m.ServiceID != serviceID(c) || checkQPN(uint32(m.QPN)) != nil):
		e.counters.Malformed++
		return
	}
	v := Event{Type: EventConnectResponse, Status: m.Status, Private: m.PrivateData[:], Rejection: m.Info[:m.InfoLength]}
	if m.Status == mad.SIDRValid {
		c.attr.RemoteQPN, c.attr.QKey = uint32(m.QPN), m.QKey
	} else {
		v.Type = EventRejected
	}
	e.event(c, v)
	e.finish(c)
}
