package ibsim

import (
	"encoding/binary"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// patience is how long a client waits for the answer of another.
const patience = 2 * time.Second

// maxExchanges limits the requests in progress: their number occupies 16 bits of the transaction ID.
const maxExchanges = 1 << 15

// exchange is a request of one client to another, in progress.
type exchange struct {
	number   uint16
	from, to *client
	tid      uint64 // as chosen by the requester
	until    clock.Time
	begun    bool // a part of the answer has arrived
	request  [dataLen]byte
}

// shown returns the transaction ID that the responder sees. Its upper 16 bits identify the exchange, so
// that requests of several clients are never the same.
func (x *exchange) shown() uint64 { return x.tid&(1<<48-1) | uint64(x.number)<<48 }

type exchangeKey struct {
	who *client
	tid uint64
}

// exchanges are found by the transaction ID that either side uses.
type exchanges struct {
	next     uint16
	byNumber map[uint16]*exchange
	byKey    map[exchangeKey]*exchange
}

func newExchanges() exchanges {
	return exchanges{byNumber: map[uint16]*exchange{}, byKey: map[exchangeKey]*exchange{}}
}

// ask begins an exchange, or continues the one that this is a further part of; nil: there are too many.
func (e *exchanges) ask(now clock.Time, from, to *client, b *[dataLen]byte) *exchange {
	tid := binary.BigEndian.Uint64(b[atTransaction:])
	if x := e.byKey[exchangeKey{from, tid}]; x != nil && x.from == from {
		if x.to == to {
			x.until = now.Add(patience)
			return x
		}
		e.end(x)
	}
	if len(e.byNumber) >= maxExchanges {
		return nil
	}
	for e.next++; e.next == 0 || e.byNumber[e.next] != nil; e.next++ {
	}
	x := &exchange{number: e.next, from: from, to: to, tid: tid, until: now.Add(patience), request: *b}
	e.byNumber[x.number] = x
	e.byKey[exchangeKey{from, tid}] = x
	e.byKey[exchangeKey{to, x.shown()}] = x
	return x
}

// of returns the exchange that the client knows by a transaction ID.
func (e *exchanges) of(c *client, tid uint64) *exchange { return e.byKey[exchangeKey{c, tid}] }

func (e *exchanges) end(x *exchange) {
	delete(e.byNumber, x.number)
	delete(e.byKey, exchangeKey{x.from, x.tid})
	delete(e.byKey, exchangeKey{x.to, x.shown()})
}

// expire ends the exchanges that have timed out.
func (e *exchanges) expire(now clock.Time, ended func(*exchange)) {
	for _, x := range e.byNumber {
		if !now.Before(x.until) {
			e.end(x)
			ended(x)
		}
	}
}

// leave ends the exchanges of a client that is gone.
func (e *exchanges) leave(c *client, ended func(*exchange)) {
	for _, x := range e.byNumber {
		if x.from == c || x.to == c {
			e.end(x)
			ended(x)
		}
	}
}
