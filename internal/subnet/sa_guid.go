package subnet

import (
	"slices"

	"github.com/softvpi/softvpi/wire/mad"
)

// guidTables are the GUIDs that ports were given beside their own (IBA 15.2.5.18), as virtual functions have them.
type guidTables struct {
	byPort  map[uint64][]uint64 // by port GUID: the table, as far as something stands in it
	owner   map[uint64]uint64   // port GUID by given GUID
	changed []guidBlock         // to be written to ports
	next    uint32              // of the GUIDs that the administration makes up
}

// guidBlock is eight entries of the table of a port.
type guidBlock struct {
	port  uint64
	block uint8
}

const guidsInBlock = len(mad.GUIDInfo{})

// Components of a GUIDInfoRecord beside its GUIDs, which stand from bit 4 on.
const (
	guidLID   = 1 << 0
	guidBlk   = 1 << 1
	guidFirst = 4
)

// openFabricsGUID is the beginning of GUIDs that the administration makes up (opensm.conf, sm_assigned_guid).
const openFabricsGUID = 0x001405 << 40

// setGUIDs answers Set and Delete of GUIDInfoRecord. The answer has the block as it is then: a GUID that was not given is 0.
func (a *administration) setGUIDs(r *request) {
	rec, err := mad.ParseGUIDInfoRecord(r.data)
	if err != nil {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	if !r.has(guidLID | guidBlk) {
		a.refuse(r, mad.SAInsufficientComponents)
		return
	}
	n := a.sm.live
	p := n.EndPortOfLID(rec.LID)
	if p == none || p != r.port && !r.trusted || (int(rec.Block)+1)*guidsInBlock > int(n.Ports[p].Info.GUIDCap)+guidsInBlock-1 {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	guid := n.Ports[p].GUID
	for i := range guidsInBlock {
		at := int(rec.Block)*guidsInBlock + i
		if at == 0 || at >= int(n.Ports[p].Info.GUIDCap) || !r.has(1<<(guidFirst+i)) {
			continue // the first is the port's own
		}
		want := uint64(0)
		if r.sa.Method == mad.MethodSet {
			if want = rec.Table[i]; want == 0 {
				want = a.makeUpGUID()
			}
			if owner, given := a.guids.owner[want]; given && (owner != guid || a.guids.byPort[guid][at] != want) || n.EndPortOfGUID(want) != none {
				want = 0 // another has it
			}
		}
		a.giveGUID(guid, at, want)
	}
	if b := (guidBlock{guid, rec.Block}); !slices.Contains(a.guids.changed, b) {
		a.guids.changed = append(a.guids.changed, b)
	}
	rec.LID, rec.Table = n.Ports[p].Info.LID, a.guidBlock(p, rec.Block)
	a.one(r, rec.Append(nil))
}

// makeUpGUID is a GUID that nobody has; 0 where the administration is to give out none.
func (a *administration) makeUpGUID() uint64 {
	if a.sm.cfg.AssignedGUID == 0 {
		return 0
	}
	for range 1 << 16 {
		a.guids.next = (a.guids.next + 1) & 0xffffff
		g := openFabricsGUID | uint64(a.sm.cfg.AssignedGUID)<<32 | uint64(a.guids.next)
		if _, given := a.guids.owner[g]; !given && a.sm.live.EndPortOfGUID(g) == none {
			return g
		}
	}
	return 0
}

// giveGUID writes an entry of a port's table, 0 to empty it, and tells of GIDs that come and go.
func (a *administration) giveGUID(port uint64, at int, guid uint64) {
	t := a.guids.byPort[port]
	for len(t) <= at {
		t = append(t, 0)
	}
	a.guids.byPort[port] = t
	old := t[at]
	if old == guid {
		return
	}
	a.revision++
	if t[at] = guid; old != 0 {
		delete(a.guids.owner, old)
		a.notify(mad.TrapGIDOutOfService, a.gid(old))
	}
	if guid != 0 {
		a.guids.owner[guid] = port
		a.notify(mad.TrapGIDInService, a.gid(guid))
	}
}

// takeGUIDs takes back what was given to a port that has left.
func (a *administration) takeGUIDs(port uint64) {
	for at := range a.guids.byPort[port] {
		a.giveGUID(port, at, 0)
	}
	delete(a.guids.byPort, port)
}

// guidBlock is a block of the table of an end port.
func (a *administration) guidBlock(p int32, block uint8) (g mad.GUIDInfo) {
	port := &a.sm.live.Ports[p]
	if t := a.guids.byPort[port.GUID]; int(block)*guidsInBlock < len(t) {
		copy(g[:], t[int(block)*guidsInBlock:])
	}
	if block == 0 {
		g[0] = port.GUID
	}
	return g
}

// endPortOf is the end port that has a GUID as its own or was given it, none where there is none.
func (a *administration) endPortOf(guid uint64) int32 {
	if owner, given := a.guids.owner[guid]; given {
		guid = owner
	}
	return a.sm.live.EndPortOfGUID(guid)
}

// eachGUIDInfo shows the GUIDs of a port.
func (a *administration) eachGUIDInfo(p int32, emit func([]byte)) {
	port := &a.sm.live.Ports[p]
	for b := range (int(port.Info.GUIDCap) + guidsInBlock - 1) / guidsInBlock {
		r := mad.GUIDInfoRecord{LID: port.Info.LID, Block: uint8(b), Table: a.guidBlock(p, uint8(b))}
		emit(r.Append(nil))
	}
}

// setUpGUIDs asks for the blocks that have changed to be written.
func (s *SM) setUpGUIDs() {
	for _, b := range s.sa.guids.changed {
		s.pushGUIDs(b)
	}
	s.sa.guids.changed = nil
}

// setUpGUIDsOf asks for all blocks of a port that may have forgotten them to be written.
func (s *SM) setUpGUIDsOf(p int32) {
	port := &s.cur.Ports[p]
	if port.reach && port.Info.PortState == mad.PortInit {
		for b := 0; b*guidsInBlock < len(s.sa.guids.byPort[port.GUID]); b++ {
			s.pushGUIDs(guidBlock{port.GUID, uint8(b)})
		}
	}
}

func (s *SM) pushGUIDs(b guidBlock) {
	if p := s.cur.EndPortOfGUID(b.port); p != none {
		s.x.push(work{at: p, attr: mad.AttrGUIDInfo, mod: uint32(b.block), set: true})
	}
}

// fillGUIDs writes a block as it is to be.
func (s *SM) fillGUIDs(w *work) (g mad.GUIDInfo) {
	port := &s.cur.Ports[w.at]
	if t := s.sa.guids.byPort[port.GUID]; int(w.mod)*guidsInBlock < len(t) {
		copy(g[:], t[int(w.mod)*guidsInBlock:])
	}
	if w.mod == 0 {
		g[0] = port.GUID
	}
	return g
}
