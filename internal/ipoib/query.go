package ipoib

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// query is a request to the subnet administration that waits for its answer.
type query struct {
	sa    mad.SA
	again clock.Time
	left  int // retransmissions left
	// answered is called with the answer, or with nil if there was none after all retransmissions.
	answered func(now clock.Time, answer *mad.SA)
}

// attribute is the record of a request.
type attribute interface{ Append(b []byte) []byte }

// maxLeaves is how many requests may be in progress for a group's leave still to be retransmitted.
const maxLeaves = 4096

// ask sends a request and returns its number.
func (i *Interface) ask(now clock.Time, method uint8, id uint16, components uint64, record attribute,
	answered func(clock.Time, *mad.SA)) uint64 {
	if i.tid++; i.tid == 0 {
		i.tid++ // 0 means no request
	}
	q := &query{sa: mad.NewSA(method, id, 0, i.tid), left: i.cfg.SARetries, answered: answered}
	q.sa.ComponentMask = components
	record.Append(q.sa.Data[:0])
	i.queries[i.tid] = q
	i.counters.Requests++
	i.transmit(now, q)
	return i.tid
}

func (i *Interface) transmit(now clock.Time, q *query) {
	q.again = now.Add(i.cfg.SATimeout)
	i.arm(q.again)
	i.request(&q.sa)
}

func (i *Interface) request(sa *mad.SA) {
	r := Request{LID: i.port.SMLID, SL: i.port.SMSL, Transaction: sa.TransactionID}
	sa.Append(r.MAD[:0])
	i.do(r)
}

// Response handles a MAD that may answer a Request. Others are ignored.
func (i *Interface) Response(now clock.Time, b []byte) {
	m, err := mad.ParseSA(b)
	if err != nil || m.Method&0x80 == 0 {
		return
	}
	q := i.queries[m.TransactionID]
	if q == nil || q.sa.AttributeID != m.AttributeID {
		return
	}
	if m.Status&mad.StatusBusy != 0 {
		return // it will be retransmitted after the timeout
	}
	delete(i.queries, m.TransactionID)
	q.answered(now, &m)
}

func (i *Interface) advanceQueries(now clock.Time) {
	var due []uint64
	for id, q := range i.queries {
		if q.again <= now {
			due = append(due, id)
		} else {
			i.arm(q.again)
		}
	}
	slices.Sort(due)
	for _, id := range due {
		q := i.queries[id]
		switch {
		case q == nil: // cancelled when an earlier one ended
		case q.left > 0:
			q.left--
			i.counters.Repeated++
			i.transmit(now, q)
		default:
			delete(i.queries, id)
			i.counters.Unanswered++
			q.answered(now, nil)
		}
	}
}

// cancelQueries drops all requests.
func (i *Interface) cancelQueries() { clear(i.queries) }

// askPath requests the path record for a GID.
func (i *Interface) askPath(now clock.Time, to ib.GID, answered func(now clock.Time, p *mad.PathRecord)) uint64 {
	r := mad.PathRecord{DGID: to, SGID: i.port.GID, Reversible: true, NumPath: 1, PKey: i.pkey}
	const components = mad.PathDGID | mad.PathSGID | mad.PathReversible | mad.PathNumPath | mad.PathPKey
	return i.ask(now, mad.MethodGet, mad.AttrPathRecord, components, &r, func(now clock.Time, m *mad.SA) {
		if m == nil || m.Status != mad.StatusOK {
			answered(now, nil)
			return
		}
		p, err := mad.ParsePathRecord(m.Data[:])
		if err != nil || p.DGID != to || p.DLID == 0 {
			answered(now, nil)
			return
		}
		answered(now, &p)
	})
}
