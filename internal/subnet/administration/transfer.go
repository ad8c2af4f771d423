package administration

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Limits on what others can make the administration keep.
const (
	maxTable     = 64 << 20 // bytes of a response
	maxTransfers = 512      // responses of several packets in progress
	maxTransfer  = 256 << 20
	maxRequests  = 64      // requests of several packets in progress
	maxRequest   = 1 << 16 // bytes of one
	maxServices  = 16384
	maxSubs      = 16384
)

// peer identifies a request in progress.
type peer struct {
	lid ib.LID
	qpn ib.QPN
	tid uint64
}

// client identifies a requester.
type client struct {
	lid ib.LID
	qpn ib.QPN
}

// habits is what is known about a client. ibsim's own library does not take part in multi-packet
// transfers: it accepts the first segment and never acknowledges any.
type habits struct {
	acks  bool // it has acknowledged something
	asked int  // number of requests
	open  int  // transfers to it in progress
}

const (
	maxClients    = 1 << 16
	maxUnanswered = 64 // transfers to a client that has never acknowledged one
)

type transfer struct {
	s    *mad.RMPPSender
	to   Address
	size int
	nth  int // number of the request, counted per client
}

type incoming struct {
	r     mad.RMPPReceiver
	since clock.Time
	size  int
}

// since returns the time in the form that wire/mad's engines need: above zero.
func (a *SA) since() time.Duration { return time.Duration(a.now) + 1 }

// assemble handles a segment of a request.
func (a *SA) assemble(key peer, p Address, m *mad.SA) (mad.SA, []byte, bool) {
	in := a.in[key]
	if in == nil {
		if len(a.in) >= maxRequests {
			return mad.SA{}, nil, false
		}
		in = &incoming{since: a.now}
		a.in[key] = in
	}
	in.size += mad.SADataLen
	answer, answered, done, err := in.r.Take(m)
	if answered {
		a.m.Send(p, &answer)
	}
	if err != nil || in.size > maxRequest {
		delete(a.in, key)
		return mad.SA{}, nil, false
	}
	if !done {
		return mad.SA{}, nil, false
	}
	delete(a.in, key)
	head, data := in.r.Result()
	return head, data, true
}

// many begins to send a table.
func (a *SA) many(r *request, table []byte, n, stride int) {
	key := peer{r.from.LID, r.from.QPN, r.sa.TransactionID}
	a.forget(key) // it is a retry, or a new client with an old number
	if len(a.out) >= maxTransfers || a.held+len(table) > maxTransfer {
		a.refuse(r, mad.StatusBusy)
		return
	}
	c := a.client(r.from)
	if !c.acks && c.open >= maxUnanswered {
		a.forgetFirst(client{r.from.LID, r.from.QPN})
	}
	c.open++
	head := r.head(mad.StatusOK)
	if n > 0 {
		head.AttrOffset = mad.AttributeOffset(stride)
	}
	a.out[key] = &transfer{mad.NewRMPPSender(head, table), r.from, len(table), c.asked}
	a.outOrder = append(slices.DeleteFunc(a.outOrder, func(k peer) bool { return k == key }), key)
	a.held += len(table)
	a.pump()
}

// pump sends what transfers have to send, and forgets those that are over.
func (a *SA) pump() {
	now := a.since()
	keep := a.outOrder[:0]
	for _, key := range a.outOrder {
		t := a.out[key]
		if t == nil {
			continue
		}
		if c := a.client(t.to); !c.acks && c.asked > t.nth && now >= t.s.Deadline() && t.s.Deadline() > 0 {
			a.forget(key) // the client has moved on: it will not acknowledge
			continue
		}
		t.s.Advance(now)
		for !a.m.Crowded() {
			var ok bool
			if a.reply, ok = t.s.Next(now); !ok {
				break
			}
			a.m.Send(t.to, &a.reply)
		}
		if over, _ := t.s.Done(); over {
			a.forget(key)
			continue
		}
		keep = append(keep, key)
	}
	a.outOrder = keep
}

// Failed says that a MAD sent to p cannot be delivered.
func (a *SA) Failed(p Address, b []byte) {
	m, err := mad.ParseSA(b)
	if err != nil {
		return
	}
	key := peer{p.LID, p.QPN, m.TransactionID}
	a.forget(key)
}

// forget ends a transfer.
func (a *SA) forget(key peer) {
	if t := a.out[key]; t != nil {
		a.held -= t.size
		a.client(t.to).open--
		delete(a.out, key)
	}
}

// forgetFirst ends the oldest transfer to a client.
func (a *SA) forgetFirst(c client) {
	for _, key := range a.outOrder {
		if key.lid == c.lid && key.qpn == c.qpn && a.out[key] != nil {
			a.forget(key)
			return
		}
	}
}
