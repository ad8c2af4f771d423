package cm

import (
	"bytes"
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Connect sends a REQ, or a SIDR_REQ in the UDP port space, and repeats it until it is answered, the
// retries are used up or the time is over. An id that was not bound gets an ephemeral port at p.Local.
func (e *Engine) Connect(now clock.Time, id ID, p Connect) error {
	c, err := e.in("Connect", id, stateIdle)
	if err != nil {
		return err
	}
	if err := p.check(c.space); err != nil {
		return err
	}
	local := bare(p.Local)
	if c.binding != nil && !c.binding.local.Addr().IsUnspecified() && c.binding.local.Addr().IsValid() {
		local = c.binding.local.Addr()
	}
	if !local.IsValid() || local.IsUnspecified() {
		return fieldError("Local", p.Local, "an address of the adapter, where none was bound")
	}
	remote := barePort(p.Remote)
	if local.Is4() != remote.Addr().Is4() {
		return fieldError("Remote", p.Remote, "of the same family as the local address "+local.String())
	}
	if c.binding == nil {
		c.binding, err = e.ports.bind(c.space, netip.AddrPortFrom(local, 0), remote, c.bind, e.cfg.Rand())
		if err != nil {
			return err
		}
	}
	c.active = true
	c.local, c.remote = netip.AddrPortFrom(local, c.binding.local.Port()), remote
	c.attr = e.proposal(c, &p)
	c.at = c.attr.path(p.RulePort)
	c.maxRetries, c.interval = e.cfg.MaxRetries, interval(e.cfg.ResponseTimeout, e.lifetime(&p))
	c.tid = e.transaction()
	timeout := p.Timeout
	if timeout == 0 {
		timeout = DefaultConnectTimeout
	}
	c.expires = now.Add(timeout)
	if c.space == command.UDP {
		e.enter(c, stateSidrSent)
		e.ask(now, c, e.sidrReq(c, p.Private))
		return nil
	}
	c.flow = !e.cfg.DisableFlowControl && !p.NoFlowControl && !p.SRQ && !c.attr.Type.XRC()
	e.enter(c, stateReqSent)
	e.ask(now, c, e.req(c, &p))
	return nil
}

func (p *Connect) check(space command.PortSpace) error {
	limit, name := mad.REQConsumerData, "REQ"
	if space == command.UDP {
		limit, name = mad.SIDRREQConsumerData, "SIDR_REQ"
	}
	if err := checkPrivate(p.Private, name, limit); err != nil {
		return err
	}
	if space != command.UDP {
		if err := checkQPN(p.QPN); err != nil {
			return err
		}
		if err := checkType(p.qpType(space), space); err != nil {
			return err
		}
	}
	remote := p.Remote.Addr()
	switch {
	case !remote.IsValid() || remote.IsUnspecified() || remote.IsMulticast() || p.Remote.Port() == 0:
		return fieldError("Remote", p.Remote, "a unicast address and a port")
	case p.RetryCount > 7:
		return fieldError("RetryCount", p.RetryCount, "0 to 7")
	case p.RNRRetry > 7:
		return fieldError("RNRRetry", p.RNRRetry, "0 to 7")
	case p.MTU != 0 && !p.MTU.Valid():
		return fieldError("MTU", uint8(p.MTU), "0 or a code from 1 (256) to 5 (4096)")
	case p.AckTimeout > 31:
		return fieldError("AckTimeout", p.AckTimeout, "a code from 0 to 31")
	case p.SL > 7 && p.Path.RemoteLID == 0 || p.SL > 15:
		return fieldError("SL", p.SL, "0 to 7, on InfiniBand 0 to 15")
	case p.Path.Life > 63 || p.Path.Rate > 63:
		return fieldError("Path", p.Path, "a life time and a rate of 6 bits")
	case p.Timeout < 0:
		return fieldError("Timeout", p.Timeout, "0 or more")
	}
	return nil
}

// qpType returns the type of the local QP: RC if nothing else is said.
func (p *Connect) qpType(space command.PortSpace) command.QPType {
	switch {
	case space == command.UDP:
		return command.UD
	case p.Type == 0:
		return command.RC
	}
	return p.Type
}

// checkType checks the type of a QP that asks for a connection. A target only accepts (IBA annex A14).
func checkType(t command.QPType, space command.PortSpace) error {
	switch {
	case t == command.RC || t == command.UC || t == command.XRCInitiator && space == command.IB:
		return nil
	case space == command.IB:
		return fieldError("Type", t, "RC, UC or XRCInitiator")
	}
	return fieldError("Type", t, "RC or UC")
}

func checkQPN(qpn uint32) error {
	if ib.QPN(qpn) <= ib.QPGSI || ib.QPN(qpn) >= ib.QPMulticast {
		return fieldError("QPN", qpn, "2 to 0xfffffe")
	}
	return nil
}

// proposal returns the attributes that this side can set before the peer answers.
func (e *Engine) proposal(c *conn, p *Connect) Attributes {
	a := Attributes{
		LocalQPN: p.QPN, RQPSN: e.psn(), MTU: e.cfg.MTU, PKey: e.cfg.pkey(),
		AckTimeout: p.AckTimeout, RetryCount: p.RetryCount, PeerRNRRetry: p.RNRRetry,
		InitiatorDepth: p.InitiatorDepth, ResponderResources: p.ResponderResources, Type: p.qpType(c.space),
		LocalGID: bare(p.LocalGID), RemoteGID: bare(p.RemoteGID),
		FlowLabel:    flowLabel(c.local.Port(), c.remote.Port()),
		TrafficClass: p.TrafficClass, HopLimit: p.HopLimit, SL: p.SL,
		SrcPort: udpSourcePort(c.local.Port(), c.remote.Port()),
	}
	if p.MTU != 0 {
		a.MTU = min(a.MTU, p.MTU)
	}
	if a.AckTimeout == 0 {
		a.AckTimeout = ackTimeout(e.cfg.AckDelay, e.lifetime(p))
	}
	if w := &p.Path; w.RemoteLID != 0 {
		a.LocalLID, a.RemoteLID, a.Global = w.LocalLID, w.RemoteLID, w.Global
		if w.PKey.Valid() {
			a.PKey = w.PKey
		}
	} else {
		a.HopLimit = frame.Hops(a.HopLimit)
	}
	if !a.LocalGID.IsValid() {
		a.LocalGID = c.local.Addr()
	}
	if !a.RemoteGID.IsValid() {
		a.RemoteGID = c.remote.Addr()
	}
	return a
}

// lifetime returns the packet lifetime code of a path.
func (e *Engine) lifetime(p *Connect) uint8 {
	if p.Path.RemoteLID == 0 {
		return e.cfg.PacketLifetime
	}
	return min(p.Path.Life, maxLifetime)
}

// receiveREP handles the peer's consent.
func (e *Engine) receiveREP(now clock.Time, m *mad.REP, from Peer) {
	c := e.named(m.RemoteCommID, m.LocalCommID, from)
	if c == nil || c.state == stateDone {
		e.counters.Unknown++
		e.reply(from, &mad.REJ{TransactionID: m.TransactionID, LocalCommID: m.RemoteCommID, RemoteCommID: m.LocalCommID,
			Message: mad.REJOfREP, Reason: mad.RejectInvalidCommID})
		return
	}
	if !c.active {
		e.counters.Unexpected++
		return
	}
	switch c.state {
	case stateReqSent:
		e.consent(now, c, m, from)
	case stateRepReceived: // the program has not called Establish yet
		e.counters.Duplicates++
		e.reply(from, c.mra(mad.MRAForREP))
	case stateEstablished: // our RTU was lost
		e.counters.Duplicates++
		e.reply(from, e.readyToUse(c))
	default:
		e.counters.Unexpected++
	}
}

func (e *Engine) consent(now clock.Time, c *conn, m *mad.REP, from Peer) {
	if m.TransactionID != c.tid || m.LocalCommID == 0 || checkQPN(c.qpnIn(m)) != nil {
		e.counters.Malformed++
		return
	}
	key := qpnKey{from.Remote, m.LocalCAGUID, c.qpnIn(m)}
	c.remoteID, c.remoteGUID = m.LocalCommID, m.LocalCAGUID
	if old := e.qpns[key]; old != nil {
		// The peer cannot have two connections on one QP: the old one is stale (IBA 12.9.8.3.1).
		e.reject(c, mad.REJOfREP, mad.RejectStaleConnection, nil)
		e.stale(now, old)
		e.counters.FailedAttempts++
		e.event(c, Event{Type: EventRejected, Reason: mad.RejectStaleConnection})
		e.finish(c)
		return
	}
	a := &c.attr
	a.RemoteQPN, a.SQPSN = c.qpnIn(m), m.StartingPSN
	e.rememberQPN(c)
	a.RNRRetry = m.RNRRetryCount
	a.AckTimeout = max(a.AckTimeout, min(ackTimeout(m.TargetAckDelay, a.AckTimeout-1), maxAckTimeout))
	a.InitiatorDepth = min(a.InitiatorDepth, m.ResponderResources)
	a.ResponderResources = min(a.ResponderResources, m.InitiatorDepth)
	a.RemoteSRQ = m.SRQ
	c.peerFlow = m.FlowControl
	a.FlowControl = c.flow && c.peerFlow
	e.quiet(c)
	c.expires = now.Add(e.cfg.RequestLifetime)
	e.set(c)
	e.enter(c, stateRepReceived)
	e.event(c, Event{Type: EventConnectResponse, Private: m.PrivateData[:]})
}

// Establish sends RTU: the QP is ready. At most mad.RTUPrivateData (224) bytes of private data are
// allowed.
func (e *Engine) Establish(now clock.Time, id ID, private []byte) error {
	c, err := e.in("Establish", id, stateRepReceived)
	if err != nil {
		return err
	}
	if err := checkPrivate(private, "RTU", mad.RTUPrivateData); err != nil {
		return err
	}
	if len(private) > 0 {
		c.rtu = new([mad.RTUPrivateData]byte)
		copy(c.rtu[:], private)
	}
	e.reply(c.route(), e.readyToUse(c))
	e.establish(c, nil)
	return nil
}

// establish moves a connection of either side to the established state.
func (e *Engine) establish(c *conn, private []byte) {
	e.quiet(c)
	e.enter(c, stateEstablished)
	if c.active {
		e.counters.Initiated++
	} else {
		e.counters.Accepted++
	}
	e.event(c, Event{Type: EventEstablished, Private: private})
}

// unanswered ends an active attempt.
func (e *Engine) unanswered(c *conn, why Failure) {
	if c.state == stateReqSent {
		e.counters.FailedAttempts++
		if why == FailureTimeout {
			e.reject(c, mad.REJOfOther, mad.RejectTimeout, e.guid())
		}
	}
	e.event(c, Event{Type: EventUnreachable, Failure: why})
	e.finish(c)
}

// Unreachable reports an ICMP error from a port address, or that there is no route to it. Whatever waits
// for an answer from there fails at once; established connections are left to the transport. quoted is the
// beginning of the message that caused the error, link.QuotedMAD bytes: if it is known, the error concerns
// only that message, so that an error for an earlier connection ends nothing. If it is nil or zeros,
// everything that waits for dst fails.
func (e *Engine) Unreachable(now clock.Time, dst netip.Addr, kind link.UnreachableKind, quoted []byte) {
	why := map[link.UnreachableKind]Failure{link.PortUnreachable: FailureRefused,
		link.HostUnreachable: FailureHost, link.NetworkUnreachable: FailureNetwork}[kind]
	if why == FailureNone {
		return
	}
	dst = bare(dst)
	known := len(quoted) > 0 && quoted[0] != 0
	var hit []*conn
	for _, c := range e.timers { // everything that waits has a timer
		if c.at.Remote == dst && c.message != nil && (!known || bytes.HasPrefix(c.message[:], quoted)) {
			hit = append(hit, c)
		}
	}
	for _, c := range hit {
		switch c.state {
		case stateReqSent, stateSidrSent:
			e.unanswered(c, why)
		case stateRepSent:
			e.counters.FailedAttempts++
			e.event(c, Event{Type: EventUnreachable, Failure: why})
			e.timewait(now, c)
		case stateDreqSent:
			e.disconnected(now, c, nil)
		}
	}
}
