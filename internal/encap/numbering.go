package encap

import (
	"encoding/binary"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/wire/ib"
)

// The ICRC covers the IPv4 identification, which a UDP socket does not reveal. Of the 65,536 identifications
// that could make a packet's ICRC correct, only those are accepted that its sender may have used:
//
//   - 0 and the places in a burst (segmentsKept), as this package sends them. Every sender has them.
//   - Those near the last one of the same sender. Linux Soft-RoCE counts up, for each destination, by one for
//     each packet and by a random number up to the milliseconds (ticks) that have passed; hardware adapters
//     count for each destination or each queue pair. So both are remembered: that of the sender, and that of
//     the sender and destination QP.
//   - Any, for the first packets of a sender or after a jump: this is an open guess. They are limited in
//     number, for each sender and for all of them, whether they succeed or not.
//   - Those near the last one that was refused: the sender counts there now, and lost only that packet.
//
// A corrupt packet is accepted with probability 2^-32 for each identification that is acceptable: up to
// segmentsKept + 1 + nearBehind + nearAhead while the sender is busy, one more for each millisecond of its silence, and
// as many again for each of the four points that are remembered. During an open guess it is 2^-16.
const (
	// The identifications that are near one are up to nearBehind before it, for packets that others overtook (a sender
	// may have counted a millisecond each meanwhile), and
	// nearAhead after it, for lost packets and those to others; and one more for each millisecond since, up to
	// nearMost.
	nearBehind = 256
	nearAhead  = 128
	nearMost   = 16384
	// Open guesses per sender, and of all senders together: so many at once, then one in each interval.
	guessesEach, guessesEachEvery = 8, time.Second
	guessesAll, guessesAllEvery   = 64, time.Second / 16
	// So many senders, and pairs of sender and destination QP, are remembered, each in one of a power of two of sets:
	// a new one replaces the one of its set that was not seen for longest.
	senderSets, flowSets = 32, 128
	numberingWays        = 8
)

// verdict is what is thought of an identification.
type verdict uint8

const (
	implausible verdict = iota
	plausible
	guessed // accepted by an open guess
)

// numberings is what is known of the senders that number their packets.
type numberings struct {
	now            clock.Time
	senders, flows []numberingSet // nil until they are needed
	all            allowance      // open guesses of all senders
}

// numberingSet is a set of numberings, the one seen last first.
type numberingSet [numberingWays]numbering

// numbering is how one sender numbers its packets, to all destination QPs or to one.
type numbering struct {
	key     uint64 // sender<<24 | destination QP, or 0 for all of them
	last    point  // most recent accepted one
	refused point  // most recent refused one
	guesses allowance
}

// point is an identification that was seen, and when.
type point struct {
	id   uint16
	seen bool
	at   clock.Time
}

// near reports whether an identification may follow p's.
func (p *point) near(id uint16, now clock.Time) bool {
	ahead := nearAhead + uint16(min(now.Sub(p.at)/time.Millisecond, nearMost))
	return p.seen && id-p.id+nearBehind <= ahead+nearBehind
}

// allowance limits how often something is done: up to most times at once, and then once per interval.
type allowance struct {
	used int
	from clock.Time // when used was last lowered
}

func (a *allowance) take(now clock.Time, most int, every time.Duration) bool {
	if a.used > 0 {
		back := now.Sub(a.from) / every
		a.used = int(max(0, time.Duration(a.used)-back))
		a.from = a.from.Add(back * every)
	}
	if a.used == most {
		return false
	}
	if a.used == 0 {
		a.from = now
	}
	a.used++
	return true
}

// Tick tells the time, on which depends which identifications are plausible.
func (e *Encap) Tick(now clock.Time) { e.ids.now = now }

// judge says whether the sender of p may have used the identification id. solved is false if no identification makes the
// ICRC correct: that counts as an open guess too, if it would have been one, because the number of attempts
// is what limits how many corrupt packets are accepted.
func (n *numberings) judge(p *frame.In, id uint16, solved bool) verdict {
	if solved && id < segmentsKept {
		n.passing(p, id)
		return plausible
	}
	n.init()
	sender := n.sender(p)
	if !solved {
		n.guess(sender)
		return implausible
	}
	flow := n.flow(p)
	if flow.expects(id, n.now) || sender.expects(id, n.now) {
		n.accept(flow, sender, id)
		return plausible
	}
	if n.guess(sender) {
		n.accept(flow, sender, id)
		return guessed
	}
	flow.refused = point{id, true, n.now}
	sender.refused = flow.refused
	return implausible
}

// passing records an identification that every sender has, where a sender that counts comes past it: its next packet
// may be too far from the one before.
func (n *numberings) passing(p *frame.In, id uint16) {
	if n.senders == nil {
		return
	}
	set := setOf(n.senders, senderKey(p))
	for i := range set {
		if x := &set[i]; x.key == senderKey(p) && x.expects(id, n.now) {
			n.accept(n.flow(p), x, id)
			return
		}
	}
}

// guess reports whether an open guess is allowed now.
func (n *numberings) guess(sender *numbering) bool {
	return sender.guesses.take(n.now, guessesEach, guessesEachEvery) && n.all.take(n.now, guessesAll, guessesAllEvery)
}

// seen records the identification of a packet that its link has shown.
func (n *numberings) seen(p *frame.In, id uint16) {
	n.init()
	n.accept(n.flow(p), n.sender(p), id)
}

func (n *numberings) init() {
	if n.senders == nil {
		n.senders, n.flows = make([]numberingSet, senderSets), make([]numberingSet, flowSets)
	}
}

// expects reports whether an identification may come next.
func (x *numbering) expects(id uint16, now clock.Time) bool {
	return x.last.near(id, now) || x.refused.near(id, now)
}

func (n *numberings) accept(flow, sender *numbering, id uint16) {
	flow.last = point{id, true, n.now}
	sender.last = flow.last
	flow.refused.seen, sender.refused.seen = false, false
}

// sender returns what is known of all packets of p's sender.
func (n *numberings) sender(p *frame.In) *numbering { return find(n.senders, senderKey(p)) }

// flow returns what is known of the packets of p's sender to p's queue pair.
func (n *numberings) flow(p *frame.In) *numbering {
	return find(n.flows, senderKey(p)|uint64(ib.BTH(p.Data).DestQP()))
}

func senderKey(p *frame.In) uint64 {
	a := p.Src.As4()
	return uint64(binary.BigEndian.Uint32(a[:])) << 24
}

// setOf returns the set in which a key is.
func setOf(sets []numberingSet, key uint64) *numberingSet {
	return &sets[key*0x9e3779b97f4a7c15>>32%uint64(len(sets))]
}

// find returns the numbering with a key, a new one if there is none, and puts it first in its set.
func find(sets []numberingSet, key uint64) *numbering {
	set := setOf(sets, key)
	i := 0
	for i < numberingWays-1 && set[i].key != key {
		i++
	}
	x := set[i]
	if x.key != key {
		x = numbering{key: key}
	}
	copy(set[1:i+1], set[:i])
	set[0] = x
	return &set[0]
}
