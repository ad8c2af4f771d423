package administration

import (
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/subnet/partition"
	"github.com/softvpi/softvpi/internal/subnet/routing"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Config configures an administration. It has no defaults: the manager has checked it.
type Config struct {
	Prefix       uint64 // of the subnet
	Key          uint64 // SM_Key for trusted requests
	PacketLife   uint8  // lifetime of packets and paths, a code of PathRecord
	Partitions   *partition.Config
	Policy       *QoSPolicy    // service levels of paths; nil: 0, or those of the routes
	PrefixRoutes []PrefixRoute // to other subnets; the first match counts
	AssignedGUID uint8         // the byte after the OUI in GUIDs generated for those who ask for any; 0: none are generated
}

// LinkLocalPrefix is the default subnet prefix (IBA 4.1.1): all ports accept it.
const LinkLocalPrefix = 0xfe80000000000000

// Address is the sender or destination of an administration MAD.
type Address struct {
	LID       ib.LID
	QPN       ib.QPN
	SL        uint8
	PKeyIndex uint16
}

// Manager is what the administration needs from its subnet manager. Ports are those of the subnet passed
// to SA.Up.
type Manager interface {
	// Master reports whether the manager is the subnet's master: only then the administration answers.
	Master() bool
	// Tables returns a switch's tables by node GUID: its forwarding table, and the blocks of its multicast
	// tables by attribute modifier.
	Tables(node uint64) (unicast []byte, multicast map[uint32]mad.MulticastForwardingTable)
	// SMInfo returns the SMInfo of the manager at an end port; false: there is none.
	SMInfo(p int32) (mad.SMInfo, bool)
	// SLtoVL returns the table of a port towards its link; zeros if the manager has set none.
	SLtoVL(p int32) mad.SLtoVLMappingTable
	// VLArbitration returns a block, 1 to 4, of the table of a port; zeros if the manager has set none.
	VLArbitration(p int32, block uint8) mad.VLArbitrationTable
	// Send sends a MAD, which it does not keep. If too many wait to be sent it is dropped, as if lost.
	Send(to Address, m *mad.SA)
	// Crowded reports whether so much waits to be sent that multi-packet transfers should pause.
	Crowded() bool
	// WrongKey reports a request with a wrong SM_Key.
	WrongKey(from ib.LID, key uint64)
}

// Routes tells how packets travel in the subnet that was brought up.
type Routes struct {
	*routing.Routes
	SwitchOf []int32 // by node: its number in the routes, topology.None if it is no switch
}

// SA answers queries about the subnet, and keeps groups, services and subscriptions. The caller drives it:
// see the package. After a request the manager may have to write something, which GroupsDue and GUIDsDue
// tell.
type SA struct {
	cfg Config
	m   Manager
	now clock.Time

	live   *topology.Subnet // the subnet that answers are based on; nil before the first sweep
	routes Routes           // of live

	came  mad.SA  // the MAD being handled
	asked request // the request being answered
	reply mad.SA  // the response being sent

	out      map[peer]*transfer
	outOrder []peer // for a deterministic order
	held     int    // bytes in out
	clients  map[client]*habits
	in       map[peer]*incoming

	groups      map[ib.GID]*group
	groupsDue   bool
	legacies    map[ib.LID]Served // ports served at the previous manager's multicast LIDs
	guids       guidTables
	services    []*service
	legaciesEnd clock.Time
	leaseEnds   clock.Time // no service's lease expires earlier
	subs        []*subscription
	reports     []*report
	tid         uint32
	revision    uint64 // changes with the registrations
}

// New creates a manager's administration, with the groups of the partitions.
func New(cfg Config, m Manager) *SA {
	a := &SA{
		cfg: cfg, m: m, leaseEnds: clock.Never, legaciesEnd: clock.Never,
		out: map[peer]*transfer{}, in: map[peer]*incoming{}, groups: map[ib.GID]*group{}, clients: map[client]*habits{},
		guids: guidTables{byPort: map[uint64][]uint64{}, owner: map[uint64]uint64{}},
	}
	a.makeGroups()
	return a
}

// Advance does what is due.
func (a *SA) Advance(now clock.Time) {
	a.now = now
	a.pump()
	for key, in := range a.in {
		if a.now.Sub(in.since) > 10*time.Second {
			delete(a.in, key)
		}
	}
	a.expire()
	a.legaciesOver()
	a.repeat()
}

// Deadline returns when Advance must be called.
func (a *SA) Deadline() clock.Time {
	d := clock.Min(a.leaseEnds, a.legaciesEnd)
	for _, t := range a.out {
		if at := t.s.Deadline(); at > 0 {
			d = clock.Min(d, clock.Time(at))
		}
	}
	for _, in := range a.in {
		d = clock.Min(d, in.since.Add(10*time.Second+1))
	}
	for _, r := range a.reports {
		d = clock.Min(d, r.at)
	}
	return d
}

// Up makes answers come from a subnet that has been brought up. Subscribers are told which ports came and
// went.
func (a *SA) Up(now clock.Time, n *topology.Subnet, routes Routes) {
	a.now = now
	old := a.live
	a.live, a.routes = n, routes
	a.groupsDue = a.groupsDue || len(a.groups) > 0 && old == nil
	if old == nil {
		return
	}
	for _, p := range n.EndPorts() {
		if guid := n.Ports[p].GUID; old.EndPortOfGUID(guid) == topology.None {
			a.notify(mad.TrapGIDInService, a.gid(guid))
		}
	}
	for _, p := range old.EndPorts() {
		guid := old.Ports[p].GUID
		if n.EndPortOfGUID(guid) != topology.None {
			continue
		}
		a.notify(mad.TrapGIDOutOfService, a.gid(guid))
		a.takeGUIDs(guid)
		a.gone(guid)
	}
}

// GroupsDue reports whether the switches' multicast tables may differ from what the groups need.
func (a *SA) GroupsDue() bool { return a.groupsDue }

// GroupsWritten says that what Receivers returns is being written to the switches, or that nothing needs
// to be.
func (a *SA) GroupsWritten() { a.groupsDue = false }

// GUIDsDue reports whether ChangedGUIDs has something to write.
func (a *SA) GUIDsDue() bool { return len(a.guids.changed) > 0 }

// gid returns the first GID of a port.
func (a *SA) gid(guid uint64) (g ib.GID) {
	for i := range 8 {
		g[i], g[8+i] = byte(a.cfg.Prefix>>(56-8*i)), byte(guid>>(56-8*i))
	}
	return g
}

// portOfGID returns the end port of a GID with the subnet's prefix or the link-local one. foreign: the GID
// belongs to another subnet.
func (a *SA) portOfGID(g ib.GID) (p int32, foreign bool) {
	var prefix, guid uint64
	for i := range 8 {
		prefix, guid = prefix<<8|uint64(g[i]), guid<<8|uint64(g[8+i])
	}
	if prefix != a.cfg.Prefix && prefix != LinkLocalPrefix {
		return topology.None, true
	}
	return a.endPortOf(guid), false
}
