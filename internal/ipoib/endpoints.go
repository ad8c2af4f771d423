package ipoib

import (
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/ib"
)

// Endpoints are the end points that an interface knows, in the form in which mlxtool dbg ipoib-ep lists
// them (WinOF 5.50, 5.5.2.8).
type Endpoints struct {
	Local     []LocalEndpoint
	Multicast []MulticastEndpoint
	Remote    []RemoteEndpoint
}

// LocalEndpoint is an IP address that is reached through the interface.
type LocalEndpoint struct {
	Addr netip.Addr
	// Configured says that the interface itself has the address; otherwise the system sends from it on
	// behalf of others, and it ages.
	Configured bool
	Age        int // runs of the endpoint monitor since its last use
}

// MulticastEndpoint is a multicast group of the interface.
type MulticastEndpoint struct {
	MGID ib.GID
	MLID ib.LID // 0: not joined
	// SendOnly says that the group is joined only to send to it.
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
	Unused  time.Duration // time since something was last sent to it
}

// String returns the state of a group in words.
func (s groupState) String() string { return [...]string{"joining", "waiting", "joined"}[s] }

// String returns the state of a neighbour, in the words of RFC 4861 7.3.2 if there are any.
func (s neighbourState) String() string {
	return [...]string{"incomplete", "querying path", "reachable", "stale", "probing"}[s]
}

// Endpoints returns those that the interface currently knows, sorted by address; the broadcast group is
// the first group.
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

// Census counts the end points by kind.
type Census struct{ Local, Multicast, Remote int }

// Census returns the number of end points.
func (i *Interface) Census() Census { return Census{len(i.local), len(i.groups), len(i.neighbours)} }

// Broadcast returns the broadcast group; ok is false while the interface has no partition.
func (i *Interface) Broadcast() (mgid ib.GID, mlid ib.LID, ok bool) {
	if i.broadcast == nil {
		return mgid, 0, false
	}
	if i.broadcast.state == groupJoined {
		mlid = i.broadcast.rec.MLID
	}
	return i.broadcast.mgid, mlid, true
}
