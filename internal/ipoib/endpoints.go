package ipoib

import (
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

// Endpoints are the end points that an interface knows, as mlxtool dbg ipoib-ep lists them (WinOF 5.50, 5.5.2.8).
type Endpoints struct {
	Local     []LocalEndpoint
	Multicast []MulticastEndpoint
	Remote    []RemoteEndpoint
}

// LocalEndpoint is an IP address that is reached through the interface.
type LocalEndpoint struct {
	Addr netip.Addr
	// Configured says that the interface has the address itself; else the system sends from it for others, and it ages.
	Configured bool
	Age        int // runs of the endpoint monitor since it was used
}

// MulticastEndpoint is a multicast group of the interface.
type MulticastEndpoint struct {
	MGID ib.GID
	MLID ib.LID // 0: it is not joined
	// SendOnly says that the group is only sent to.
	SendOnly bool
	State    string
	QKey     uint32
	MTU      int // of the group's packets; 0: not known yet
	Rate     uint8
	SL       uint8
}

// RemoteEndpoint is a neighbour.
type RemoteEndpoint struct {
	Addr    netip.Addr
	Address Address
	LID     ib.LID // 0: no path is known yet
	State   string
	Unused  time.Duration // since something was sent to it last
}

// String is the state of a group in words.
func (s groupState) String() string { return [...]string{"joining", "waiting", "joined"}[s] }

// String is the state of a neighbour in words, in those of RFC 4861 7.3.2 where it has them.
func (s neighbourState) String() string {
	return [...]string{"incomplete", "querying path", "reachable", "stale", "probing"}[s]
}

// Endpoints are those that the interface knows now, in the order of their addresses; the broadcast group is the first of the groups.
func (i *Interface) Endpoints(now clock.Time) Endpoints {
	var e Endpoints
	for a, x := range i.local {
		e.Local = append(e.Local, LocalEndpoint{a, x.configured, x.age})
	}
	slices.SortFunc(e.Local, func(a, b LocalEndpoint) int { return a.Addr.Compare(b.Addr) })
	for _, g := range i.sortedGroups() {
		m := MulticastEndpoint{MGID: g.mgid, SendOnly: g.want == joinSendOnly, State: g.state.String()}
		if g.state == groupJoined {
			m.MLID, m.QKey, m.MTU, m.Rate, m.SL = g.rec.MLID, g.rec.QKey, g.rec.MTU.Bytes(), g.rec.Rate, g.rec.SL
		}
		e.Multicast = append(e.Multicast, m)
	}
	for _, n := range i.sortedNeighbours() {
		r := RemoteEndpoint{Addr: n.addr, Address: n.link, State: n.state.String(), Unused: max(0, now.Sub(n.used))}
		if n.ready() {
			r.LID = n.to.LID
		}
		e.Remote = append(e.Remote, r)
	}
	return e
}

// Census is how many end points of each kind there are.
type Census struct{ Local, Multicast, Remote int }

// Census counts the end points.
func (i *Interface) Census() Census { return Census{len(i.local), len(i.groups), len(i.neighbours)} }

// Broadcast is the broadcast group; ok is false while the interface is on no partition.
func (i *Interface) Broadcast() (mgid ib.GID, mlid ib.LID, ok bool) {
	if i.broadcast == nil {
		return mgid, 0, false
	}
	if i.broadcast.state == groupJoined {
		mlid = i.broadcast.rec.MLID
	}
	return i.broadcast.mgid, mlid, true
}
