package administration

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Bounds of what others can make the administration keep.
const (
	maxTable     = 64 << 20 // bytes of an answer
	maxTransfers = 512      // answers of several packets under way
	maxTransfer  = 256 << 20
	maxRequests  = 64      // requests of several packets under way
	maxRequest   = 1 << 16 // bytes of one
	maxServices  = 16384
	maxSubs      = 16384
)

// peer is who has a request under way.
type peer struct {
	lid ib.LID
	qpn ib.QPN
	tid uint64
}

// client is who asks.
type client struct {
	lid ib.LID
	qpn ib.QPN
}

// habits is what is known of a client. ibsim's own library does not take part in multi-packet transfers: it takes the first
// segment and never acknowledges one.
type habits struct {
	acks  bool // it has acknowledged something
	asked int  // requests
	open  int  // transfers to it
}

const (
	maxClients    = 1 << 16
	maxUnanswered = 64 // transfers to a client that never acknowledged one
)

type transfer struct {
	s    *mad.RMPPSender
	to   Address
	size int
	nth  int // request of its client
}

type incoming struct {
	r     mad.RMPPReceiver
	since clock.Time
	size  int
}

// since is the time as the engines of wire/mad want it: above zero.
func (a *SA) since() time.Duration { return time.Duration(a.now) + 1 }

// assemble takes a segment of a request.
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
	a.forget(key) // it was asked again, or by somebody new with an old number
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
			a.forget(key) // it goes on without: it will not acknowledge
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

// Failed tells that a MAD that was sent to p cannot be delivered.
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
