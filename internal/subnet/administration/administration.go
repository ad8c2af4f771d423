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

// Config is what an administration is told once. It has no defaults: the manager has checked it.
type Config struct {
	Prefix       uint64 // of the subnet
	Key          uint64 // SM_Key of trusted requests
	PacketLife   uint8  // life time of packets and paths, a code of PathRecord
	Partitions   *partition.Config
	Policy       *QoSPolicy    // service levels of paths; nil: all are 0, or those of the routes
	PrefixRoutes []PrefixRoute // to other subnets, the first that fits counts
	AssignedGUID uint8         // marks the GUIDs that are made up for who asks for any; 0: nobody is given one
}

// LinkLocalPrefix is the subnet prefix of ports that have not been given another (IBA 4.1.1): all answer to it.
const LinkLocalPrefix = 0xfe80000000000000

// Address is where a MAD of the class comes from or goes to.
type Address struct {
	LID       ib.LID
	QPN       ib.QPN
	SL        uint8
	PKeyIndex uint16
}

// Manager is what the administration asks of the subnet manager that it belongs to. Ports are those of the subnet of SA.Up.
type Manager interface {
	// Master says whether the manager is the one that the subnet has: only then its administration answers.
	Master() bool
	// Tables is what a switch has, by node GUID: its forwarding table, and the blocks of its multicast tables by attribute modifier.
	Tables(node uint64) (unicast []byte, multicast map[uint32]mad.MulticastForwardingTable)
	// SMInfo is what the manager at an end port says of itself; false: there is none.
	SMInfo(p int32) (mad.SMInfo, bool)
	// SLtoVL is the table of a port towards its link; zeros where the manager has set none.
	SLtoVL(p int32) mad.SLtoVLMappingTable
	// VLArbitration is a block, 1 to 4, of the table of a port; zeros where the manager has set none.
	VLArbitration(p int32, block uint8) mad.VLArbitrationTable
	// Send sends a MAD, which is not kept. Where too much waits to be sent it is dropped, as if lost.
	Send(to Address, m *mad.SA)
	// Crowded says whether so much waits to be sent that transfers of several packets had better wait.
	Crowded() bool
	// WrongKey tells that a request with a wrong SM_Key came.
	WrongKey(from ib.LID, key uint64)
}

// Routes is how packets of the subnet that was brought up travel.
type Routes struct {
	*routing.Routes
	SwitchOf []int32 // by node: its number in the routes, topology.None for what is no switch
}

// SA answers questions about the subnet, and keeps groups, services and subscriptions. It is driven: see the package. What changes in it by
// a request may have the manager something to write, which GroupsDue and GUIDsDue tell.
type SA struct {
	cfg Config
	m   Manager
	now clock.Time

	live   *topology.Subnet // what questions are answered from; nil before a first sweep
	routes Routes           // of live

	came  mad.SA  // what is being looked at
	asked request // what is being answered
	reply mad.SA  // what is being sent

	out      map[peer]*transfer
	outOrder []peer // for a fixed order
	held     int    // bytes in out
	clients  map[client]*habits
	in       map[peer]*incoming

	groups      map[ib.GID]*group
	groupsDue   bool
	legacies    map[ib.LID]Served // who is served at the multicast LIDs of the manager before this one
	guids       guidTables
	services    []*service
	legaciesEnd clock.Time
	leaseEnds   clock.Time // no service's lease is over before
	subs        []*subscription
	reports     []*report
	tid         uint32
	revision    uint64 // changes with what ports register
}

// New makes the administration of a manager, with the groups of the partitions.
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

// Deadline is when Advance is wanted.
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

// Up has questions answered from a subnet that has been brought up. Subscribers are told of ports that came and went.
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

// GroupsDue says whether the multicast tables of switches may differ from what the groups want.
func (a *SA) GroupsDue() bool { return a.groupsDue }

// GroupsWritten tells that what Receivers returns is being written to the switches, or that nothing is to be.
func (a *SA) GroupsWritten() { a.groupsDue = false }

// GUIDsDue says whether ChangedGUIDs has something to write.
func (a *SA) GUIDsDue() bool { return len(a.guids.changed) > 0 }

// gid is the first GID of a port.
func (a *SA) gid(guid uint64) (g ib.GID) {
	for i := range 8 {
		g[i], g[8+i] = byte(a.cfg.Prefix>>(56-8*i)), byte(guid>>(56-8*i))
	}
	return g
}

// portOfGID is the end port of a GID: of the subnet's prefix or the link-local one. foreign: it is of another subnet.
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
