package ipoib

import (
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// maxLocal limits the number of learned endpoints.
const maxLocal = 1024

// endpoint is an IP address that is reached through this interface: a configured one, or one that the
// system sends from on behalf of others behind it, for as long as it does.
type endpoint struct {
	configured bool
	age        int // monitor runs without use
}

// Route is a route to other links: packets to Prefix go to the neighbour Via.
type Route struct {
	Prefix netip.Prefix
	Via    netip.Addr
}

// SetAddresses sets the interface's own addresses, with the length of their link's prefix. New ones are
// announced.
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
				i.member(now, eth.SolicitedNode(a), true)
			}
			i.announce(now, a)
		}
	}
}

// forgetGroup leaves the solicited-node group of a removed address unless another one needs it.
func (i *Interface) forgetGroup(now clock.Time, gone netip.Addr, left []netip.Addr) {
	same := func(a netip.Addr) bool { return a.Is6() && eth.SolicitedNode(a) == eth.SolicitedNode(gone) }
	if !gone.Is6() || slices.ContainsFunc(left, same) {
		return
	}
	mgid, ok := groupMGID(eth.SolicitedNode(gone), i.cfg.Scope, i.pkey)
	if g := i.groups[mgid]; ok && g != nil {
		i.leave(now, g)
	}
}

// SetRoutes sets what is reached through neighbours. A packet that matches no route and no prefix of the
// interface goes directly to its destination.
func (i *Interface) SetRoutes(routes []Route) {
	i.routes = slices.Clone(routes)
	slices.SortStableFunc(i.routes, func(a, b Route) int { return b.Prefix.Bits() - a.Prefix.Bits() })
}

// configured returns the interface's own addresses, without duplicates.
func (i *Interface) configured() []netip.Addr {
	list := make([]netip.Addr, 0, len(i.prefixes))
	for _, p := range i.prefixes {
		if a := p.Addr().Unmap().WithZone(""); !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// onLink reports whether an address is in one of the interface's prefixes.
func (i *Interface) onLink(a netip.Addr) bool {
	return slices.ContainsFunc(i.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// nextHop returns the neighbour for packets to dst.
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

// source returns the source address for a neighbour query: that of the packet if it is the interface's
// own, otherwise the one with the same prefix, otherwise any of the same family.
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

// announce tells all nodes where an address is: by a gratuitous ARP request (RFC 5227 3) or an unsolicited
// advertisement (RFC 4861 7.2.6).
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

// ageLocal is a run of the endpoint monitor: it removes learned endpoints that were not used for
// LocalMaxAge runs.
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
