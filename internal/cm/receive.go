package cm

import (
	"encoding/binary"
	"errors"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Receive handles a MAD of 256 bytes that arrived on QP1. It does not retain b.
func (e *Engine) Receive(now clock.Time, b []byte, from Peer) {
	e.counters.Received++
	from.Local, from.Remote = bare(from.Local), bare(from.Remote)
	if from.QPN != uint32(ib.QPGSI) || !from.Remote.IsValid() || from.Remote.IsMulticast() || from.Remote.IsUnspecified() {
		e.counters.Malformed++
		return
	}
	m, err := mad.DecodeCM(b)
	if err != nil {
		e.counters.Malformed++
		e.refuseVersion(b, from, err)
		return
	}
	switch m := m.(type) {
	case *mad.REQ:
		e.receiveREQ(now, m, from)
	case *mad.MRA:
		e.receiveMRA(now, m, from)
	case *mad.REJ:
		e.receiveREJ(now, m, from)
	case *mad.REP:
		e.receiveREP(now, m, from)
	case *mad.RTU:
		e.receiveRTU(m, from)
	case *mad.DREQ:
		e.receiveDREQ(now, m, from)
	case *mad.DREP:
		e.receiveDREP(now, m, from)
	case *mad.SIDRREQ:
		e.receiveSIDRREQ(now, m, from)
	case *mad.SIDRREP:
		e.receiveSIDRREP(m, from)
	case *mad.LAP:
		e.receiveLAP(m, from)
	default: // APR: this side never sends LAP
		e.counters.Unexpected++
	}
}

// Expects reports whether a message names an id of this side, as all do but requests.
func (e *Engine) Expects(b []byte) bool {
	h, err := mad.ParseHeader(b)
	if err != nil || h.Class != mad.ClassCM || h.AttributeID == mad.AttrREQ || h.AttributeID == mad.AttrSIDRREQ {
		return false
	}
	at := ourIDAt
	if h.AttributeID == mad.AttrSIDRREP {
		at = requestIDAt
	}
	return e.ids.Get(binary.BigEndian.Uint32(b[at:])) != nil
}

// Where a message has the receiver's communication ID, and the answer to a SIDR_REQ the ID of the request (IBA 12.6).
const (
	requestIDAt = 24
	ourIDAt     = 28
)

// named returns the connection to which a peer's message refers by this side's ID and, if not 0, its own.
// The peer's address must match the connection's.
func (e *Engine) named(ours, theirs uint32, from Peer) *conn {
	c := e.ids.Get(ours)
	if c == nil || c.state == stateIdle || c.state == stateListen || c.at.Remote != from.Remote {
		return nil
	}
	if theirs != 0 && c.remoteID != 0 && theirs != c.remoteID {
		return nil
	}
	return c
}

// receiveLAP refuses a proposal of another path: alternate paths are not supported.
func (e *Engine) receiveLAP(m *mad.LAP, from Peer) {
	status := mad.APRUnsupported
	if c := e.named(m.RemoteCommID, m.LocalCommID, from); c == nil || c.state != stateEstablished {
		e.counters.Unknown++
		status = mad.APRInvalidCommID
	}
	e.reply(from, &mad.APR{TransactionID: m.TransactionID, LocalCommID: m.RemoteCommID, RemoteCommID: m.LocalCommID, Status: status})
}

// refuseVersion answers requests of another version of the class, which a newer peer may send; only the
// position of the sender's ID in them is certain.
func (e *Engine) refuseVersion(b []byte, from Peer, err error) {
	var bad *mad.Error
	if !errors.As(err, &bad) || bad.Field != "class version" {
		return
	}
	h, _ := mad.ParseHeader(b)
	if h.Method != mad.MethodSend {
		return
	}
	id := uint32(b[24])<<24 | uint32(b[25])<<16 | uint32(b[26])<<8 | uint32(b[27])
	switch h.AttributeID {
	case mad.AttrREQ:
		e.reply(from, &mad.REJ{TransactionID: h.TransactionID, RemoteCommID: id, Message: mad.REJOfREQ,
			Reason:     mad.RejectInvalidClassVersion,
			InfoLength: 1, Info: [mad.REJInfoLen]byte{mad.ClassVersionCM}})
	case mad.AttrSIDRREQ:
		e.reply(from, &mad.SIDRREP{TransactionID: h.TransactionID, RequestID: id, Status: mad.SIDRUnsupportedVersion})
	}
}
