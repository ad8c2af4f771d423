package neighbour

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// state is that of an entry (RFC 4861 7.3.2).
type state uint8

const (
	incomplete state = iota // its address is being asked for
	confirmed               // REACHABLE: it is known to be there until the deadline
	stale                   // packets go there; the next one begins a check
	delayed                 // a check begins at the deadline, unless it shows meanwhile that it is there
	probed                  // it is asked whether it is still there
)

// entry is a neighbour in the table.
type entry struct {
	key   Key
	state state
	mac   eth.MAC
	from  Source // who asks
	tries int
	used  clock.Time // by a packet; 0: never
	due   clock.Appointment[*entry]
}

func (n *entry) known() bool { return n.state != incomplete }

// Find returns the MAC of an address; known is false if it is not known yet. Then the engine asks for it on behalf of from,
// and a Change follows with the answer, or without one after three seconds. An address that is used for longer than that
// needs a call of Use now and then.
func (e *Engine) Find(now clock.Time, key Key, from Source) (mac eth.MAC, known bool) {
	key.Addr = key.Addr.Unmap().WithZone("")
	if own, ok := e.own[key]; ok {
		return own, true
	}
	n := e.entries[key]
	if n == nil {
		n = e.add(key)
		n.from, n.used = from, now
		e.ask(now, n)
		return eth.MAC{}, false
	}
	n.from = from
	e.use(now, n)
	return n.mac, n.known()
}

// Knows reports whether Find has an answer at once.
func (e *Engine) Knows(key Key) bool {
	n := e.entries[key]
	return n != nil && n.known()
}

// Use says that packets are sent to an address that is known. If it was not heard of for a while the engine makes sure
// that it is still there.
func (e *Engine) Use(now clock.Time, key Key) {
	if n := e.entries[key]; n != nil {
		e.use(now, n)
	}
}

func (e *Engine) use(now clock.Time, n *entry) {
	n.used = now
	if n.state == stale {
		n.state = delayed
		e.agenda.Set(&n.due, now.Add(delayOfProbe))
	}
}

// add makes an entry. In a full table it replaces the one that was not used for the longest time.
func (e *Engine) add(key Key) *entry {
	if len(e.entries) >= e.most {
		var oldest *entry
		for _, n := range e.entries {
			if oldest == nil || n.used < oldest.used || n.used == oldest.used && less(n.key, oldest.key) {
				oldest = n
			}
		}
		e.counters.Evicted++
		e.fail(oldest)
	}
	n := &entry{key: key}
	n.due.Of = n
	e.entries[key] = n
	return n
}

// less orders keys, so that nothing depends on the order of a map.
func less(a, b Key) bool {
	if a.VLAN != b.VLAN {
		return a.VLAN < b.VLAN
	}
	return a.Addr.Less(b.Addr)
}

// ask asks for an entry's address: everybody, or the neighbour itself if it is known.
func (e *Engine) ask(now clock.Time, n *entry) {
	n.tries++
	e.agenda.Set(&n.due, now.Add(retransmit))
	e.counters.Asked++
	e.solicit(n)
}

// fail removes an entry.
func (e *Engine) fail(n *entry) {
	e.agenda.Drop(&n.due)
	delete(e.entries, n.key)
	e.changes = append(e.changes, Change{Key: n.key})
}

// learned handles a MAC that an entry is said to have. answer: it has answered a question, which proves that both
// directions work.
func (e *Engine) learned(now clock.Time, n *entry, mac eth.MAC, answer bool) {
	moved := !n.known() || n.mac != mac
	n.mac = mac
	switch {
	case answer:
		e.confirm(now, n)
	case moved:
		e.doubt(now, n)
	}
	if moved {
		e.changes = append(e.changes, Change{n.key, mac, true})
	}
}

// confirm starts the time in which a neighbour counts as reachable.
func (e *Engine) confirm(now clock.Time, n *entry) {
	n.state, n.tries = confirmed, 0
	e.agenda.Set(&n.due, now.Add(e.spread(reachable)))
}

// doubt makes a neighbour prove itself when it is used next.
func (e *Engine) doubt(now clock.Time, n *entry) {
	n.state, n.tries = stale, 0
	e.agenda.Set(&n.due, now.Add(idle))
}

// spread returns d times 0.5 to 1.5, so that those who began together do not stay so (RFC 4861 6.3.2).
func (e *Engine) spread(d time.Duration) time.Duration {
	return d/2 + time.Duration(e.random(int64(d)))
}

// Deadline returns when Advance is due.
func (e *Engine) Deadline() clock.Time { return clock.Min(e.agenda.Deadline(), e.trial.Deadline()) }

// Advance does what is due.
func (e *Engine) Advance(now clock.Time) {
	for x := e.trial.Due(now); x != nil; x = e.trial.Due(now) {
		e.try(now, x.Of)
	}
	for x := e.agenda.Due(now); x != nil; x = e.agenda.Due(now) {
		e.advance(now, x.Of)
	}
}

func (e *Engine) advance(now clock.Time, n *entry) {
	switch n.state {
	case incomplete:
		if n.tries >= multicasts {
			e.fail(n)
			return
		}
		e.ask(now, n)
	case confirmed:
		e.doubt(now, n)
	case stale:
		e.fail(n)
	case delayed:
		n.state = probed
		e.ask(now, n)
	case probed:
		if n.tries >= unicasts {
			e.fail(n)
			return
		}
		e.ask(now, n)
	}
}
