package agent

import (
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	// window is how many segments are accepted beyond the last acknowledgement. There is one for each half of it, so that
	// the sender need not pause for it.
	window = 256
	// patience is how long to wait for the next segment, memory how long a completed transfer is
	// remembered, so that its last segments are acknowledged again.
	patience = 40 * time.Second
	memory   = 10 * time.Second
)

// receiveKey identifies the segments of a transfer.
type receiveKey struct {
	tid            uint64
	lid            ib.LID
	qpn            ib.QPN
	class, version uint8
	method         uint8
}

// receive is a transfer to an agent.
type receive struct {
	key    receiveKey
	agent  *agent
	data   []byte // headers of the first segment, then the payload of all
	got    uint32 // segments
	window uint32
	done   bool
	timer  timer
}

// segment handles a packet of a transfer.
func (a *agent) segment(now clock.Time, k *Packet) {
	m := &k.MAD
	switch {
	case m[atRMPP] != rmppVersion:
		a.abort(k, mad.RMPPStatusVersion)
	case m[atRMPP+1] == mad.RMPPData:
		a.data(now, k)
	case m[atRMPP+1] == mad.RMPPAck:
		a.control(now, k)
	case m[atRMPP+1] == mad.RMPPStop, m[atRMPP+1] == mad.RMPPAbort:
		a.stopped(now, k)
	default:
		a.abort(k, mad.RMPPStatusBadType)
	}
}

// keyOf returns the key of a packet's transfer.
func keyOf(k *Packet) receiveKey {
	m := &k.MAD
	return receiveKey{uint64(be32(m[atTID:]))<<32 | uint64(be32(m[atTID+4:])), k.SLID, k.SQP, m[atClass], m[atVersion], m[atMethod]}
}

// stopped ends a transfer, in either direction, that the other end has aborted.
func (a *agent) stopped(now clock.Time, k *Packet) {
	if r := a.receives[keyOf(k)]; r != nil && !r.done {
		a.forget(r)
		if s := a.request(k); s != nil {
			s.fail()
		}
		return
	}
	a.control(now, k)
}

// data handles a data segment.
func (a *agent) data(now clock.Time, k *Packet) {
	m := &k.MAD
	n, flags := be32(m[atData1:]), m[atFlags]
	if n == 0 || (n == 1) != (flags&mad.RMPPFirst != 0) {
		a.abort(k, mad.RMPPStatusBadFirst)
		return
	}
	key := keyOf(k)
	r := a.receives[key]
	if r == nil {
		if r = a.start(now, k, key, n); r == nil {
			return
		}
	}
	if r.done || n != r.got+1 {
		r.acknowledge(k) // a duplicate, or one before it is lost
		return
	}
	last := flags&mad.RMPPLast != 0
	length := mad.Len - headerLen(key.class)
	if last {
		pad := payload - int(be32(m[atData2:]))
		if pad < 0 || pad > length {
			pad = 0
		}
		length -= pad
	}
	if len(r.data)+length > MaxLength || a.port.ids.held+length > maxHeld {
		a.forget(r)
		a.abort(k, mad.RMPPStatusUnspecified)
		return
	}
	head := headerLen(key.class)
	if n == 1 {
		r.data = append(r.data, m[:head]...)
	}
	if cap(r.data)-len(r.data) < length {
		r.data = slices.Grow(r.data, max(length, len(r.data))) // doubled, for long ones
	}
	r.data = append(r.data, m[head:head+length]...)
	a.port.ids.held += length
	r.got = n
	if last {
		r.complete(now, k)
		return
	}
	a.port.due.Set(&r.timer, now.Add(patience))
	if s := a.request(k); s != nil {
		a.port.due.Set(&s.timer, now.Add(s.timeout)) // the answer is on its way
	}
	if n == 1 || n+window/2 >= r.window {
		r.window = n + window
		r.acknowledge(k)
	}
}

// start begins a transfer with its first segment; nil: it was refused.
func (a *agent) start(now clock.Time, k *Packet, key receiveKey, n uint32) *receive {
	switch {
	case n != 1:
		a.abort(k, mad.RMPPStatusBadFirst)
		return nil
	case response(k.MAD[:]) && a.request(k) == nil:
		a.abort(k, mad.RMPPStatusUnspecified) // nobody waits for it
		return nil
	case len(a.receives) >= maxReceives:
		a.evict()
	}
	r := &receive{key: key, agent: a}
	r.timer.Of = func(clock.Time) { a.forget(r) }
	a.receives[key] = r
	a.port.due.Set(&r.timer, now.Add(patience))
	return r
}

// evict forgets the transfer that would expire first.
func (a *agent) evict() {
	var first *receive
	for _, r := range a.receives {
		if first == nil || r.timer.At() < first.timer.At() || r.timer.At() == first.timer.At() && r.key.tid < first.key.tid {
			first = r
		}
	}
	a.forget(first)
}

// complete delivers the complete message to the program.
func (r *receive) complete(now clock.Time, k *Packet) {
	a := r.agent
	r.window = r.got + window
	r.acknowledge(k)
	data := r.data
	a.port.ids.held -= len(data) - min(len(data), headerLen(r.key.class))
	r.data, r.done = nil, true
	a.port.due.Set(&r.timer, now.Add(memory))
	if response(k.MAD[:]) {
		s := a.request(k)
		if s == nil {
			return
		}
		a.end(s)
	}
	a.deliver(k, data)
}

// acknowledge acknowledges all segments received so far.
func (r *receive) acknowledge(k *Packet) {
	m := r.agent.back(k, mad.RMPPAck, 0)
	putBE32(m.MAD[atData1:], r.got)
	putBE32(m.MAD[atData2:], max(r.window, r.got+1))
}

// forget drops a transfer.
func (a *agent) forget(r *receive) {
	if a.receives[r.key] != r {
		return
	}
	if !r.done && r.got > 0 {
		a.port.ids.held -= len(r.data) - headerLen(r.key.class)
	}
	a.port.due.Drop(&r.timer)
	delete(a.receives, r.key)
}
