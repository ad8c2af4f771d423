package cm

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// receiveREQ handles a peer's request for a connection.
func (e *Engine) receiveREQ(now clock.Time, m *mad.REQ, from Peer) {
	key := peerKey{addr: from.Remote, guid: m.LocalCAGUID, id: m.LocalCommID}
	if c := e.peers[key]; c != nil && e.duplicateREQ(now, c, m, from) {
		return
	}
	if e.events.len() > 2*e.cfg.MaxHalfOpen { // the driver is behind: the peer will ask again
		e.counters.HalfOpenLimit++
		return
	}
	space, port, ok := mad.ParseServiceID(m.ServiceID)
	if !ok || space == mad.PortSpaceUDP {
		e.refuseREQ(m, from, mad.RejectInvalidServiceID, nil)
		return
	}
	ip, err := mad.ParseIPHeader(m.PrivateData[:])
	if err != nil {
		e.refuseREQ(m, from, mad.RejectUnsupported, nil)
		return
	}
	at := barePort(addrPort(ip.Destination, port))
	l := e.listener(command.PortSpace(space), at)
	if l == nil {
		e.refuseREQ(m, from, mad.RejectInvalidServiceID, nil)
		return
	}
	if reason, info := e.judge(m, l.space, &ip, from); reason != 0 {
		e.refuseREQ(m, from, reason, info)
		return
	}
	if old := e.qpns[qpnKey{from.Remote, m.LocalCAGUID, uint32(m.LocalQPN)}]; old != nil {
		switch old.state {
		case stateReqReceived: // the peer gave up that attempt and made another
			e.failRequest(old, 0)
		case stateDreqSent: // the peer has forgotten it: nobody is left to answer
			e.disconnected(now, old, nil)
		default:
			e.refuseREQ(m, from, mad.RejectStaleConnection, nil)
			e.stale(now, old)
			return
		}
	}
	a := e.admit(now, l, &request{from.Remote, m.LocalCAGUID, m.LocalCommID, m.TransactionID})
	if a.refuse {
		// Not 28: the program did not decide. The peer may retry when there is room.
		e.refuseREQ(m, from, mad.RejectNoResources, nil)
	}
	if a.room {
		e.request(now, l, m, &ip, from, a.again)
	}
}

// judge returns why a request cannot be granted, with the additional reject information; 0 if it can.
func (e *Engine) judge(m *mad.REQ, space command.PortSpace, ip *mad.IPHeader, from Peer) (mad.RejectReason, []byte) {
	p := &m.Primary
	switch {
	case m.LocalCommID == 0:
		return mad.RejectInvalidCommID, nil
	case accepting(m, space) == 0:
		return mad.RejectInvalidTransportType, nil
	case checkQPN(uint32(m.LocalQPN)) != nil:
		return mad.RejectUnsupported, nil
	case onInfiniBand(from):
		// Only the driver can tell whether LIDs and GIDs belong to the port. An
		// IP address is not tied to a LID, as with every InfiniBand adapter.
	case from.Local.IsValid() && bare(p.RemoteGID.Addr()) != from.Local:
		gid := ib.GIDFromAddr(from.Local)
		return mad.RejectInvalidGID, gid[:]
	case bare(p.LocalGID.Addr()) != from.Remote:
		// The QP would send to an address from which the request did not come.
		return mad.RejectUnsupported, nil
	case !from.Remote.IsLinkLocalUnicast() && bare(ip.Source.Addr()) != from.Remote:
		// GIDs are IP addresses here (except the MAC-based ones of RoCE v1): a
		// program that trusts the peer's address must not be shown another one.
		return mad.RejectUnsupported, nil
	}
	_, member := e.cfg.member(m.PKey)
	switch {
	case ip.Source.Port() == 0:
		return mad.RejectUnsupported, nil
	case !m.PathMTU.Valid() || m.PathMTU > e.cfg.MTU:
		return mad.RejectInvalidMTU, []byte{byte(e.cfg.MTU)}
	case !member:
		return mad.RejectUnsupported, nil
	}
	return 0, nil
}

// onInfiniBand reports whether a MAD was addressed by LIDs.
func onInfiniBand(from Peer) bool {
	_, ok := frame.AddrLID(from.Remote)
	return ok
}

// follow derives the path of an InfiniBand connection from its peer's request: the peer's source is this
// side's destination (IBA 12.7). A peer in another subnet is reached through the sender of the request.
func (a *Attributes) follow(p *mad.Path, from Peer) {
	if !onInfiniBand(from) {
		return
	}
	a.LocalGID, a.RemoteGID = bare(p.RemoteGID.Addr()), bare(p.LocalGID.Addr())
	a.LocalLID, a.RemoteLID, a.SL, a.HopLimit = p.RemoteLID, p.LocalLID, p.SL, p.HopLimit
	if a.Global = !p.SubnetLocal; a.Global {
		a.LocalLID, _ = frame.AddrLID(from.Local)
		a.RemoteLID, _ = frame.AddrLID(from.Remote)
	}
}

// request creates the id of a request and raises the event for the listener's program. again says that it was made room
// for because it was repeated.
func (e *Engine) request(now clock.Time, l *conn, m *mad.REQ, ip *mad.IPHeader, from Peer, again bool) {
	c := e.add(l.space, l.context)
	c.at, c.again = from, again
	e.await(l, c)
	p := &m.Primary
	if !onInfiniBand(from) {
		c.at.Marks = Marks{p.SL & 7, p.TrafficClass, l.local.Port()}
	}
	c.local, c.remote = barePort(addrPort(ip.Destination, l.local.Port())), barePort(ip.Source)
	c.remoteID, c.remoteGUID, c.tid = m.LocalCommID, m.LocalCAGUID, m.TransactionID
	c.reqTID = m.TransactionID
	c.peerFlow = m.FlowControl
	c.failover = !m.Alternate.LocalGID.IsZero()
	c.maxRetries = m.MaxCMRetries
	lifetime := p.AckTimeout - min(p.AckTimeout, 1)
	c.interval = interval(m.LocalCMResponseTimeout, lifetime)
	ack := min(p.AckTimeout, maxAckTimeout)
	if ack == 0 { // infinite: a lost packet would hang the QP
		ack = ackTimeout(e.cfg.AckDelay, e.cfg.PacketLifetime)
	}
	key, _ := e.cfg.member(m.PKey)
	c.attr = Attributes{
		RemoteQPN: uint32(m.LocalQPN), SQPSN: m.StartingPSN, RQPSN: e.psn(), MTU: m.PathMTU, PKey: key,
		AckTimeout: ack, RetryCount: m.RetryCount, RNRRetry: m.RNRRetryCount,
		InitiatorDepth: m.ResponderResources, ResponderResources: m.InitiatorDepth,
		Type: accepting(m, l.space), RemoteSRQ: m.SRQ,
		LocalGID: from.Local, RemoteGID: from.Remote,
		FlowLabel: p.FlowLabel, TrafficClass: p.TrafficClass, HopLimit: frame.Hops(p.HopLimit), SL: p.SL & 7,
		SrcPort: udpSourcePort(c.local.Port(), c.remote.Port()),
	}
	if c.attr.Type == command.XRCTarget { // it sends no requests, whatever the peer says
		c.attr.InitiatorDepth = 0
	}
	c.attr.follow(p, from)
	e.rememberPeer(c)
	e.rememberQPN(c)
	c.expires = now.Add(e.cfg.RequestLifetime)
	e.set(c)
	e.enter(c, stateReqReceived)
	e.event(c, Event{Type: EventConnectRequest, Listener: l.id, Private: m.PrivateData[mad.IPHeaderLen:]})
}

// await adds a request to its listener's backlog.
func (e *Engine) await(l, c *conn) {
	w := l.listen
	c.claimed, c.listener = false, l
	w.waiting[c.id] = c
	w.shares.add(c.at.Remote, 1)
	w.line.add(c.id, w.backlog, w.counts)
	e.opening.add(c.id, e.cfg.MaxHalfOpen, e.counts)
}

// duplicateREQ answers a request that was seen before. It returns false for a new one.
func (e *Engine) duplicateREQ(now clock.Time, c *conn, m *mad.REQ, from Peer) bool {
	if m.TransactionID != c.reqTID || uint32(m.LocalQPN) != c.attr.RemoteQPN || m.StartingPSN != c.attr.SQPSN {
		if c.state == stateLinger || c.state == stateTimewait {
			e.forgetPeer(c)
			return false
		}
		// Another request under an ID in use: its sender has forgotten this one.
		e.refuseREQ(m, from, mad.RejectDuplicateCommID, nil)
		e.stale(now, c)
		return true
	}
	e.counters.Duplicates++
	switch c.state {
	case stateReqReceived: // the program has not decided yet
		c.again = true
		e.reply(from, c.mra(mad.MRAForREQ))
	case stateRepSent, stateLinger: // the answer was lost
		e.enqueue(c)
	case stateTimewait:
		e.refuseREQ(m, from, mad.RejectStaleConnection, nil)
	}
	return true
}

// Accept answers a request with REP, or SIDR_REP in the UDP port space, and returns the values for the QP.
// The REP is repeated until RTU or Established.
func (e *Engine) Accept(now clock.Time, id ID, a Accept) (Attributes, error) {
	c, err := e.find(id)
	if err != nil {
		return Attributes{}, err
	}
	if c.state == stateSidrReceived {
		return e.acceptSIDR(now, c, &a)
	}
	if c.state != stateReqReceived {
		return Attributes{}, &stateError{"Accept", c.state.String()}
	}
	if err := a.check("REP", mad.REPPrivateData); err != nil {
		return Attributes{}, err
	}
	e.claim(c)
	a.mark(c)
	t := &c.attr
	c.flow = !e.cfg.DisableFlowControl && !a.NoFlowControl && !a.SRQ && !t.Type.XRC()
	t.LocalQPN, t.PeerRNRRetry = a.QPN, a.RNRRetry
	t.InitiatorDepth = min(t.InitiatorDepth, a.InitiatorDepth)
	t.ResponderResources = min(t.ResponderResources, a.ResponderResources)
	t.FlowControl = c.flow && c.peerFlow
	e.enter(c, stateRepSent)
	e.ask(now, c, e.rep(c, &a))
	return c.attr, nil
}

// mark lets the messages of c from now on have the traffic class that its program has chosen, if it has.
func (a *Accept) mark(c *conn) {
	if a.TrafficClass != 0 && !onInfiniBand(c.at) {
		c.at.Marks.TrafficClass, c.at.Marks.Port = a.TrafficClass, 0
	}
}

func (a *Accept) check(message string, limit int) error {
	if err := checkPrivate(a.Private, message, limit); err != nil {
		return err
	}
	if a.RNRRetry > 7 {
		return fieldError("RNRRetry", a.RNRRetry, "0 to 7")
	}
	return checkQPN(a.QPN)
}

// Reject refuses a request, or a response before Establish. reason 0 means 28, consumer reject; in the UDP
// port space the status is "rejected", or "no QP" for reasons 1 and 3. At most mad.REJPrivateData (148)
// bytes of private data are allowed, mad.SIDRREPPrivateData (136) in the UDP port space.
func (e *Engine) Reject(now clock.Time, id ID, reason mad.RejectReason, private []byte) error {
	c, err := e.find(id)
	if err != nil {
		return err
	}
	limit, name := mad.REJPrivateData, "REJ"
	if c.space == command.UDP {
		limit, name = mad.SIDRREPPrivateData, "SIDR_REP"
	}
	if err := checkPrivate(private, name, limit); err != nil {
		return err
	}
	if reason == 0 {
		reason = mad.RejectConsumer
	}
	switch c.state {
	case stateReqReceived, stateSidrReceived, stateRepReceived, stateRepSent:
		e.decline(now, c, reason, private)
		return nil
	}
	return &stateError{"Reject", c.state.String()}
}

// decline refuses a request or a response, or withdraws this side's own consent.
func (e *Engine) decline(now clock.Time, c *conn, reason mad.RejectReason, private []byte) {
	if c.state == stateReqReceived || c.state == stateSidrReceived {
		e.claim(c)
		e.refuse(now, c, reason, private)
		return
	}
	of := uint8(mad.REJOfREP)
	if !c.active {
		of = mad.REJOfOther
	}
	e.reply(c.route(), c.rej(of, reason, nil, private))
	e.counters.FailedAttempts++
	e.timewait(now, c)
}

// refuse answers a request with a refusal, and keeps the answer for duplicates.
func (e *Engine) refuse(now clock.Time, c *conn, reason mad.RejectReason, private []byte) {
	if c.space == command.UDP {
		status := mad.SIDRRejected
		if reason == mad.RejectNoQP || reason == mad.RejectNoResources {
			status = mad.SIDRNoQP
		}
		e.keep(c, c.sidrRep(status, 0, 0, private))
	} else {
		e.counters.FailedAttempts++
		e.keep(c, c.rej(mad.REJOfREQ, reason, nil, private))
	}
	e.enqueue(c)
	e.linger(now, c)
}

// linger keeps the last message of c for duplicates of what it answers, for as long as the peer may repeat
// it.
func (e *Engine) linger(now clock.Time, c *conn) {
	e.forgetQPN(c)
	c.retryAt = clock.Never
	c.expires = now.Add(e.cfg.lingerTime(c))
	e.set(c)
	e.enter(c, stateLinger)
	if e.lingering > e.cfg.MaxHalfOpen { // better one answer too few than unlimited growth
		e.send(c.route(), c.message)
		e.finish(c)
	}
}

func (cfg *Config) lingerTime(c *conn) time.Duration {
	return min(c.interval*time.Duration(c.maxRetries+1), DefaultConnectTimeout)
}

// receiveMRA handles the peer's request for more time.
func (e *Engine) receiveMRA(now clock.Time, m *mad.MRA, from Peer) {
	c := e.named(m.RemoteCommID, 0, from)
	if c == nil {
		e.counters.Unknown++
		return
	}
	waiting := c.state == stateReqSent && m.Message == mad.MRAForREQ || c.state == stateRepSent && m.Message == mad.MRAForREP
	if !waiting || c.remoteID != 0 && c.remoteID != m.LocalCommID {
		e.counters.Unexpected++
		return
	}
	c.askedAt = now.Add(min(ib.CMTimeout(m.ServiceTimeout), maxService))
	c.retryAt = c.askedAt.Add(c.interval)
	e.set(c)
}

// receiveRTU handles the message that the active side is ready.
func (e *Engine) receiveRTU(m *mad.RTU, from Peer) {
	c := e.named(m.RemoteCommID, m.LocalCommID, from)
	switch {
	case c == nil:
		e.counters.Unknown++
	case c.active:
		e.counters.Unexpected++
	case c.state == stateRepSent:
		e.establish(c, m.PrivateData[:])
	case c.state == stateEstablished:
		e.counters.Duplicates++
	default:
		e.counters.Unexpected++
	}
}

// Established says that the peer's first packet arrived on the QP of id, which is equivalent to RTU (IBA
// 12.9.7.2, the Communication Established event). It does nothing if that is already known.
func (e *Engine) Established(_ clock.Time, id ID) error {
	c, err := e.find(id)
	if err != nil {
		return err
	}
	if c.state == stateRepSent {
		e.establish(c, nil)
	}
	return nil
}
