package cm

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

func addrPort(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }

// route returns the destination of c's messages.
func (c *conn) route() Peer { return c.at }

// path returns the destination of an active side's messages. port is that whose rules they follow on Ethernet.
func (a *Attributes) path(port uint16) Peer {
	p := Peer{Local: a.LocalGID, Remote: a.RemoteGID, QPN: uint32(ib.QPGSI)}
	if a.RemoteLID == 0 {
		p.Marks = Marks{a.SL, a.TrafficClass, port}
	} else {
		p.Local, p.Remote, p.SL, p.PKey = frame.LIDAddr(a.LocalLID), frame.LIDAddr(a.RemoteLID), a.SL, a.PKey
	}
	if a.Global {
		p.Global = Global{ib.GIDFromAddr(a.LocalGID), ib.GIDFromAddr(a.RemoteGID), a.TrafficClass, a.FlowLabel}
	}
	return p
}

func serviceID(c *conn) uint64 {
	return mad.ServiceID(mad.PortSpace(c.space), c.remote.Port())
}

// ipHeader returns the RDMA IP CM header of a request.
func ipHeader(c *conn) mad.IPHeader {
	return mad.IPHeader{Source: c.local, Destination: c.remote.Addr()}
}

func (e *Engine) req(c *conn, p *Connect) *mad.REQ {
	a := &c.attr
	m := &e.scratch.req
	*m = mad.REQ{
		TransactionID: c.tid, LocalCommID: uint32(c.id), ServiceID: serviceID(c), LocalCAGUID: e.cfg.GUID,
		LocalQPN: ib.QPN(a.LocalQPN), ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		RemoteCMResponseTimeout: e.cfg.ResponseTimeout, LocalCMResponseTimeout: e.cfg.ResponseTimeout,
		FlowControl: c.flow, StartingPSN: a.RQPSN, RetryCount: p.RetryCount, RNRRetryCount: p.RNRRetry,
		PKey: a.PKey, PathMTU: a.MTU, MaxCMRetries: e.cfg.MaxRetries, SRQ: p.SRQ,
		Primary: mad.Path{
			LocalLID: permissiveLID, RemoteLID: permissiveLID, PacketRate: p.Path.Rate,
			LocalGID: ib.GIDFromAddr(a.LocalGID), RemoteGID: ib.GIDFromAddr(a.RemoteGID),
			FlowLabel: a.FlowLabel, TrafficClass: a.TrafficClass, HopLimit: a.HopLimit, SL: a.SL, AckTimeout: a.AckTimeout,
		},
	}
	if a.RemoteLID != 0 { // IBA 12.7.11, 12.7.16: inside the subnet only the LIDs matter
		m.Primary.LocalLID, m.Primary.RemoteLID, m.Primary.SubnetLocal = a.LocalLID, a.RemoteLID, !a.Global
	}
	switch a.Type {
	case command.UC:
		m.TransportType = mad.TransportUC
	case command.XRCInitiator: // what is said of the responder's side does not apply: no peer sends to an initiator
		m.TransportType, m.ExtendedType = mad.TransportExtended, mad.ExtendedXRC
		m.ResponderResources, m.RetryCount, m.RNRRetryCount, m.SRQ = 0, 0, 0, false
	}
	copy(ipHeader(c).Append(m.PrivateData[:0])[mad.IPHeaderLen:mad.REQPrivateData], p.Private)
	return m
}

// accepting returns the type of the QP that a request asks for; 0 for a transport that there is not, or not in this port
// space.
func accepting(m *mad.REQ, space command.PortSpace) command.QPType {
	switch {
	case m.TransportType == mad.TransportRC:
		return command.RC
	case m.TransportType == mad.TransportUC:
		return command.UC
	case m.TransportType == mad.TransportExtended && m.ExtendedType == mad.ExtendedXRC && space == command.IB:
		return command.XRCTarget
	}
	return 0
}

// qpnIn returns the number of the peer's QP in its answer: that of a target is where the number of an end-to-end context
// would be (IBA annex A14).
func (c *conn) qpnIn(m *mad.REP) uint32 {
	if c.attr.Type == command.XRCInitiator {
		return m.LocalEECN
	}
	return uint32(m.LocalQPN)
}

func (e *Engine) rep(c *conn, p *Accept) *mad.REP {
	m := &e.scratch.rep
	*m = mad.REP{
		TransactionID: c.tid, LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, LocalQPN: ib.QPN(c.attr.LocalQPN),
		StartingPSN: c.attr.RQPSN, ResponderResources: c.attr.ResponderResources, InitiatorDepth: c.attr.InitiatorDepth,
		TargetAckDelay: e.cfg.AckDelay, FlowControl: c.flow, RNRRetryCount: p.RNRRetry, SRQ: p.SRQ, LocalCAGUID: e.cfg.GUID,
	}
	if c.attr.Type == command.XRCTarget {
		m.LocalQPN, m.LocalEECN, m.SRQ, m.InitiatorDepth = 0, c.attr.LocalQPN, true, 0
	}
	if c.failover {
		m.Failover = mad.FailoverUnsupported
	}
	copy(m.PrivateData[:], p.Private)
	return m
}

func (e *Engine) readyToUse(c *conn) *mad.RTU {
	m := &e.scratch.rtu
	*m = mad.RTU{TransactionID: c.tid, LocalCommID: uint32(c.id), RemoteCommID: c.remoteID}
	if c.rtu != nil {
		m.PrivateData = *c.rtu
	}
	return m
}

func (c *conn) mra(of uint8) *mad.MRA {
	return &mad.MRA{TransactionID: c.tid, LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, Message: of, ServiceTimeout: mraTimeout}
}

func (c *conn) rej(of uint8, reason mad.RejectReason, info, private []byte) *mad.REJ {
	m := &mad.REJ{TransactionID: c.tid, LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, Message: of, Reason: reason}
	m.InfoLength = uint8(copy(m.Info[:], info))
	copy(m.PrivateData[:], private)
	return m
}

// reject sends a REJ for a message of the connection's peer.
func (e *Engine) reject(c *conn, of uint8, reason mad.RejectReason, info []byte) {
	e.reply(c.route(), c.rej(of, reason, info, nil))
}

// refuseREQ refuses a REQ for which no connection was created. Like Linux it sends no communication ID of
// its own.
func (e *Engine) refuseREQ(m *mad.REQ, from Peer, reason mad.RejectReason, info []byte) {
	e.counters.FailedAttempts++
	r := &mad.REJ{TransactionID: m.TransactionID, RemoteCommID: m.LocalCommID, Message: mad.REJOfREQ, Reason: reason}
	r.InfoLength = uint8(copy(r.Info[:], info))
	e.reply(from, r)
}

func (e *Engine) sidrReq(c *conn, private []byte) *mad.SIDRREQ {
	m := &mad.SIDRREQ{TransactionID: c.tid, RequestID: uint32(c.id), PKey: c.attr.PKey, ServiceID: serviceID(c)}
	copy(ipHeader(c).Append(m.PrivateData[:0])[mad.IPHeaderLen:mad.SIDRREQPrivateData], private)
	return m
}

// sidrRep builds the answer to the request for which c was created.
func (c *conn) sidrRep(status mad.SIDRStatus, qpn, qkey uint32, private []byte) *mad.SIDRREP {
	m := &mad.SIDRREP{TransactionID: c.tid, RequestID: c.remoteID, Status: status, QPN: ib.QPN(qpn), QKey: qkey,
		ServiceID: mad.ServiceID(mad.PortSpace(c.space), c.local.Port())}
	copy(m.PrivateData[:], private)
	return m
}
