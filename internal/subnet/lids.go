package subnet

import (
	"fmt"
	"slices"

	"github.com/softvpi/softvpi/wire/ib"
)

// lidError says that a subnet needs more unicast LIDs than exist.
type lidError struct{ Need, Ports, LMC int }

func (e *lidError) Error() string {
	return fmt.Sprintf("subnet: it needs %d unicast LIDs (%d end ports, LMC %d), there are %d", e.Need, e.Ports, e.LMC, maxLIDs)
}

// lidCount returns how many LIDs an end port gets: a switch 1, others 2 to the power of the LMC.
func (s *SM) lidCount(p int32) int {
	if s.cur.IsSwitch(p) || s.cur.Ports[p].Index != 0 {
		return 1
	}
	return 1 << s.cfg.LMC
}

// assignLIDs chooses the LIDs of every end port and records them in lids: first those that are remembered,
// then those that ports already have, then new ones. The result is by port index. The error is a
// *lidError.
func (s *SM) assignLIDs() (map[int32]ib.LID, error) {
	ports := slices.DeleteFunc(s.cur.EndPorts(), func(p int32) bool { return s.cur.Ports[p].Shares })
	need := 0
	for _, p := range ports {
		need += s.lidCount(p)
	}
	if need > maxLIDs {
		return nil, &lidError{need, len(ports), int(s.cfg.LMC)}
	}
	if s.cfg.Reassign && !s.firstDone {
		clear(s.lids)
	}
	a := allocation{taken: make([]bool, maxLIDs+1), given: make(map[int32]ib.LID, len(ports))}
	rest := s.keep(&a, ports)
	// Ports that are absent now keep their remembered LIDs as long as there is room.
	present := make(map[uint64]bool, len(ports))
	for _, p := range ports {
		present[s.cur.Ports[p].GUID] = true
	}
	reserved := slices.Clone(a.taken)
	for guid, r := range s.lids {
		if !present[guid] {
			for l := int(r.First); l <= int(r.Last) && l <= maxLIDs; l++ {
				reserved[l] = true
			}
		}
	}
	// The largest alignment comes first, so that small ranges do not fragment large ones.
	slices.SortStableFunc(rest, func(p, q int32) int { return s.lidCount(q) - s.lidCount(p) })
	for _, p := range rest {
		lid := a.free(reserved, s.lidCount(p))
		if lid == 0 {
			lid = a.free(a.taken, s.lidCount(p))
		}
		if lid == 0 {
			return nil, &lidError{need, len(ports), int(s.cfg.LMC)}
		}
		a.give(p, lid, s.lidCount(p))
		for l := range s.lidCount(p) {
			reserved[int(lid)+l] = true
		}
	}
	for _, p := range ports {
		lid := a.given[p]
		s.lids[s.cur.Ports[p].GUID] = LIDRange{lid, lid + ib.LID(s.lidCount(p)) - 1}
	}
	return a.given, nil
}

// keep gives ports their earlier LIDs, and returns those that have none.
func (s *SM) keep(a *allocation, ports []int32) (rest []int32) {
	var second []int32
	for _, p := range ports {
		r, ok := s.lids[s.cur.Ports[p].GUID]
		if count := s.lidCount(p); ok && int(r.Last-r.First)+1 >= count && a.fits(int(r.First), count) {
			a.give(p, r.First, count)
			continue
		}
		second = append(second, p)
	}
	for _, p := range second {
		lid, count := s.cur.Ports[p].Info.LID, s.lidCount(p)
		if !(s.cfg.Reassign && !s.firstDone) && a.fits(int(lid), count) && !s.remembered(lid, count) {
			a.give(p, lid, count)
			continue
		}
		rest = append(rest, p)
	}
	return rest
}

// remembered reports whether LIDs that a port claims are kept for others. Such claims are rare.
func (s *SM) remembered(lid ib.LID, count int) bool {
	for _, r := range s.lids {
		if lid <= r.Last && r.First < lid+ib.LID(count) {
			return true
		}
	}
	return false
}

// allocation records which LIDs are given to which ports.
type allocation struct {
	taken []bool
	given map[int32]ib.LID
	next  map[int]int // by count: where to continue searching
}

func (a *allocation) fits(lid, count int) bool {
	if lid == 0 || lid%count != 0 || lid+count-1 > maxLIDs {
		return false
	}
	for l := range count {
		if a.taken[lid+l] {
			return false
		}
	}
	return true
}

func (a *allocation) give(p int32, lid ib.LID, count int) {
	a.given[p] = lid
	for l := range count {
		a.taken[int(lid)+l] = true
	}
}

// free finds the first free range of count LIDs, aligned to count; 0: there is none.
func (a *allocation) free(reserved []bool, count int) ib.LID {
	if a.next == nil {
		a.next = map[int]int{}
	}
search:
	for lid := max(count, a.next[count]); lid+count-1 <= maxLIDs; lid += count {
		for l := range count {
			if reserved[lid+l] {
				continue search
			}
		}
		a.next[count] = lid + count
		return ib.LID(lid)
	}
	a.next[count] = 0
	return 0
}
