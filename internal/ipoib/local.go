package ipoib

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// maxLocal bounds the endpoints that were learned.
const maxLocal = 1024

// endpoint is an IP address that is reached through this interface: one that it was given, or one that the system sends from for others
// behind it, as long as it does.
type endpoint struct {
	configured bool
	age        int // runs of the monitor without use
}

// Route is a way to other links: packets to Prefix go to the neighbour Via.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
}

// SetAddresses tells the interface's own addresses, with the length of their link's prefix. New ones are announced.
func (i *Interface) SetAddresses(now clock.Time, prefixes []netip.Prefix) {
	before := i.configured()
	i.prefixes = slices.Clone(prefixes)
	after := i.configured()
	for _, a := range before {
		if !slices.Contains(after, a) {
			delete(i.local, a)
			i.forgetGroup(now, a, after)
		}
	}
	for _, a := range after {
		if slices.Contains(before, a) {
			continue
		}
		i.local[a] = &endpoint{configured: true}
		if n := i.neighbours[a]; n != nil {
			i.fail(n, ErrUnreachable)
		}
		if i.state == Up {
			if a.Is6() {
				i.member(now, solicitedNode(a), true)
			}
			i.announce(now, a)
		}
	}
}

// forgetGroup leaves the solicited-node group of an address that is gone, where no other one needs it.
func (i *Interface) forgetGroup(now clock.Time, gone netip.Addr, left []netip.Addr) {
	if !gone.Is6() || slices.ContainsFunc(left, func(a netip.Addr) bool { return a.Is6() && solicitedNode(a) == solicitedNode(gone) }) {
		return
	}
	mgid, ok := groupMGID(solicitedNode(gone), i.cfg.Scope, i.pkey)
	if g := i.groups[mgid]; ok && g != nil {
		i.leave(now, g)
	}
}

// SetRoutes tells what is reached through neighbours. A packet that no route and no prefix of the interface fits is for its destination itself.
func (i *Interface) SetRoutes(routes []Route) {
	i.routes = slices.Clone(routes)
	slices.SortStableFunc(i.routes, func(a, b Route) int { return b.Prefix.Bits() - a.Prefix.Bits() })
}

// configured are the interface's own addresses, without repetitions.
func (i *Interface) configured() []netip.Addr {
	list := make([]netip.Addr, 0, len(i.prefixes))
	for _, p := range i.prefixes {
		if a := p.Addr().Unmap().WithZone(""); !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// onLink says whether an address is of one of the interface's prefixes.
func (i *Interface) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(i.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// nextHop is the neighbour that a packet to dst goes to.
func (i *Interface) nextHop(dst netip.Addr) netip.Addr {
	if len(i.routes) == 0 || i.onLink(dst) {
		return dst
	}
	for _, r := range i.routes {
		if r.Prefix.Contains(dst) {
			return r.Via
		}
	}
	return dst
}

// source is the address that asks for a neighbour: that of the packet where it is the interface's own, else the one of the same prefix, else
// any of the family.
func (i *Interface) source(to, of netip.Addr) netip.Addr {
	if e := i.local[of]; e != nil && e.configured && of.Is4() == to.Is4() {
		return of
	}
	var any netip.Addr
	for _, p := range i.prefixes {
		a := p.Addr().Unmap().WithZone("")
		switch {
		case a.Is4() != to.Is4():
		case p.Contains(to):
			return a
		case !any.IsValid() || a.IsLinkLocalUnicast():
			any = a
		}
	}
	if !any.IsValid() && to.Is6() {
		return netip.IPv6Unspecified()
	}
	return any
}

// announce tells all nodes where an address is: a gratuitous ARP request (RFC 5227 3), or an unsolicited advertisement (RFC 4861 7.2.6).
func (i *Interface) announce(now clock.Time, a netip.Addr) {
	if a.Is4() {
		p := arp{Operation: eth.ARPRequest, Sender: i.Address(), SenderIP: a, TargetIP: a}
		i.toBroadcast(now, p.Append(appendHeader(nil, eth.TypeARP)))
		return
	}
	d := discovery{Advertisement: true, Override: true, Target: a, Link: i.Address(), HasLink: true}
	i.groupPacket(now, allNodes[1], d.appendPacket(appendHeader(nil, eth.TypeIPv6), a, allNodes[1]))
}

// sends is called with the source of each packet that the system sends.
func (i *Interface) sends(src netip.Addr) {
	if e := i.local[src]; e != nil {
		e.age = 0
		return
	}
	if len(i.local) >= maxLocal || src.IsUnspecified() || src.IsMulticast() || src.IsLinkLocalUnicast() || !i.onLink(src) {
		return
	}
	i.local[src] = &endpoint{}
}

// ageLocal is a run of the endpoint monitor: it removes learned endpoints that were not used for LocalMaxAge runs.
func (i *Interface) ageLocal() {
	for a, e := range i.local {
		if e.configured {
			continue
		}
		if e.age++; e.age >= i.cfg.LocalMaxAge {
			delete(i.local, a)
		}
	}
}
