package cm

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/command"
	"github.com/softvpi/softvpi/wire/mad"
)

// A listener's backlog, and the half-open connections of all listeners, are shared by the peers' addresses:
//
//   - A peer that has fewer requests than another displaces one of the peer that has most.
//   - Among peers that have as many, as when the requests come from a flood of false addresses, one that asks again displaces
//     one that has asked once, or one that does not answer its REP: whoever waits for an answer asks again, as the CM
//     prescribes (IBA 12.9.8.7), and a flood mostly does neither. Never does a request displace one of a peer that
//     has no more than its own: asking often, or being taken for one that does, is no claim to another's share.
//
// An answer (REJ, no resources) ends the attempt, so only a peer that has most gets one, and answers are limited as
// well. Every other request that finds no room, or loses it, is remembered in few bits and dropped, and what its peer repeats is
// one that asks again. So an honest peer with one request is never refused for want of room, but for that of ids.

const (
	// refusalsMost refusals for want of room are answered in each refusalsEvery; the others are not.
	refusalsMost  = 1024
	refusalsEvery = time.Second
	// askedBits is the size of each of the two filters of requests that found no room. They take turns, askedEvery long
	// each: Linux asks again after 4.3 s.
	askedBits  = 1 << 22
	askedEvery = 6 * time.Second
	// askedPlaces bits are set for a request. When 47,000 find no room each second, one in 400 is taken for
	// one that was repeated.
	askedPlaces = 4
	// silentAfter is how long a peer has to answer REP before one that asks again may displace it.
	silentAfter = time.Second
	// lookedAt requests are looked at for one to be displaced by one that asks again; the next such looks on from there. A
	// flood of repeated requests must not cost a search through all for each.
	lookedAt = 64
)

// shares counts what each peer has.
type shares struct {
	of   map[netip.Addr]int
	held map[int]int // number of peers by how much they have
	most int
}

func newShares() shares { return shares{of: map[netip.Addr]int{}, held: map[int]int{}} }

// add changes what a peer has by one.
func (s *shares) add(peer netip.Addr, by int) {
	n := s.of[peer]
	s.hold(n, -1)
	n += by
	s.hold(n, 1)
	if n == 0 {
		delete(s.of, peer)
	} else {
		s.of[peer] = n
	}
	s.most = max(s.most, n)
	for s.most > 0 && s.held[s.most] == 0 {
		s.most--
	}
}

func (s *shares) hold(n, by int) {
	if n == 0 {
		return
	}
	if s.held[n] += by; s.held[n] == 0 {
		delete(s.held, n)
	}
}

// less reports whether a peer has so much less than another that it may displace one of that.
func (s *shares) less(peer netip.Addr) bool { return s.of[peer]+1 < s.most }

// greedy reports whether a peer has most, and more than others may have: one request, if there are others.
func (s *shares) greedy(peer netip.Addr) bool {
	return s.most > 0 && s.of[peer] == s.most && (s.most > 1 || len(s.of) == 1)
}

// line is requests in the order of their arrival. Those that no longer count are removed late.
type line struct {
	ids []ID
	at  int // where next looks first
}

// add appends a request, of which at most some count.
func (l *line) add(id ID, most int, counts func(ID) *conn) {
	if len(l.ids) >= 2*most+64 {
		n, at := 0, 0
		for i, x := range l.ids {
			if i == l.at {
				at = n
			}
			if counts(x) != nil {
				l.ids[n] = x
				n++
			}
		}
		l.ids, l.at = l.ids[:n], at
	}
	l.ids = append(l.ids, id)
}

// first returns the first that counts and fits, nil if there is none.
func (l *line) first(counts func(ID) *conn, fits func(*conn) bool) *conn {
	gone := 0
	for i, id := range l.ids {
		c := counts(id)
		if c == nil {
			if gone == i {
				gone++
			}
			continue
		}
		if fits(c) {
			l.trim(gone)
			return c
		}
	}
	l.trim(gone)
	return nil
}

// trim removes requests from the beginning.
func (l *line) trim(n int) { l.ids, l.at = l.ids[n:], max(0, l.at-n) }

// next returns the next in turn that counts and fits, nil if it is not among the next lookedAt.
func (l *line) next(counts func(ID) *conn, fits func(*conn) bool) *conn {
	for range min(len(l.ids), lookedAt) {
		if l.at >= len(l.ids) {
			l.at = 0
		}
		c := counts(l.ids[l.at])
		l.at++
		if c != nil && fits(c) {
			return c
		}
	}
	return nil
}

// asked remembers requests that found no room. It may take a request for one of them that is not: see askedPlaces.
type asked struct {
	seed     uint64
	now, old []uint64 // bits; nil: none are remembered
	since    clock.Time
}

// again reports whether a request has been remembered, and remembers it.
func (a *asked) again(now clock.Time, r *request, random func() uint64) bool {
	if a.now == nil {
		a.seed, a.now, a.old, a.since = random(), make([]uint64, askedBits/64), make([]uint64, askedBits/64), now
	}
	if passed := now.Sub(a.since); passed >= askedEvery {
		a.now, a.old, a.since = a.old, a.now, now
		clear(a.now)
		if passed >= 2*askedEvery {
			clear(a.old)
		}
	}
	addr := r.from.As16()
	h := a.seed
	for _, x := range [...]uint64{binary.LittleEndian.Uint64(addr[:]), binary.LittleEndian.Uint64(addr[8:]), r.guid, uint64(r.id), r.tid} {
		hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, x^0xd1b54a32d192ed03)
		h = hi ^ lo
	}
	inNow, inOld := true, true
	for range askedPlaces {
		x, bit := h%askedBits/64, uint64(1)<<(h%64)
		inNow, inOld = inNow && a.now[x]&bit != 0, inOld && a.old[x]&bit != 0
		a.now[x] |= bit
		h = bits.RotateLeft64(h, 64/askedPlaces)
	}
	return inNow || inOld
}

// forget frees the memory when nothing was remembered for long.
func (a *asked) forget(now clock.Time) {
	if a.now != nil && now.Sub(a.since) >= 4*askedEvery {
		a.now, a.old = nil, nil
	}
}

// request is what identifies a peer's request.
type request struct {
	from netip.Addr
	guid uint64
	id   uint32
	tid  uint64
}

// admission is what is decided about a request.
type admission struct {
	room   bool // there is room, or was made
	again  bool // the request is known to be repeated
	refuse bool // without room: refuse it; else it is dropped, so that its peer asks again
}

// admit makes room for a request at a listener, if it must.
func (e *Engine) admit(now clock.Time, l *conn, r *request) admission {
	w := l.listen
	switch {
	case e.ids.Len() >= e.cfg.MaxIDs:
		e.counters.HalfOpenLimit++
		return admission{refuse: e.mayRefuse(now)}
	case len(w.waiting) < w.backlog && e.halfOpen < e.cfg.MaxHalfOpen:
		e.asked.forget(now)
		return admission{room: true}
	}
	again, peer := e.asked.again(now, r, e.cfg.Rand), r.from
	if len(w.waiting) >= w.backlog && !e.displace(now, &w.shares, &w.line, w.counts, peer, again) {
		e.counters.BacklogOverflow++
		return admission{refuse: w.shares.greedy(peer) && e.mayRefuse(now)}
	}
	if e.halfOpen >= e.cfg.MaxHalfOpen && !e.displace(now, &e.half, &e.opening, e.counts, peer, again) {
		e.counters.HalfOpenLimit++
		return admission{refuse: e.half.greedy(peer) && e.mayRefuse(now)}
	}
	return admission{room: true, again: again}
}

// counts returns the conn of an id if it is half-open.
func (e *Engine) counts(id ID) *conn {
	if c := e.ids.Get(uint32(id)); c != nil && c.state.halfOpen() {
		return c
	}
	return nil
}

// counts returns a waiting request.
func (w *listenState) counts(id ID) *conn { return w.waiting[id] }

// displace ends a request in favour of one from a peer: one of the peer that has most, if this one has less, or, if this
// one comes again, one of a peer with more that came only once or does not answer.
func (e *Engine) displace(now clock.Time, s *shares, l *line, counts func(ID) *conn, peer netip.Addr, again bool) bool {
	has := s.of[peer]
	var victim *conn
	switch {
	case s.less(peer):
		victim = l.first(counts, func(c *conn) bool { return s.of[c.at.Remote] == s.most })
	case again && has < s.most:
		victim = l.next(counts, func(c *conn) bool { return c.yields(now) && s.of[c.at.Remote] > has })
	}
	if victim == nil {
		return false
	}
	e.counters.Displaced++
	switch {
	case victim.state == stateRepSent:
		e.exhausted(now, victim)
		return true
	case s.of[victim.at.Remote] < max(s.most, 2): // it is to ask again
		e.asked.again(now, victim.request(), e.cfg.Rand)
	case e.mayRefuse(now):
		if victim.space == command.UDP {
			e.reply(victim.route(), victim.sidrRep(mad.SIDRNoQP, 0, 0, nil))
		} else {
			e.reject(victim, mad.REJOfREQ, mad.RejectNoResources, nil)
		}
	}
	e.failRequest(victim, mad.RejectNoResources)
	e.unlist(victim)
	return true
}

// yields reports whether a half-open connection makes room for another peer's that asks again: its own has not, or does not
// answer.
func (c *conn) yields(now clock.Time) bool {
	if c.state == stateRepSent {
		return now.Sub(c.askedAt) >= silentAfter
	}
	return !c.again
}

// request returns what identifies the peer's request that is not answered yet.
func (c *conn) request() *request {
	return &request{from: c.at.Remote, guid: c.remoteGUID, id: c.remoteID, tid: c.tid}
}

// mayRefuse reports whether another request may be answered that there is no room for it.
func (e *Engine) mayRefuse(now clock.Time) bool {
	if now.Sub(e.refusals.since) >= refusalsEvery {
		e.refusals.since, e.refusals.n = now, 0
	}
	if e.refusals.n == refusalsMost {
		e.counters.Unanswered++
		return false
	}
	e.refusals.n++
	return true
}

// count records that a connection has become half-open, or is so no longer.
func (e *Engine) count(c *conn, was, is bool) {
	if was == is {
		return
	}
	if is {
		e.half.add(c.at.Remote, 1)
	} else {
		e.half.add(c.at.Remote, -1)
	}
}
