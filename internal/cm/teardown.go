package cm

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Disconnect ends a connection: DREQ is repeated until the peer answers or [releaseTimeout] has passed,
// and EventDisconnected follows. It does nothing if the connection is already ending or over. Before RTU
// it rejects the connection instead. At most mad.DREQPrivateData (220) bytes of private data are allowed.
func (e *Engine) Disconnect(now clock.Time, id ID, private []byte) error {
	c, err := e.find(id)
	if err != nil {
		return err
	}
	if err := checkPrivate(private, "DREQ", mad.DREQPrivateData); err != nil {
		return err
	}
	switch c.state {
	case stateEstablished:
		e.requestRelease(now, c, private)
	case stateRepSent, stateRepReceived:
		e.abandon(now, c)
	case stateDreqSent, stateTimewait, stateDone:
	default:
		return &stateError{"Disconnect", c.state.String()}
	}
	return nil
}

// Fail ends a connection whose QP went to error by itself: EventDisconnected is raised at once, and the
// peer gets a DREQ.
func (e *Engine) Fail(now clock.Time, id ID) error {
	c, err := e.find(id)
	if err != nil {
		return err
	}
	switch c.state {
	case stateEstablished:
		e.counters.ConnectionErrors++
		e.requestRelease(now, c, nil)
		e.tell(c, Event{})
	case stateRepSent, stateRepReceived:
		e.abandon(now, c)
	case stateDreqSent, stateTimewait, stateDone:
	default:
		return &stateError{"Fail", c.state.String()}
	}
	return nil
}

// abandon ends a connection that both sides have agreed to but that is not yet established.
func (e *Engine) abandon(now clock.Time, c *conn) {
	e.reject(c, mad.REJOfOther, mad.RejectConsumer, nil)
	e.counters.FailedAttempts++
	e.tell(c, Event{Reason: mad.RejectConsumer})
	e.timewait(now, c)
}

// firstPace is the time given to the first DREQ; each further one gets twice as long, up to the peer's
// response timeout. An answer usually takes no longer than a round trip, and a lost one is only repeated
// as long as the peer remembers: Linux (6.1, drivers/infiniband/core/cm.c) answers during its time-wait, a
// quarter of a second to two seconds, and then is silent until its program destroys the id, while the
// response timeout that it announces is 4.3 s.
const firstPace = 67 * time.Millisecond

// requestRelease sends DREQ.
func (e *Engine) requestRelease(now clock.Time, c *conn, private []byte) {
	c.tid = e.transaction()
	m := &mad.DREQ{TransactionID: c.tid, LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, RemoteQPN: ib.QPN(c.attr.RemoteQPN)}
	copy(m.PrivateData[:], private)
	e.keep(c, m)
	e.part(now, c)
}

// part sends the DREQ that c has.
func (e *Engine) part(now clock.Time, c *conn) {
	c.maxRetries = e.cfg.MaxRetries
	e.enter(c, stateDreqSent)
	e.repeat(now, c)
	c.pace = min(firstPace, c.interval)
	c.retryAt, c.expires = now.Add(c.pace), now.Add(releaseTimeout)
	e.set(c)
}

// Inherit takes over what another engine of the same adapter, which is given up, still has to tell its peers: the ends of connections
// that they have not confirmed. A peer that never hears of one waits for ever if it has nothing to send. The engine must be new.
func (e *Engine) Inherit(now clock.Time, from *Engine) {
	for id, old := range from.ids.All() {
		if old.state != stateDreqSent || old.message == nil {
			continue
		}
		message := *old.message
		c := &conn{
			id: old.id, space: old.space, destroyed: true, told: true, active: old.active, remoteID: old.remoteID,
			remoteGUID: old.remoteGUID, tid: old.tid, local: old.local, remote: old.remote, attr: old.attr, at: old.at,
			message: &message, interval: old.interval, retryAt: clock.Never, expires: clock.Never,
		}
		e.ids.Put(id, c)
		e.part(now, c)
	}
}

// tell raises EventDisconnected, once.
func (e *Engine) tell(c *conn, v Event) {
	if c.told {
		return
	}
	c.told = true
	v.Type, v.Timewait = EventDisconnected, c.timewaitTime()
	e.event(c, v)
}

// disconnected ends a connection when both sides know that it is over.
func (e *Engine) disconnected(now clock.Time, c *conn, private []byte) {
	e.tell(c, Event{Private: private})
	e.timewait(now, c)
}

// timewait keeps the QP number out of use until packets in flight have arrived.
func (e *Engine) timewait(now clock.Time, c *conn) {
	e.quiet(c)
	e.forgetQPN(c)
	c.rtu = nil
	c.expires = now.Add(c.timewaitTime())
	e.set(c)
	e.enter(c, stateTimewait)
}

// timewaitTime returns the local ACK timeout: twice the packet lifetime plus the ACK delay (IBA 12.9.8.4).
func (c *conn) timewaitTime() time.Duration {
	return min(ib.CMTimeout(c.attr.AckTimeout), maxTimewait)
}

// receiveDREQ handles the peer's request to disconnect. It is always answered, even for connections
// forgotten long ago, so that the peer stops asking.
func (e *Engine) receiveDREQ(now clock.Time, m *mad.DREQ, from Peer) {
	c := e.named(m.RemoteCommID, m.LocalCommID, from)
	if c != nil && c.attr.LocalQPN != uint32(m.RemoteQPN) {
		e.counters.Malformed++
		return
	}
	answer := &mad.DREP{TransactionID: m.TransactionID, LocalCommID: m.RemoteCommID, RemoteCommID: m.LocalCommID}
	if c == nil || c.space == command.UDP {
		e.counters.Unknown++
		e.reply(from, answer)
		return
	}
	switch c.state {
	case stateRepSent: // RTU was lost: only an established peer sends DREQ
		e.establish(c, nil)
		e.reply(from, answer)
		e.disconnected(now, c, m.PrivateData[:])
	case stateRepReceived: // the peer sent data before our program was done
		e.counters.FailedAttempts++
		e.reply(from, answer)
		e.disconnected(now, c, m.PrivateData[:])
	case stateEstablished, stateDreqSent:
		e.reply(from, answer)
		e.disconnected(now, c, m.PrivateData[:])
	case stateTimewait, stateDone:
		e.counters.Duplicates++
		e.reply(from, answer)
	default:
		e.counters.Unexpected++
	}
}

// receiveDREP handles the peer's answer to DREQ.
func (e *Engine) receiveDREP(now clock.Time, m *mad.DREP, from Peer) {
	c := e.named(m.RemoteCommID, m.LocalCommID, from)
	switch {
	case c == nil:
		e.counters.Unknown++
	case c.state != stateDreqSent || m.TransactionID != c.tid:
		e.counters.Unexpected++
	default:
		e.disconnected(now, c, m.PrivateData[:])
	}
}

// receiveREJ handles the peer's refusal.
func (e *Engine) receiveREJ(now clock.Time, m *mad.REJ, from Peer) {
	c := e.rejected(m, from)
	if c == nil {
		e.counters.Unknown++
		return
	}
	v := Event{Type: EventRejected, Reason: m.Reason, Rejection: m.Info[:m.InfoLength], Private: m.PrivateData[:]}
	switch c.state {
	case stateReqSent:
		if m.TransactionID != c.tid {
			e.counters.Unexpected++
			return
		}
		if e.lowerMTU(now, c, m) {
			return
		}
		e.counters.FailedAttempts++
		e.event(c, v)
		e.finish(c)
	case stateReqReceived:
		e.failRequest(c, m.Reason)
	case stateRepSent, stateRepReceived:
		e.counters.FailedAttempts++
		e.event(c, v)
		e.timewait(now, c)
	case stateEstablished: // the peer never saw our RTU, or gave up
		e.counters.ConnectionErrors++
		e.tell(c, Event{Reason: m.Reason})
		e.timewait(now, c)
	case stateDreqSent:
		e.disconnected(now, c, nil)
	default:
		e.counters.Unexpected++
	}
}

// rejected returns the connection that a REJ refers to. One for a timeout may come from a peer that never
// learnt our ID: its GUID is in the additional information.
func (e *Engine) rejected(m *mad.REJ, from Peer) *conn {
	if m.RemoteCommID != 0 {
		c := e.named(m.RemoteCommID, 0, from)
		if c == nil || c.remoteID != 0 && m.LocalCommID != 0 && m.LocalCommID != c.remoteID {
			return nil
		}
		return c
	}
	if m.Reason != mad.RejectTimeout || m.InfoLength < 8 {
		return nil
	}
	var guid uint64
	for _, b := range m.Info[:8] {
		guid = guid<<8 | uint64(b)
	}
	return e.peers[peerKey{addr: from.Remote, guid: guid, id: m.LocalCommID}]
}

// lowerMTU repeats the request with the path MTU that the peer supports (contained in REJ 26), once.
func (e *Engine) lowerMTU(now clock.Time, c *conn, m *mad.REJ) bool {
	if m.Reason != mad.RejectInvalidMTU || c.lowerMTU || m.InfoLength < 1 {
		return false
	}
	mtu := ib.MTU(m.Info[0])
	if !mtu.Valid() || mtu >= c.attr.MTU {
		return false
	}
	req, err := mad.ParseREQ(c.message[:])
	if err != nil {
		return false
	}
	c.lowerMTU, c.attr.MTU, c.tid = true, mtu, e.transaction()
	req.PathMTU, req.TransactionID = mtu, c.tid
	e.ask(now, c, &req)
	return true
}

// failRequest ends a request that was not answered.
func (e *Engine) failRequest(c *conn, reason mad.RejectReason) {
	if c.space != command.UDP {
		e.counters.FailedAttempts++
	}
	e.event(c, Event{Type: EventConnectError, Reason: reason})
	e.finish(c)
}

// stale ends a connection that its peer has forgotten (IBA 12.9.8.3.1).
func (e *Engine) stale(now clock.Time, c *conn) {
	switch c.state {
	case stateEstablished:
		e.counters.ConnectionErrors++
		e.requestRelease(now, c, nil)
		e.tell(c, Event{Reason: mad.RejectStaleConnection})
	case stateReqReceived:
		e.failRequest(c, mad.RejectStaleConnection)
	case stateRepSent, stateRepReceived:
		e.counters.FailedAttempts++
		e.event(c, Event{Type: EventConnectError, Reason: mad.RejectStaleConnection})
		e.timewait(now, c)
	}
}
