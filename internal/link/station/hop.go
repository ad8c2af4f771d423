package station

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// heldEach packets wait for one neighbour, heldAll for all.
	heldEach = 3
	heldAll  = 64
	// patience is after which time what waits for a neighbour of the system is lost: the time of three questions.
	patience = 3 * time.Second
)

// hopKey identifies a neighbour and who knows it.
type hopKey struct {
	neighbour.Key
	system bool
}

// hop is a neighbour of routes.
type hop struct {
	key    hopKey
	mac    eth.MAC
	known  bool // frames go to mac
	used   bool // since the last sweep
	asking bool // there will be an answer, or a Change without one
	since  clock.Time
	held   []held
	paths  []*path
}

// held is a whole frame that waits for its neighbour.
type held struct {
	frame []byte
	bth   int // where the BTH is in it
	to    *path
}

// path is what a link keeps for a route.
type path struct {
	set     *Set
	route   *frame.Route
	station *station
	from    neighbour.Source
	hop     *hop // nil: none, to a group
	at      int  // of hop.paths
	loop    bool // to a station of the link
}

// Release implements frame.Path.
func (w *path) Release() {
	h := w.hop
	if h == nil {
		return
	}
	last := len(h.paths) - 1
	h.paths[w.at] = h.paths[last]
	h.paths[w.at].at = w.at
	h.paths[last] = nil
	h.paths = h.paths[:last]
	w.hop = nil
	if last == 0 {
		w.set.held -= len(h.held)
		h.held = nil
		delete(w.set.hops, h.key)
	}
}

// join adds a path to a hop, which it makes if there is none. The caller holds mu.
func (s *Set) join(w *path, key hopKey) {
	h := s.hops[key]
	if h == nil {
		h = &hop{key: key}
		s.hops[key] = h
	}
	w.hop, w.at = h, len(h.paths)
	h.paths = append(h.paths, w)
	s.seek(w)
}

// seek finds out a path's neighbour. The caller holds mu.
func (s *Set) seek(w *path) {
	h := w.hop
	if !h.known && !h.asking {
		h.asking, h.since = true, s.now()
		if mac, known := s.find(h.key, w.from); known {
			s.met(h, mac)
		}
	}
	if h.known {
		w.route.DstMAC = h.mac
	}
}

// find asks for a neighbour: the system, if the key says so and the system will. The caller holds mu.
func (s *Set) find(key hopKey, from neighbour.Source) (mac eth.MAC, known bool) {
	if key.system {
		if mac, known, able := s.cfg.System.Find(key.Key, from.Addr); able {
			return mac, known
		}
	}
	return s.engine.Find(s.now(), key.Key, from)
}

// met takes over a neighbour's MAC, and sends what has waited for it. The caller holds mu.
func (s *Set) met(h *hop, mac eth.MAC) {
	h.mac, h.known, h.asking = mac, true, false
	for _, w := range h.paths {
		w.route.DstMAC = mac
	}
	for _, f := range h.held {
		copy(f.frame, mac[:])
		s.cfg.Wire(f.frame)
		s.sent(len(f.frame))
		s.see(f.frame, true)
	}
	s.forget(h)
}

// emit sends a frame of the link's own, and counts it as one of the station from which it is. The caller holds mu.
func (s *Set) emit(f []byte) {
	s.cfg.Wire(f)
	s.see(f, true)
	t := s.own[eth.MAC(f[6:])]
	t.SentPackets++
	t.SentBytes += uint64(len(f))
	s.own[eth.MAC(f[6:])] = t
}

func (s *Set) sent(n int) {
	s.stats.SentPackets++
	s.stats.SentBytes += uint64(n)
	s.stats.SentBursts++
}

// missed loses what has waited for a neighbour that nobody knows. The caller holds mu.
func (s *Set) missed(h *hop) {
	h.known, h.asking = false, false
	for _, f := range h.held {
		s.stats.SendErrors++
		u := link.Unreachable{Dst: f.to.route.Dst, Kind: link.HostUnreachable}
		u.Quote(f.frame[f.bth:], nil)
		s.report(u)
	}
	s.forget(h)
}

func (s *Set) forget(h *hop) {
	s.held -= len(h.held)
	h.held = nil
}

// settle does what the engine has decided. The caller holds mu and is the owner of the link.
func (s *Set) settle() {
	s.dispute()
	for _, c := range s.engine.Changes() {
		for _, system := range [...]bool{false, true} {
			h := s.hops[hopKey{c.Key, system}]
			switch {
			case h == nil:
			case c.Known:
				s.met(h, c.MAC)
			case !system || h.asking:
				s.missed(h)
			}
		}
		if c.Known {
			s.wake()
		}
	}
	s.flush()
}

// dispute takes over which addresses others have. The caller holds mu and is the owner of the link.
func (s *Set) dispute() {
	list := s.engine.Conflicts()
	for _, c := range list {
		if delete(s.lost, c.Key); s.engine.Lost(c.Key) {
			s.lost[c.Key] = true
		}
	}
	if len(list) > 0 {
		s.seen = append(s.seen, list[:min(len(list), mostErrors-len(s.seen))]...)
		s.conflicted.Store(true)
	}
}

// wake tells those in Resolve to look again. The caller holds mu.
func (s *Set) wake() {
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// flush sends the frames of the engine and the reporter, and sets the timer. The caller holds mu.
func (s *Set) flush() {
	if s.closed.Load() {
		return
	}
	var b [128]byte
	for f := s.engine.Frame(b[:0]); f != nil; f = s.engine.Frame(b[:0]) {
		s.emit(f)
	}
	for f := s.reporter.Frame(); f != nil; f = s.reporter.Frame() {
		s.emit(f)
	}
	if due := clock.Min(clock.Min(s.engine.Deadline(), s.reporter.Deadline()), s.overdue); int64(due) != s.armed.Load() {
		s.armed.Store(int64(due))
		if due == clock.Never {
			s.cfg.Arm(-1)
		} else {
			s.cfg.Arm(max(due.Sub(s.now()), 0))
		}
	}
}

// Tend does what is due. Call it when the timer has fired, and every few milliseconds while packets are sent. changed says
// that the system's neighbours may have changed.
func (s *Set) Tend(changed bool) {
	now := s.now()
	swept := now.Sub(s.swept) >= sweep
	if !changed && !swept && int64(now) < s.armed.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine.Advance(now)
	s.reporter.Advance(now)
	if changed || swept || now >= s.overdue {
		if swept {
			s.swept = now
		}
		s.review(now, swept)
	}
	s.settle()
}

// review looks at each hop: at those of the system for what it knows now, and whether they are in use. The caller holds mu.
func (s *Set) review(now clock.Time, swept bool) {
	s.overdue = clock.Never
	for key, h := range s.hops {
		if swept && h.used && !key.system {
			s.engine.Use(now, key.Key)
		}
		if key.system && (h.used || h.asking || h.known) {
			s.ask(now, h)
		}
		if swept {
			h.used = false
		}
	}
}

// ask looks at what the system knows of a hop.
func (s *Set) ask(now clock.Time, h *hop) {
	from := neighbour.Source{}
	if len(h.paths) > 0 {
		from = h.paths[0].from
	}
	mac, known := s.find(h.key, from)
	switch {
	case known && (!h.known || mac != h.mac):
		s.met(h, mac)
		s.wake()
	case known:
	case h.known:
		h.known, h.asking, h.since = false, true, now
		fallthrough
	case h.asking && now.Sub(h.since) < patience:
		s.overdue = clock.Min(s.overdue, h.since.Add(patience))
	default:
		s.missed(h)
	}
}
