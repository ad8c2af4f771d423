package simulate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/fabric/ethernet"
	"github.com/softvpi/softvpi/internal/simulate/scenario"
)

// change is the beginning or the end of a fault.
type change struct {
	at    clock.Time
	fault *scenario.Fault
	over  bool
}

// prepareFaults puts what faults change in its order; at the same time what is over comes first.
func (r *Run) prepareFaults() {
	for i := range r.s.Faults {
		f := &r.s.Faults[i]
		r.faults = append(r.faults, change{f.At, f, false})
		if f.Until != clock.Never {
			r.faults = append(r.faults, change{f.Until, f, true})
		}
	}
	slices.SortStableFunc(r.faults, func(a, b change) int {
		switch {
		case a.at < b.at || a.at == b.at && a.over && !b.over:
			return -1
		case a.at > b.at || b.over && !a.over:
			return 1
		}
		return 0
	})
}

// change does what is due of faults. All shards are at the same time then.
func (r *Run) change() {
	for len(r.faults) > 0 && r.faults[0].at <= r.now {
		c := r.faults[0]
		r.faults = r.faults[1:]
		r.apply(c.fault, c.over)
	}
}

// apply begins a fault, or ends it.
func (r *Run) apply(f *scenario.Fault, over bool) {
	ends := []ethernet.End{{Node: f.Node, Port: f.Port}}
	link := func() *scenario.Link { return &r.s.Graph.Links[r.s.Graph.Nodes[f.Node].Links[f.Port]] }
	if f.Kind == scenario.Unlink || f.Kind == scenario.Loss || f.Kind == scenario.Slow {
		node, port := link().Other(f.Node)
		ends = append(ends, ethernet.End{Node: node, Port: port})
	}
	if f.Port < 0 {
		ends = ends[:0]
		for p := range r.s.Graph.Nodes[f.Node].Links {
			ends = append(ends, ethernet.End{Node: f.Node, Port: p})
		}
	}
	for _, e := range ends {
		h := r.n.shardOf(e.Node)
		at := ethernet.End{Node: int(r.n.at[e.Node].node), Port: e.Port}
		var bad *ethernet.FieldError
		if err := r.alter(h, at, e, f, over); errors.As(err, &bad) {
			r.stop(&scenario.Error{File: r.s.File, Field: f.Path + ".priorities", Value: fmt.Sprintf("more than %s can have",
				r.s.Graph.Nodes[e.Node].Name), Allowed: bad.Want})
		}
		if h.bonds != nil {
			h.bonds.Follow(r.now, at)
		}
		h.Wake(at.Node)
	}
}

// alter alters a port of a shard, which is an end of the network, as a fault has it, or back to what the scenario has. The error is a
// *ethernet.FieldError.
func (r *Run) alter(h *shard, at, e ethernet.End, f *scenario.Fault, over bool) error {
	p := h.Port(at)
	switch f.Kind {
	case scenario.Unlink:
		p.SetUp(r.now, over)
	case scenario.Loss:
		share := f.Share
		if over {
			share = 0
		}
		h.SetLoss(at, share)
	case scenario.Slow:
		rate := f.Rate
		if over {
			rate = r.s.Graph.Links[r.s.Graph.Nodes[e.Node].Links[e.Port]].Rate
		}
		return p.SetRate(r.now, rate)
	case scenario.Take:
		st, take := h.Station(at.Node), f.Rate
		if over {
			take = r.s.NICs[e.Node].Take
		}
		st.SetTake(r.now, take)
		st.Hold(r.now, !over && take == 0)
	case scenario.Storm:
		priorities := f.Priorities
		if over {
			priorities = 0
		}
		p.Storm(r.now, priorities)
	case scenario.PFC:
		lossless := f.Priorities
		if over {
			lossless = r.n.lossless(e)
		}
		return p.SetPFC(r.now, lossless)
	}
	return nil
}

// lossless returns the lossless priorities of a port as it was configured.
func (n *network) lossless(e ethernet.End) uint8 {
	if c := n.s.NICs[e.Node]; c != nil {
		for i := range n.agreed {
			if x := &n.agreed[i]; x.node == e.Node {
				return x.pfc
			}
		}
		return c.Lossless
	}
	for _, own := range n.s.Ports {
		if own.Node == e.Node && own.Port == e.Port && own.OwnPFC {
			return own.Lossless
		}
	}
	return n.s.Switches[e.Node].Lossless
}
