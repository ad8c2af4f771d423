package ethernet

import (
	"math/bits"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
)

// Waiting is a queue that the other end of its link has paused, while frames wait in it.
type Waiting struct {
	End
	Priority uint8
}

// Site is a switch, or the switch of a station, with what is at the other ends of its links.
type Site struct {
	*Switch
	Peers []End // by port; the node -1: nothing
}

// Watch looks for queues that wait for each other and do not move, at sites by their numbers.
type Watch struct {
	Sites []Site

	cycle []Waiting // as it was found the last time
	sent  []uint64  // what its queues had sent then
	told  bool
}

// Look returns a cycle of paused queues that wait for each other if it was there the last time too and none of them has sent anything
// since: a deadlock. It is returned once; nil: there is none.
func (w *Watch) Look(now clock.Time) []Waiting {
	cycle := w.Cycle(now)
	sent := make([]uint64, len(cycle))
	for i, q := range cycle {
		sent[i] = w.Sites[q.Node].ports[q.Port].classes[q.Priority].queue.left.frames
	}
	same := len(cycle) > 0 && slices.Equal(cycle, w.cycle) && slices.Equal(sent, w.sent)
	again := w.told
	w.cycle, w.sent, w.told = cycle, sent, same
	if !same || again {
		return nil
	}
	return cycle
}

// Cycle returns queues each of which waits for the next, and the last for the first: it is paused by a group that has frames in
// that; nil: there are none. It begins with the lowest node, port and priority. Such a cycle may still come to an end if frames
// of the groups wait elsewhere too.
func (w *Watch) Cycle(now clock.Time) []Waiting {
	s := search{sites: w.Sites, state: map[Waiting]int8{}, after: map[Waiting][]Waiting{}}
	var all []Waiting
	for n := range w.Sites {
		all = s.stalled(now, n, all)
	}
	for _, q := range all {
		if s.state[q] == 0 && s.visit(q) {
			return s.rotated()
		}
	}
	return nil
}

// search is one for a cycle, in depth.
type search struct {
	sites []Site
	after map[Waiting][]Waiting // by a queue: those for which it waits
	state map[Waiting]int8      // 1: on the path, 2: no cycle leads through it
	path  []Waiting
}

// stalled adds a node's paused queues to all, and whose queues at other nodes wait for them.
func (s *search) stalled(now clock.Time, n int, all []Waiting) []Waiting {
	x := &s.sites[n]
	for i := range x.ports {
		p := &x.ports[i]
		here, _ := p.Paused(now)
		for set := here & p.backlog; set != 0; set &= set - 1 {
			priority := uint8(bits.TrailingZeros8(set))
			q := Waiting{End{n, i}, priority}
			all = append(all, q)
			for port, groups := range p.from(priority) {
				s.hold(End{n, port}, groups, q)
			}
		}
	}
	return all
}

// from returns which groups have frames in a queue, by port.
func (p *Port) from(priority uint8) (groups [MostPorts]uint8) {
	s := p.sw
	e := p.classes[priority].queue.first
	for range p.classes[priority].queue.frames {
		h := &s.store.frames[s.entries[e].frame]
		groups[h.port] |= 1 << h.group
		e = s.entries[e].next
	}
	return groups
}

// hold notes that queues at the other end of a link wait for q, as groups at this end have frames there.
func (s *search) hold(at End, groups uint8, q Waiting) {
	if groups == 0 {
		return
	}
	site := &s.sites[at.Node]
	peer := site.Peers[at.Port]
	if peer.Node < 0 {
		return
	}
	p := &site.ports[at.Port]
	groups &= p.flow.Told()
	if p.cfg.FlowControl == GlobalPause && groups != 0 {
		groups = 0xff
	}
	for ; groups != 0; groups &= groups - 1 {
		w := Waiting{peer, uint8(bits.TrailingZeros8(groups))}
		s.after[w] = append(s.after[w], q)
	}
}

// visit reports whether a cycle leads through what follows q; path ends with it then.
func (s *search) visit(q Waiting) bool {
	s.state[q] = 1
	s.path = append(s.path, q)
	for _, next := range s.after[q] {
		switch s.state[next] {
		case 1:
			s.path = s.path[slices.Index(s.path, next):]
			return true
		case 0:
			if s.visit(next) {
				return true
			}
		}
	}
	s.state[q] = 2
	s.path = s.path[:len(s.path)-1]
	return false
}

// rotated returns the cycle from its lowest queue on.
func (s *search) rotated() []Waiting {
	low := 0
	for i, q := range s.path {
		if q.before(s.path[low]) {
			low = i
		}
	}
	return slices.Concat(s.path[low:], s.path[:low])
}

func (q Waiting) before(o Waiting) bool {
	if q.Node != o.Node {
		return q.Node < o.Node
	}
	if q.Port != o.Port {
		return q.Port < o.Port
	}
	return q.Priority < o.Priority
}
