package administration

import (
	"slices"

	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// guidTables holds the additional GUIDs of ports (IBA 15.2.5.18), such as those of virtual functions.
type guidTables struct {
	byPort  map[uint64][]uint64 // by port GUID: the table, up to its last entry in use
	owner   map[uint64]uint64   // port GUID by assigned GUID
	changed []GUIDBlock         // to be written to ports
	next    uint32              // counter for generated GUIDs
}

// GUIDBlock is eight entries of the table of a port.
type GUIDBlock struct {
	Port  uint64 // GUID
	Block uint8
}

const guidsInBlock = len(mad.GUIDInfo{})

// openFabricsGUID is the prefix of generated GUIDs (opensm.conf, sm_assigned_guid).
const openFabricsGUID = 0x001405 << 40

// setGUIDs answers Set and Delete of GUIDInfoRecord. The response holds the resulting block: a GUID that
// was not granted is 0.
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
			if owner, given := a.guids.owner[want]; given && (owner != guid || a.guidAt(guid, at) != want) ||
				n.EndPortOfGUID(want) != topology.None {
				want = 0 // it belongs to another port
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

// guidAt returns an entry of a port's table, 0 beyond what is in use.
func (a *SA) guidAt(port uint64, at int) uint64 {
	if t := a.guids.byPort[port]; at < len(t) {
		return t[at]
	}
	return 0
}

// makeUpGUID returns an unused GUID, or 0 if the administration may not generate any.
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

// giveGUID writes an entry of a port's table, 0 to clear it, and reports GIDs that come and go.
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

// takeGUIDs takes back the GUIDs of a port that has left.
func (a *SA) takeGUIDs(port uint64) {
	for at := range a.guids.byPort[port] {
		a.giveGUID(port, at, 0)
	}
	delete(a.guids.byPort, port)
}

// endPortOf returns the end port that has a GUID as its own or was assigned it, or None.
func (a *SA) endPortOf(guid uint64) int32 {
	if owner, given := a.guids.owner[guid]; given {
		guid = owner
	}
	return a.live.EndPortOfGUID(guid)
}

// eachGUIDInfo emits the GUIDs of a port.
func (a *SA) eachGUIDInfo(p int32, emit func([]byte)) {
	port := &a.live.Ports[p]
	for b := range (int(port.Info.GUIDCap) + guidsInBlock - 1) / guidsInBlock {
		r := mad.GUIDInfoRecord{LID: port.Info.LID, Block: uint8(b), Table: a.GUIDs(GUIDBlock{port.GUID, uint8(b)})}
		emit(r.Append(nil))
	}
}

// ChangedGUIDs returns the blocks that have changed since the last call and must be written to the ports.
func (a *SA) ChangedGUIDs() []GUIDBlock {
	changed := a.guids.changed
	a.guids.changed = nil
	return changed
}

// GUIDBlocks returns how many blocks of a port's table are in use, by port GUID.
func (a *SA) GUIDBlocks(port uint64) int {
	return (len(a.guids.byPort[port]) + guidsInBlock - 1) / guidsInBlock
}

// GUIDs returns the wanted state of a block of a port's table.
func (a *SA) GUIDs(b GUIDBlock) (g mad.GUIDInfo) {
	if t := a.guids.byPort[b.Port]; int(b.Block)*guidsInBlock < len(t) {
		copy(g[:], t[int(b.Block)*guidsInBlock:])
	}
	if b.Block == 0 {
		g[0] = b.Port
	}
	return g
}
