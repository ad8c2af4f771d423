package ibdiagnet

import (
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/tools/ibdiag"
	"github.com/softvpi/softvpi/internal/tools/internal/discovery"
	"github.com/softvpi/softvpi/internal/umad"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

const (
	// maxAsked is the number of adapters up to which the service levels of all paths are queried. If there
	// are more, those of the first adapter at a switch are assumed for the others there.
	maxAsked = 256
	// maxMappings is how many SL-to-VL tables are read: a switch of 36 ports has 1,296.
	maxMappings = 1 << 16
)

// lanes finds out which lanes packets use: the service levels of paths from subnet administration, and the
// SL-to-VL tables of the switches, as far as they are needed.
type lanes struct {
	*check
	r        *routed
	levels   [][]uint8 // by index in the graph's targets and LID; nil: all are 0
	mappings map[mapping]mad.SLtoVLMappingTable
	unknown  int // tables that could not be read
}

// mapping identifies the table between two ports of a switch.
type mapping struct {
	s       int32
	in, out uint8
}

// creditLoop looks for packets that can wait for each other in a circle; warnings counts what is unknown
// about their lanes.
func (c *check) creditLoop(r *routed) (loop *routing.Cycle, warnings int) {
	l := &lanes{check: c, r: r, mappings: map[mapping]mad.SLtoVLMappingTable{}}
	if !l.readLevels() {
		warnings++
		c.printf("-W- Subnet administration does not report the service levels of paths: all are assumed to be 0\n")
	}
	rules := routing.LaneRules{VL: l.lane}
	if l.levels != nil {
		rules.SL = func(source int, lid ib.LID) uint8 {
			if t := l.levels[source]; int(lid) < len(t) {
				return t[lid]
			}
			return 0
		}
	}
	loop = routing.CreditLoop(r.graph, r.table, rules)
	if l.unknown > 0 {
		warnings++
		c.printf("-W- %d tables of service levels are unknown: there each service level is assumed to use the lane of its number\n",
			l.unknown)
	}
	return loop, warnings
}

// readLevels queries subnet administration for the paths of adapters; false: it does not answer.
func (l *lanes) readLevels() bool {
	sm, err := l.SM()
	if err != nil {
		return false
	}
	g := l.r.graph
	first := map[int32]int{} // by switch
	levels := make([][]uint8, len(g.Targets))
	asked, some := 0, false
	for i := range g.Targets {
		t := &g.Targets[i]
		if t.Port == 0 {
			continue
		}
		if j, there := first[t.Switch]; there && asked >= maxAsked {
			levels[i] = levels[j]
			continue
		}
		asked++
		list, ok := l.levelsFrom(sm.Services(), t.LID)
		if !ok {
			return false
		}
		for _, sl := range list {
			some = some || sl != 0
		}
		levels[i], first[t.Switch] = list, i
	}
	if some {
		l.levels = levels
	}
	return true
}

// levelsFrom queries the service levels of all paths from a LID, by LID.
func (l *lanes) levelsFrom(services umad.Address, from ib.LID) (list []uint8, ok bool) {
	m := mad.NewSA(mad.MethodGetTable, mad.AttrPathRecord, 0, 0)
	m.ComponentMask = mad.PathSLID
	want := mad.PathRecord{SLID: from}
	copy(m.Data[:], want.Append(nil))
	a, err := l.Port.Query(l.Context, services, &m, l.Timing)
	if err != nil || a.Status != mad.StatusOK || a.AttrOffset == 0 {
		return nil, false
	}
	for b := a.Records; len(b) >= int(a.AttrOffset)*8; b = b[int(a.AttrOffset)*8:] {
		r, err := mad.ParsePathRecord(b)
		if err != nil {
			return nil, false
		}
		for len(list) <= int(r.DLID) {
			list = append(list, 0)
		}
		list[r.DLID] = r.SL
	}
	return list, true
}

// lane returns the lane on which packets leave a switch. A link with one lane needs no table.
func (l *lanes) lane(s int32, in, out, sl uint8) uint8 {
	n := l.r.switches[s]
	if p := n.Port(out); p != nil && p.Known && p.Info.OperationalVLs <= 1 {
		return 0
	}
	key := mapping{s, in, out}
	t, there := l.mappings[key]
	if !there {
		t = l.read(n, in, out)
		l.mappings[key] = t
	}
	return t[sl&15]
}

func (l *lanes) read(n *discovery.Node, in, out uint8) (t mad.SLtoVLMappingTable) {
	if len(l.mappings) < maxMappings {
		a, err := l.Get(ibdiag.DirectRoute(n.Path[1:]...), mad.AttrSLtoVLMappingTable, uint32(in)<<8|uint32(out))
		if err == nil {
			if t, err = mad.ParseSLtoVLMappingTable(a.Data[:]); err == nil {
				return t
			}
		}
	}
	l.unknown++
	for sl := range t {
		t[sl] = uint8(sl)
	}
	t[15] = 0
	return t
}
