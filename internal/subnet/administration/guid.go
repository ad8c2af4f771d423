package administration

import (
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// guidTables are the GUIDs that ports were given beside their own (IBA 15.2.5.18), as virtual functions have them.
type guidTables struct {
	byPort  map[uint64][]uint64 // by port GUID: the table, as far as something stands in it
	owner   map[uint64]uint64   // port GUID by given GUID
	changed []GUIDBlock         // to be written to ports
	next    uint32              // of the GUIDs that the administration makes up
}

// GUIDBlock is eight entries of the table of a port.
type GUIDBlock struct {
	Port  uint64 // GUID
	Block uint8
}

const guidsInBlock = len(mad.GUIDInfo{})

// openFabricsGUID is the beginning of GUIDs that the administration makes up (opensm.conf, sm_assigned_guid).
const openFabricsGUID = 0x001405 << 40

// setGUIDs answers Set and Delete of GUIDInfoRecord. The answer has the block as it is then: a GUID that was not given is 0.
func (a *SA) setGUIDs(r *request) {
	rec, err := mad.ParseGUIDInfoRecord(r.data)
	if err != nil {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	if !r.has(mad.GUIDComponentLID | mad.GUIDComponentBlock) {
		a.refuse(r, mad.SAInsufficientComponents)
		return
	}
	n := a.live
	p := n.EndPortOfLID(rec.LID)
	if p == topology.None || p != r.port && !r.trusted || (int(rec.Block)+1)*guidsInBlock > int(n.Ports[p].Info.GUIDCap)+guidsInBlock-1 {
		a.refuse(r, mad.SARequestInvalid)
		return
	}
	guid := n.Ports[p].GUID
	for i := range guidsInBlock {
		at := int(rec.Block)*guidsInBlock + i
		if at == 0 || at >= int(n.Ports[p].Info.GUIDCap) || !r.has(mad.GUIDComponentFirst<<i) {
			continue // the first is the port's own
		}
		want := uint64(0)
		if r.sa.Method == mad.MethodSet {
			if want = rec.Table[i]; want == 0 {
				want = a.makeUpGUID()
			}
			if owner, given := a.guids.owner[want]; given && (owner != guid || a.guids.byPort[guid][at] != want) || n.EndPortOfGUID(want) != topology.None {
				want = 0 // another has it
			}
		}
		a.giveGUID(guid, at, want)
	}
	if b := (GUIDBlock{guid, rec.Block}); !slices.Contains(a.guids.changed, b) {
		a.guids.changed = append(a.guids.changed, b)
	}
	rec.LID, rec.Table = n.Ports[p].Info.LID, a.GUIDs(GUIDBlock{guid, rec.Block})
	a.one(r, rec.Append(nil))
}

// makeUpGUID is a GUID that nobody has; 0 where the administration is to give out none.
func (a *SA) makeUpGUID() uint64 {
	if a.cfg.AssignedGUID == 0 {
		return 0
	}
	for range 1 << 16 {
		a.guids.next = (a.guids.next + 1) & 0xffffff
		g := openFabricsGUID | uint64(a.cfg.AssignedGUID)<<32 | uint64(a.guids.next)
		if _, given := a.guids.owner[g]; !given && a.live.EndPortOfGUID(g) == topology.None {
			return g
		}
	}
	return 0
}

// giveGUID writes an entry of a port's table, 0 to empty it, and tells of GIDs that come and go.
func (a *SA) giveGUID(port uint64, at int, guid uint64) {
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
func (a *SA) takeGUIDs(port uint64) {
	for at := range a.guids.byPort[port] {
		a.giveGUID(port, at, 0)
	}
	delete(a.guids.byPort, port)
}

// endPortOf is the end port that has a GUID as its own or was given it, none where there is none.
func (a *SA) endPortOf(guid uint64) int32 {
	if owner, given := a.guids.owner[guid]; given {
		guid = owner
	}
	return a.live.EndPortOfGUID(guid)
}

// eachGUIDInfo shows the GUIDs of a port.
func (a *SA) eachGUIDInfo(p int32, emit func([]byte)) {
	port := &a.live.Ports[p]
	for b := range (int(port.Info.GUIDCap) + guidsInBlock - 1) / guidsInBlock {
		r := mad.GUIDInfoRecord{LID: port.Info.LID, Block: uint8(b), Table: a.GUIDs(GUIDBlock{port.GUID, uint8(b)})}
		emit(r.Append(nil))
	}
}

// ChangedGUIDs are the blocks of given GUIDs that have changed since the last call: they are to be written to the ports.
func (a *SA) ChangedGUIDs() []GUIDBlock {
	changed := a.guids.changed
	a.guids.changed = nil
	return changed
}

// GUIDBlocks is how many blocks of the table of a port have something in them, by port GUID.
func (a *SA) GUIDBlocks(port uint64) int {
	return (len(a.guids.byPort[port]) + guidsInBlock - 1) / guidsInBlock
}

// GUIDs is a block of the table of a port, by port GUID, as it is to be.
func (a *SA) GUIDs(b GUIDBlock) (g mad.GUIDInfo) {
	if t := a.guids.byPort[b.Port]; int(b.Block)*guidsInBlock < len(t) {
		copy(g[:], t[int(b.Block)*guidsInBlock:])
	}
	if b.Block == 0 {
		g[0] = b.Port
	}
	return g
}
