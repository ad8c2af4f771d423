package simulate

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// A shard lets its hosts and its switches go on by turns, as far as they get before something can arrive from the others: all code that a
// packet needs from its sender to its receiver is more than the nearest cache has, what one of them needs is not, and stays there. Each of
// them sees the same at the same times as if everything in the shard happened in the order of time.

// part notes how far hosts and switches of the shard may be apart: as long as the shortest frame takes over the shortest link between
// them. Where that is next to nothing, where links are aggregated by LACP, of which hosts and switches are told at once, and where links
// lose some frames, which the next random number decides wherever a frame leaves, they go on together.
func (h *shard) part(n *network) {
	g := n.s.Graph
	h.reach = far
	for i := range g.Links {
		l := &g.Links[i]
		if n.shardOf(l.A) != h || n.shardOf(l.B) != h {
			continue
		}
		switch a, b := g.Nodes[l.A].Host, g.Nodes[l.B].Host; {
		case a && b:
			h.reach = 0
		case a || b:
			h.reach = min(h.reach, reach(l))
		}
	}
	loses := slices.ContainsFunc(n.s.Faults, func(f scenario.Fault) bool { return f.Kind == scenario.Loss })
	if h.reach < leastReach || h.bonds != nil || loses {
		h.reach = 0
	}
	h.hint = 2 * min(h.reach, n.lookahead)
}

// begins returns when something begins at a host that nothing has to arrive for.
func (h *shard) begins() clock.Time {
	at := clock.Never
	if len(h.starts) > 0 {
		at = h.starts[0].at
	}
	if len(h.heard) > 0 {
		at = clock.Min(at, h.heard[0].at)
	}
	return at
}

// byTurns lets everything happen until a time.
func (h *shard) byTurns(until clock.Time) {
	for {
		begins, switches := h.begins(), h.SwitchesDeadline()
		hosts := min(begins, h.StationsDeadline())
		switch {
		case min(hosts, switches) > until:
			return
		case switches <= hosts:
			h.AdvanceSwitches(min(until, hosts.Add(h.reach-1), switches.Add(2*h.reach-1)))
			continue
		}
		end := min(until, begins-1, switches.Add(h.reach-1), hosts.Add(2*h.reach-1))
		if begins == hosts {
			if h.now = begins; !h.begin() {
				return
			}
			for _, k := range h.touched { // it has its turn when what arrives now has
				h.waiting[k] = false
				h.Want(int(k), begins)
			}
			h.touched, end = h.touched[:0], begins
		}
		if !h.visit(end) {
			return
		}
	}
}

// visit lets the hosts that have something to do until a time do it; false: the run is over. One goes on by itself up to that time, so that
// the code for what it does, as to send or to receive, stays in the nearest cache. Of several that have something to do at the same time,
// as where all do the same, each does that first, since the code is the same for them.
func (h *shard) visit(end clock.Time) bool {
	for {
		at := h.StationsDeadline()
		if at > end {
			return true
		}
		host, many := h.NextStation()
		until := end
		if many {
			until = at
		}
		if !h.goOn(host, until) || !h.breathe() {
			return false
		}
		end = min(end, h.begins()-1) // the host's own flows, which may begin later than it was to go on
	}
}

// goOn lets a host do what it has to do until a time; false: the run is over. What begins until then is its own: it has just become due.
func (h *shard) goOn(host int, end clock.Time) bool {
	x, due := h.hosts[host], h.Visit(host)
	for {
		station := h.StationDeadline(host)
		at := min(due, station)
		if len(h.starts) > 0 {
			at = min(at, h.starts[0].at)
		}
		if at > end {
			h.Want(host, due)
			return true
		}
		h.now = at
		if len(h.starts) > 0 && h.starts[0].at <= at {
			if !h.begin() {
				return false
			}
			station = at
		}
		if station <= at {
			h.AdvanceStation(at, host)
		}
		for (len(h.touched) > 0 || h.HasRoom()) && h.admit() || due <= at {
			x.turn(at)
			due = x.deadline()
			h.turns++
			h.unwatched++
		}
	}
}

// admit takes note of who was touched, and of room at stations; false: there is nothing.
func (h *shard) admit() (any bool) {
	for h.HasRoom() {
		if node, priorities, ok := h.Room(); ok {
			h.hosts[node].room(priorities)
			any = true
		}
	}
	for _, k := range h.touched {
		h.waiting[k] = false
		any = true
	}
	h.touched = h.touched[:0]
	return any
}
