package subnet

import (
	"maps"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// A manager that takes over does not know the groups of the one before it until their members join again, but the switches pass
// on their packets all the while. It reads the multicast forwarding tables, goes on serving the ports that they lead to, on
// its own tree, and gives a group that is made anew the multicast LID at which its member is served already.

// legacy are the ports at a multicast LID of another manager, by GUID; false: a switch that its packets pass.
type legacy map[uint64]bool

// legacyTime is how long the ports are served that have not joined again.
const legacyTime = 2 * time.Minute

const (
	mftBlock     = 32 // multicast LIDs in a block of a table
	mftPositions = 16 // ports in an entry
)

// inherit reads the multicast forwarding tables of switches that somebody has set up before.
func (s *SM) inherit() {
	s.stage = stageInherit
	s.inheriting = false
	if s.cfg.NoMulticast {
		return
	}
	for _, node := range s.cur.Switches {
		if nd := &s.cur.Nodes[node]; nd.SwInfo != nil && s.cur.Ports[nd.First].Info.LID != 0 {
			s.readGroups(node, 0)
		}
	}
}

// readGroups asks for a block of the table of a switch, where it has that.
func (s *SM) readGroups(node int32, block uint32) {
	nd := &s.cur.Nodes[node]
	top := min(int(lastMLID), int(firstMLID)+int(nd.SwInfo.MulticastFDBCap)-1)
	if s.cur.Ports[nd.First].Info.CapabilityMask&mad.CapIsMulticastFDBTopSupported != 0 && nd.SwInfo.MulticastFDBTop != 0 {
		top = min(top, int(nd.SwInfo.MulticastFDBTop))
	}
	if int(firstMLID)+int(block)*mftBlock > top {
		return
	}
	for position := range uint32(nd.Info.NumPorts)/mftPositions + 1 {
		s.x.push(work{at: nd.First, attr: mad.AttrMulticastForwardingTable, mod: position<<28 | block})
	}
}

// onGroups takes a block. Tables are filled from the beginning, so the next one is of interest only behind one with entries.
func (s *SM) onGroups(w work, t mad.MulticastForwardingTable) {
	node := s.cur.Ports[w.at].Node
	guid := s.cur.Nodes[node].Info.NodeGUID
	have := s.tables[guid]
	if have == nil {
		have = newTables()
		s.tables[guid] = have
	}
	block := w.mod & 0x1ff
	first := t != (mad.MulticastForwardingTable{}) && !have.more[block]
	have.mft[w.mod] = t
	if first {
		if have.more == nil {
			have.more = map[uint32]bool{}
		}
		have.more[block] = true
		s.readGroups(node, block+1)
	}
}

// inherited finds out whom the tables lead to.
func (s *SM) inherited() {
	a := &s.sa
	a.legacies = map[ib.LID]legacy{}
	for _, node := range s.cur.Switches {
		nd := &s.cur.Nodes[node]
		t := s.tables[nd.Info.NodeGUID]
		if t == nil {
			continue
		}
		for at, block := range t.mft {
			for i, mask := range block {
				for bit := range mftPositions {
					if mask>>bit&1 != 0 {
						s.inheritPort(firstMLID+ib.LID(int(at&0x1ff)*mftBlock+i), nd, int(at>>28)*mftPositions+bit)
					}
				}
			}
		}
	}
	a.legaciesEnd = clock.Never
	if len(a.legacies) > 0 {
		a.legaciesEnd = s.now.Add(legacyTime)
	}
}

// inheritPort notes that a switch passes packets to a multicast LID on by a port.
func (s *SM) inheritPort(mlid ib.LID, nd *Node, port int) {
	if port > int(nd.Info.NumPorts) || mlid > lastMLID {
		return
	}
	l := s.sa.legacies[mlid]
	if l == nil {
		l = legacy{}
		s.sa.legacies[mlid] = l
	}
	self := s.cur.Ports[nd.First].GUID
	l[self] = l[self] || port == 0
	if q := s.cur.Ports[nd.First+int32(port)].Peer; port != 0 && q != none && !s.cur.isSwitch(q) && s.cur.Ports[q].reach {
		l[s.cur.Ports[q].GUID] = true
	}
}

// legaciesOver forgets the ports that have not joined again in time.
func (a *administration) legaciesOver() {
	if a.sm.now.Before(a.legaciesEnd) {
		return
	}
	a.legacies, a.legaciesEnd = nil, clock.Never
	a.sm.groupsChanged = true
}

// settled notes that a port is served, or not, as a member of a group: what it was before does not count any more.
func (a *administration) settled(mlid ib.LID, guid uint64) {
	l := a.legacies[mlid]
	if _, there := l[guid]; !there {
		return
	}
	if delete(l, guid); !slices.Contains(slices.Collect(maps.Values(l)), true) {
		delete(a.legacies, mlid)
	}
}

// mlidFor is the multicast LID of a new group: that which the port asks for, or one at which it is served already, or a free one; 0
// when the tables of the switches are full.
func (a *administration) mlidFor(r *request, wanted ib.LID, guid uint64) ib.LID {
	taken := a.takenMLIDs()
	if r.has(mad.MemberMLID) && wanted >= firstMLID && int(wanted-firstMLID) < a.roomForMLIDs() && !taken[wanted] {
		return wanted
	}
	for _, mlid := range slices.Sorted(maps.Keys(a.legacies)) {
		if a.legacies[mlid][guid] && !taken[mlid] {
			return mlid
		}
	}
	return a.freeMLID()
}
