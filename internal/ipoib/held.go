package ipoib

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
)

// Held is what an interface has of the system that nobody tells it: it has seen it in what the system sends. In a team it goes with what
// was told to the member that carries next.
type Held struct {
	Groups []netip.Addr // that the system listens to
	Behalf []netip.Addr // that it sends from on behalf of others
}

// TakeOver makes the interface the one that carries what the system has: its addresses with their prefixes, its routes, and what the
// interface before held. All nodes are told where the addresses are now. The system is asked what it listens to: some of that
// may not be held.
func (i *Interface) TakeOver(now clock.Time, prefixes []netip.Prefix, routes []Route, h Held) {
	i.SetAddresses(now, prefixes)
	i.SetRoutes(routes)
	for _, a := range h.Behalf {
		if i.local[a] == nil && len(i.local) < maxLocal && i.onLink(a) {
			i.local[a] = &endpoint{}
		}
	}
	i.listened = slices.Clone(h.Groups)
	if i.state != Up {
		return // it tells and asks once it is
	}
	i.listen(now)
	for _, a := range h.Behalf {
		if i.local[a] != nil {
			i.announce(now, a)
		}
	}
	i.generalQueries()
}

// Yield ends that: the interface leaves the groups of the system and answers for none of its addresses. It goes on to hand up what is sent
// to it until others know better. It returns what it held.
func (i *Interface) Yield(now clock.Time) Held {
	h := Held{Groups: i.listens()}
	for a, e := range i.local {
		if !e.configured {
			h.Behalf = append(h.Behalf, a)
		}
	}
	slices.SortFunc(h.Behalf, netip.Addr.Compare)
	i.SetAddresses(now, nil)
	i.SetRoutes(nil)
	clear(i.local)
	i.listened = nil
	for _, g := range i.sortedGroups() {
		if g.want == joinFull && !g.stays {
			i.leave(now, g)
		}
	}
	return h
}

// Announce tells all nodes again where the interface's addresses are.
func (i *Interface) Announce(now clock.Time) {
	if i.state != Up {
		return
	}
	for _, a := range i.Addresses() {
		i.announce(now, a)
	}
}

// Addresses returns the addresses that are reached through the interface, in order.
func (i *Interface) Addresses() []netip.Addr {
	list := make([]netip.Addr, 0, len(i.local))
	for a := range i.local {
		list = append(list, a)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// listens returns the groups that the system listens to, in order, with those of before the interface was disconnected until it listens to
// them again.
func (i *Interface) listens() []netip.Addr {
	list := slices.Clone(i.listened)
	for _, g := range i.groups {
		if g.want == joinFull && !g.stays {
			list = append(list, g.addr)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// listen joins the groups that the system listened to before.
func (i *Interface) listen(now clock.Time) {
	for _, a := range i.listened {
		i.member(now, a, false)
	}
	i.listened = nil
}
