package rss

import (
	"cmp"
	"slices"
)

// Processor is a processor of the machine as RSS sees it.
type Processor struct {
	Group, Number int // its processor group, of at most 64, and its number there
	Node          int // its NUMA node
}

// GroupSize is how many processors a group has at most.
const GroupSize = 64

// Of returns the processor's number in the whole machine.
func (p Processor) Of() int { return p.Group*GroupSize + p.Number }

// Profile is how processors are chosen (*RSSProfile, with the numbers of NDIS).
type Profile int

// The profiles. Those that are not static follow the load (Table.Balance).
const (
	Closest       Profile = 1 // next to the adapter
	ClosestStatic Profile = 2
	NUMA          Profile = 3 // spread over the NUMA nodes
	NUMAStatic    Profile = 4
	Conservative  Profile = 5 // as few as are sufficient
)

// Static reports whether the indirection table stays as it is.
func (p Profile) Static() bool { return p == ClosestStatic || p == NUMAStatic }

// NoNode is the value of *NumaNodeID for no preference.
const NoNode = 65535

// Placement says which processors RSS may use (WinOF 5.50, 4.1.13.2).
type Placement struct {
	BaseGroup, BaseNumber int // *RssBaseProcGroup, *RssBaseProcNumber: the first one
	MaxNumber             int // *RssMaxProcNumber: the last number within a group
	MaxProcessors         int // *MaxRSSProcessors
	Queues                int // *NumRSSQueues
	Node                  int // *NumaNodeID: where the adapter is; NoNode: nowhere in particular
	Profile               Profile
}

// Choose returns the processors of the receive queues, in the order of the queues: at most one for each processor from the
// base on, and at least one, which without any such processor is the machine's first.
func (p *Placement) Choose(machine []Processor) []Processor {
	var list []Processor
	for _, c := range machine {
		if c.Group > p.BaseGroup || c.Group == p.BaseGroup && c.Number >= p.BaseNumber {
			if c.Number <= p.MaxNumber {
				list = append(list, c)
			}
		}
	}
	if len(list) == 0 && len(machine) > 0 {
		list = []Processor{machine[0]}
	}
	if len(list) == 0 {
		return []Processor{{}}
	}
	slices.SortStableFunc(list, func(a, b Processor) int {
		return cmp.Or(cmp.Compare(p.far(a), p.far(b)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Number, b.Number))
	})
	if p.Profile == NUMA || p.Profile == NUMAStatic {
		list = alternate(list)
	}
	return list[:min(len(list), max(1, min(p.MaxProcessors, p.Queues)))]
}

// far orders processors by how far they are from the adapter: on its node, or not.
func (p *Placement) far(c Processor) int {
	if p.Node == NoNode || c.Node == p.Node {
		return 0
	}
	return 1
}

// alternate returns processors so that their nodes take turns, in the order in which each appears first.
func alternate(list []Processor) []Processor {
	var nodes []int
	of := map[int][]Processor{}
	for _, c := range list {
		if len(of[c.Node]) == 0 {
			nodes = append(nodes, c.Node)
		}
		of[c.Node] = append(of[c.Node], c)
	}
	out := list[:0:0]
	for round := 0; len(out) < len(list); round++ {
		for _, n := range nodes {
			if round < len(of[n]) {
				out = append(out, of[n][round])
			}
		}
	}
	return out
}
