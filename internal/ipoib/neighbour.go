package ipoib

import (
	"net/netip"
	"slices"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// Constants of address resolution, those of RFC 4861 10 also for ARP.
const (
	retransmit    = time.Second
	solicitations = 3
	reachable     = 30 * time.Second
	// neighbourIdle is how long a neighbour is kept to which nothing is sent.
	neighbourIdle = 5 * time.Minute
	// maxNeighbours limits the table.
	maxNeighbours = 4096
)

// Neighbor is a node of the same IPoIB link.
type Neighbor struct {
	Address Address
	Path    Path
}

type neighbourState uint8

const (
	soliciting neighbourState = iota // its address is being requested
	querying                         // its path is being requested
	known                            // packets can be sent; confirmed until the deadline
	doubtful                         // packets can be sent; the next one triggers a probe
	probing                          // packets can be sent; a probe is in progress
)

// neighbour is an entry of the table.
type neighbour struct {
	addr    netip.Addr
	state   neighbourState
	link    Address
	to      Destination
	waiting [][]byte
	watched bool // Resolve waits for it
	tries   int
	again   clock.Time
	used    clock.Time
	request uint64 // the path query in progress; 0: none
}

func (n *neighbour) ready() bool { return n.state >= known }

func (i *Interface) sortedNeighbours() []*neighbour {
	list := make([]*neighbour, 0, len(i.neighbours))
	for _, n := range i.neighbours {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *neighbour) int { return a.addr.Compare(b.addr) })
	return list
}

// Resolve looks up an IP address of the link for a caller that wants to reach its port other than by IP
// packets: a connection manager. What is known is returned at once; otherwise ok is false, and a Resolved
// action reports the result.
func (i *Interface) Resolve(now clock.Time, addr netip.Addr) (n Neighbor, ok bool) {
	addr = addr.Unmap().WithZone("")
	if e := i.local[addr]; e != nil && i.state == Up {
		return Neighbor{i.Address(), Path{LID: i.port.LID, SL: i.broadcast.rec.SL, Rate: i.broadcast.rec.Rate, GID: i.port.GID}}, true
	}
	if i.state != Up || addr.IsMulticast() || !addr.IsValid() {
		i.do(Resolved{Addr: addr, Err: ErrDown})
		return Neighbor{}, false
	}
	e := i.lookup(now, addr, netip.Addr{})
	if e == nil {
		i.do(Resolved{Addr: addr, Err: ErrUnreachable})
		return Neighbor{}, false
	}
	if e.ready() {
		i.use(now, e)
		return Neighbor{e.link, e.to.Path}, true
	}
	e.watched = true
	return Neighbor{}, false
}

// lookup returns the entry of an address, and creates it if necessary; nil if there is no room. src is the
// source of the packet that needs it.
func (i *Interface) lookup(now clock.Time, addr, src netip.Addr) *neighbour {
	n := i.neighbours[addr]
	if n == nil {
		if n = i.newNeighbour(now, addr); n == nil {
			return nil
		}
		i.solicit(now, n, src)
	}
	n.used = now
	return n
}

// newNeighbour adds an entry, which replaces the least recently used one if the table is full. Entries
// that somebody waits for stay.
func (i *Interface) newNeighbour(now clock.Time, addr netip.Addr) *neighbour {
	if len(i.neighbours) >= maxNeighbours {
		var oldest *neighbour
		for _, n := range i.neighbours {
			if !n.watched && (oldest == nil || n.used < oldest.used || n.used == oldest.used && n.addr.Less(oldest.addr)) {
				oldest = n
			}
		}
		if oldest == nil {
			return nil
		}
		i.fail(oldest, ErrUnreachable)
	}
	n := &neighbour{addr: addr, used: now}
	i.neighbours[addr] = n
	return n
}

// solicit requests the address of a neighbour: from all nodes, or only from itself while it is believed to
// be there.
func (i *Interface) solicit(now clock.Time, n *neighbour, src netip.Addr) {
	if n.ready() {
		n.state = probing
	} else {
		n.state = soliciting
	}
	n.tries++
	n.again = now.Add(retransmit)
	i.arm(n.again)
	if n.addr.Is4() {
		i.solicit4(now, n, src)
	} else {
		i.solicit6(now, n, src)
	}
}

func (i *Interface) solicit4(now clock.Time, n *neighbour, src netip.Addr) {
	a := arp{Operation: eth.ARPRequest, Sender: i.Address(), SenderIP: i.source(n.addr, src), TargetIP: n.addr}
	if n.state == probing {
		a.Target = n.link
		i.do(Datagram{n.to, a.Append(appendHeader(nil, eth.TypeARP))})
		return
	}
	i.toBroadcast(now, a.Append(appendHeader(nil, eth.TypeARP)))
}

func (i *Interface) solicit6(now clock.Time, n *neighbour, src netip.Addr) {
	from := i.source(n.addr, src)
	d := discovery{Target: n.addr, Link: i.Address(), HasLink: true}
	if n.state == probing {
		i.do(Datagram{n.to, d.appendPacket(appendHeader(nil, eth.TypeIPv6), from, n.addr)})
		return
	}
	i.groupPacket(now, eth.SolicitedNode(n.addr), d.appendPacket(appendHeader(nil, eth.TypeIPv6), from, eth.SolicitedNode(n.addr)))
}

// groupPacket sends a datagram, including its header, to an IP group.
func (i *Interface) groupPacket(now clock.Time, group netip.Addr, data []byte) {
	mgid, ok := groupMGID(group, i.cfg.Scope, i.pkey)
	if !ok {
		return
	}
	if to, ok := i.toGroup(now, mgid, func() []byte { return data }); ok {
		i.do(Datagram{to, data})
	}
}

func (i *Interface) toBroadcast(now clock.Time, data []byte) {
	if to, ok := i.toGroup(now, i.broadcast.mgid, func() []byte { return data }); ok {
		i.do(Datagram{to, data})
	}
}

// learn handles a link-layer address received from a neighbour. create: add an entry even if nothing is
// being sent to it. answer: it answers a query, which proves that both directions work.
func (i *Interface) learn(now clock.Time, addr netip.Addr, link Address, a *Arrival, create, answer bool) {
	if !link.unicast() || !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() || i.local[addr] != nil {
		return
	}
	n := i.neighbours[addr]
	if n == nil {
		if !create {
			return
		}
		if n = i.newNeighbour(now, addr); n == nil {
			return
		}
		n.again = clock.Never
	}
	way, direct := i.wayBack(link, a)
	moved := n.link.GID != link.GID
	same := n.ready() && n.link.QPN == link.QPN && n.link.GID == link.GID && (!direct || i.cfg.QueryPaths || n.to.LID == way.LID ||
		n.to.GRH)
	n.link = link
	switch {
	case same && answer:
		i.confirm(now, n)
	case same:
	case direct && !i.cfg.QueryPaths:
		n.to = Destination{way, link.QPN, i.broadcast.rec.QKey}
		i.resolved(now, n)
	case n.state != querying || moved:
		i.query(now, n)
	}
}

// wayBack returns the path by which a datagram arrived, reversed; ok is false if that is unknown, as when
// it came from another queue pair or through a router.
func (i *Interface) wayBack(link Address, a *Arrival) (p Path, ok bool) {
	if a == nil || a.SrcQP != link.QPN || a.SLID == 0 || a.SLID > ib.LIDMaxUnicast || a.HasGRH && a.SGID != link.GID ||
		[8]byte(link.GID[:8]) != [8]byte(i.port.GID[:8]) {
		return p, false
	}
	return Path{LID: a.SLID, SL: a.SL, Rate: i.broadcast.rec.Rate, GID: link.GID}, true
}

// query requests the path of a neighbour whose address is known.
func (i *Interface) query(now clock.Time, n *neighbour) {
	delete(i.queries, n.request)
	n.state, n.again = querying, clock.Never
	n.request = i.askPath(now, n.link.GID, func(now clock.Time, p *mad.PathRecord) {
		n.request = 0
		if i.neighbours[n.addr] != n || n.state != querying {
			return
		}
		if p == nil {
			i.fail(n, ErrUnreachable)
			return
		}
		n.to = Destination{pathOf(p, i.port.GID), n.link.QPN, i.broadcast.rec.QKey}
		i.resolved(now, n)
	})
}

// pathOf converts a path record to a path from a GID. A global route header is needed if the path passes a
// router (IBA 13.5.4.4).
func pathOf(p *mad.PathRecord, from ib.GID) Path {
	return Path{LID: p.DLID, SL: p.SL, Rate: p.Rate, GID: p.DGID, FlowLabel: p.FlowLabel, HopLimit: p.HopLimit,
		TrafficClass: p.TrafficClass,
		GRH:          p.HopLimit > 1 || [8]byte(p.DGID[:8]) != [8]byte(from[:8])}
}

// resolved makes a neighbour usable and sends what waited for it.
func (i *Interface) resolved(now clock.Time, n *neighbour) {
	i.confirm(now, n)
	for _, p := range n.waiting {
		i.do(Datagram{n.to, p})
	}
	n.waiting = nil
	if n.watched {
		n.watched = false
		i.do(Resolved{Addr: n.addr, Neighbor: Neighbor{n.link, n.to.Path}})
	}
}

// confirm starts the time in which a neighbour counts as reachable.
func (i *Interface) confirm(now clock.Time, n *neighbour) {
	n.state, n.tries = known, 0
	n.again = now.Add(i.spread(reachable))
	i.arm(n.again)
}

// use is called with each packet to a neighbour that is ready.
func (i *Interface) use(now clock.Time, n *neighbour) {
	n.used = now
	if n.state == doubtful {
		i.solicit(now, n, netip.Addr{})
	}
}

// stale makes a neighbour prove itself again, and requests its path again.
func (i *Interface) stale(now clock.Time, n *neighbour) {
	switch {
	case n.state == querying || n.ready() && i.cfg.QueryPaths:
		i.query(now, n)
	case n.ready():
		n.state, n.tries, n.again = doubtful, 0, n.used.Add(neighbourIdle)
		i.arm(n.again)
	}
}

// fail removes a neighbour.
func (i *Interface) fail(n *neighbour, err error) {
	delete(i.neighbours, n.addr)
	delete(i.queries, n.request)
	i.counters.DroppedNoRoute += uint64(len(n.waiting))
	if n.watched {
		i.do(Resolved{Addr: n.addr, Err: err})
	}
}

func (i *Interface) advanceNeighbours(now clock.Time) {
	var due []*neighbour
	for _, n := range i.neighbours {
		if n.again <= now {
			due = append(due, n)
		} else {
			i.arm(n.again)
		}
	}
	slices.SortFunc(due, func(a, b *neighbour) int { return a.addr.Compare(b.addr) })
	for _, n := range due {
		if i.neighbours[n.addr] == n {
			i.advanceNeighbour(now, n)
		}
	}
}

func (i *Interface) advanceNeighbour(now clock.Time, n *neighbour) {
	switch n.state {
	case soliciting:
		if n.tries >= solicitations {
			i.fail(n, ErrUnreachable)
			return
		}
		i.solicit(now, n, netip.Addr{})
	case known:
		n.state, n.again = doubtful, n.used.Add(neighbourIdle)
		i.arm(n.again)
	case doubtful:
		if n.again = n.used.Add(neighbourIdle); n.again <= now {
			i.fail(n, ErrUnreachable)
			return
		}
		i.arm(n.again)
	case probing:
		switch {
		case n.tries < solicitations:
			i.solicit(now, n, netip.Addr{})
		case now.Sub(n.used) < solicitations*retransmit+retransmit: // it is needed: ask everybody, it may be elsewhere
			n.state, n.tries = soliciting, 0
			i.solicit(now, n, netip.Addr{})
		default:
			i.fail(n, ErrUnreachable)
		}
	}
}
