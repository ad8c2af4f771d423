package ibsim

import (
	"encoding/binary"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
)

// patience is how long one client waits for the answer of another.
const patience = 2 * time.Second

// maxExchanges bounds the requests that wait: the number stands in 16 bits of the transaction ID.
const maxExchanges = 1 << 15

// exchange is a request of one client to another, under way.
type exchange struct {
	number   uint16
	from, to *client
	tid      uint64 // as whoever asked has it
	until    clock.Time
	begun    bool // a part of the answer has come
	request  [dataLen]byte
}

// shown is the transaction ID that the one asked sees. Its upper 16 bits tell the exchange, so
// that requests of several clients are never the same.
func (x *exchange) shown() uint64 { return x.tid&(1<<48-1) | uint64(x.number)<<48 }

type exchangeKey struct {
	who *client
	tid uint64
}

// exchanges are found by what either side calls them.
type exchanges struct {
	next     uint16
	byNumber map[uint16]*exchange
	byKey    map[exchangeKey]*exchange
}

func newExchanges() exchanges {
	return exchanges{byNumber: map[uint16]*exchange{}, byKey: map[exchangeKey]*exchange{}}
}

// ask begins an exchange, or goes on with one of which this is a further part; nil: there are too many.
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

// of is the exchange that the client knows by a transaction ID.
func (e *exchanges) of(c *client, tid uint64) *exchange { return e.byKey[exchangeKey{c, tid}] }

func (e *exchanges) end(x *exchange) {
	delete(e.byNumber, x.number)
	delete(e.byKey, exchangeKey{x.from, x.tid})
	delete(e.byKey, exchangeKey{x.to, x.shown()})
}

// expire ends the exchanges whose time is over.
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
