package ipoib

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
)

// State is the connection state of an interface.
type State uint8

// The states. In all but Up the interface is disconnected: packets are dropped.
const (
	Down        State = iota // the port is not active, or the interface has no queue pair
	NoPartition              // the port's table does not contain the interface's P_Key
	Joining                  // the broadcast group is being joined
	Up
)

// String returns the state in a word or two.
func (s State) String() string {
	switch s {
	case Down:
		return "port down"
	case NoPartition:
		return "no partition"
	case Joining:
		return "joining"
	case Up:
		return "up"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Errors of resolutions.
var (
	ErrDown        = errors.New("the IPoIB interface is disconnected")
	ErrUnreachable = errors.New("no neighbour answers for the address")
)

// Port is what an interface needs to know about its port.
type Port struct {
	Active bool
	LID    ib.LID
	LMC    uint8
	GID    ib.GID // at index 0
	SMLID  ib.LID
	SMSL   uint8
	PKeys  []ib.PKey
	MTU    ib.MTU // of the link
	// Reregister changes whenever the subnet manager asks clients to reregister.
	Reregister uint64
}

// Interface is one IPoIB interface.
type Interface struct {
	cfg    Config
	random func() uint64

	port     Port
	qpn      ib.QPN
	state    State
	pkey     ib.PKey
	index    int // of pkey in the port's table
	mtu      int
	warned   int        // the group's MTU for which a warning was given
	unknown  clock.Time // when the next packet of an unknown protocol is reported
	next     clock.Time
	actions  []Action
	taken    int
	counters Counters

	queries map[uint64]*query
	tid     uint64

	groups    map[ib.GID]*group
	broadcast *group
	monitor   clock.Time // its next run
	runs      int

	neighbours map[netip.Addr]*neighbour
	local      map[netip.Addr]*endpoint
	prefixes   []netip.Prefix
	routes     []Route
	listened   []netip.Addr // groups that the system listened to before the interface was disconnected
	ageing     clock.Time   // next run of the endpoint monitor
}

// New creates an interface that is down. random provides numbers for transaction IDs and for spreading
// retransmissions. The error is a *ConfigError.
func New(cfg Config, random func() uint64) (*Interface, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Interface{
		cfg: cfg, random: random, next: clock.Never, mtu: cfg.MTU, monitor: clock.Never, ageing: clock.Never, tid: random(),
		queries: map[uint64]*query{}, groups: map[ib.GID]*group{}, neighbours: map[netip.Addr]*neighbour{},
		local: map[netip.Addr]*endpoint{},
	}, nil
}

// State returns the state of the interface.
func (i *Interface) State() State { return i.state }

// MTU returns the size of the largest IP packet that can currently be sent.
func (i *Interface) MTU() int { return i.mtu }

// PKey returns the P_Key of packets, with its index in the port's table; 0 while there is none.
func (i *Interface) PKey() (key ib.PKey, index int) { return i.pkey, i.index }

// Address returns the interface's link-layer address.
func (i *Interface) Address() Address { return Address{QPN: i.qpn, GID: i.port.GID} }

// QKey returns the Q_Key of the broadcast group, which the queue pair must have; 0 before it is joined.
func (i *Interface) QKey() uint32 {
	if i.broadcast == nil {
		return 0
	}
	return i.broadcast.rec.QKey
}

// Counters returns the counters.
func (i *Interface) Counters() Counters { return i.counters }

// Deadline returns when Advance must be called next.
func (i *Interface) Deadline() clock.Time { return i.next }

func (i *Interface) arm(t clock.Time) { i.next = clock.Min(i.next, t) }

// SetPort tells the interface the state of its port. Memberships and knowledge about neighbours are
// renewed if the change requires it.
func (i *Interface) SetPort(now clock.Time, p Port) {
	p.PKeys = slices.Clone(p.PKeys)
	old := i.port
	i.port = p
	i.settle(now, old)
}

// SetQueuePair tells the interface the number of its queue pair; 0: it has none.
func (i *Interface) SetQueuePair(now clock.Time, qpn ib.QPN) {
	if i.qpn == qpn {
		return
	}
	i.disconnect("the queue pair changes")
	i.qpn = qpn
	i.settle(now, i.port)
}

// settle adapts the state to the port.
func (i *Interface) settle(now clock.Time, old Port) {
	if !i.port.Active || i.qpn == 0 || i.port.LID == 0 {
		i.disconnect("the port is not active")
		i.state = Down
		return
	}
	key, index := i.partition()
	if key == 0 {
		i.disconnect("the port's table does not have the partition")
		i.state = NoPartition
		return
	}
	if key != i.pkey || i.port.GID != old.GID {
		i.disconnect("the partition or the port's GID changes")
	}
	i.pkey, i.index = key, index
	switch {
	case i.state == Down || i.state == NoPartition:
		i.connect(now)
	case i.port.LID != old.LID || i.port.LMC != old.LMC || i.port.SMLID != old.SMLID || i.port.Reregister != old.Reregister:
		i.renew(now, i.port.LID != old.LID)
	}
}

// partition returns the P_Key in the port's table that the interface uses, 0 if there is none (WinOF 5.50,
// 5.2).
func (i *Interface) partition() (ib.PKey, int) {
	limited := -1
	for n, k := range i.port.PKeys {
		switch {
		case i.cfg.PKey == 0 && n == 0 && k.Valid():
			return k, 0
		case !k.Valid() || i.cfg.PKey == 0 || k.Base() != i.cfg.PKey.Base():
		case k.Full():
			return k, n
		case limited < 0:
			limited = n
		}
	}
	if limited < 0 || i.cfg.PKey.Full() {
		return 0, 0
	}
	return i.port.PKeys[limited], limited
}

// connect begins to join the broadcast group.
func (i *Interface) connect(now clock.Time) {
	i.state = Joining
	g := &group{mgid: broadcastMGID(i.cfg.Scope, i.pkey), want: joinFull, stays: true}
	i.broadcast, i.groups[g.mgid] = g, g
	i.join(now, g)
}

// up is called when the broadcast group is joined.
func (i *Interface) up(now clock.Time) {
	before := i.mtu
	i.mtu = min(i.cfg.MTU, i.broadcast.rec.MTU.Bytes()-HeaderLen)
	if i.port.MTU.Valid() {
		i.mtu = min(i.mtu, i.port.MTU.Bytes()-HeaderLen)
	}
	if subnet := i.broadcast.rec.MTU.Bytes(); i.cfg.MTU+HeaderLen > subnet && i.warned != subnet {
		i.warned = subnet
		i.do(Event{Kind: MTUAboveSubnet, MTU: i.cfg.MTU, SubnetMTU: subnet - HeaderLen})
	}
	if i.state == Up {
		if i.mtu != before {
			i.do(Event{Kind: Connected, MTU: i.mtu})
		}
		return
	}
	i.state = Up
	i.do(Event{Kind: Connected, MTU: i.mtu})
	i.monitor, i.runs = now.Add(monitorInterval), 0
	i.ageing = now.Add(i.cfg.LocalInterval)
	i.arm(clock.Min(i.monitor, i.ageing))
	for _, a := range allNodes {
		i.member(now, a, true)
	}
	for _, a := range i.configured() {
		i.member(now, eth.SolicitedNode(a), a.Is6())
		i.announce(now, a)
	}
	i.listen(now)
	i.generalQueries() // reports before this were lost
}

// renew renews all memberships with a subnet manager that may not know the port, or knows it by another
// LID, and forgets paths.
func (i *Interface) renew(now clock.Time, moved bool) {
	i.cancelQueries()
	for _, g := range i.sortedGroups() {
		if g.state == groupWaiting && g.want == joinSendOnly {
			continue
		}
		g.have = 0
		i.join(now, g)
	}
	for _, n := range i.sortedNeighbours() {
		i.stale(now, n)
	}
	if moved && i.state == Up {
		for _, a := range i.configured() {
			i.announce(now, a)
		}
	}
}

// disconnect forgets everything except the configured addresses, without telling the subnet.
func (i *Interface) disconnect(why string) {
	if i.state == Up {
		i.do(Event{Kind: Disconnected, Text: why})
	}
	i.cancelQueries()
	i.listened = i.listens()
	for _, g := range i.sortedGroups() {
		i.detach(g)
		i.counters.DroppedDown += uint64(len(g.waiting))
	}
	for _, n := range i.sortedNeighbours() {
		i.fail(n, ErrDown)
	}
	clear(i.groups)
	i.broadcast, i.pkey, i.index, i.mtu = nil, 0, 0, i.cfg.MTU
	i.monitor, i.ageing, i.state = clock.Never, clock.Never, Down
}

// Stop leaves all groups. The leaves are not retransmitted; the interface is down afterwards.
func (i *Interface) Stop(now clock.Time) {
	for _, g := range i.sortedGroups() {
		if g.state == groupJoined {
			i.leaveOnce(g)
		}
	}
	i.disconnect("the interface stops")
	i.qpn = 0
}

// Advance does what is due.
func (i *Interface) Advance(now clock.Time) {
	if now < i.next {
		return
	}
	i.next = clock.Never
	i.advanceQueries(now)
	i.advanceGroups(now)
	i.advanceNeighbours(now)
	if now >= i.monitor {
		i.monitor = i.monitor.Add(monitorInterval)
		i.monitorGroups(now)
	}
	if now >= i.ageing {
		i.ageing = i.ageing.Add(i.cfg.LocalInterval)
		i.ageLocal()
	}
	i.arm(clock.Min(i.monitor, i.ageing))
}

// spread returns d plus up to a quarter, so that many interfaces do not retransmit at the same time.
func (i *Interface) spread(d time.Duration) time.Duration {
	return d + time.Duration(i.random()%uint64(d/4+1))
}
