package overlay

import (
	"net/netip"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// gatewayOf returns the address by which adapters of a subnet reach the router: the first of a prefix that is their own
// (Hyper-V Network Virtualization keeps it for that).
func gatewayOf(r *CustomerRoute) (a netip.Addr, ok bool) {
	if !r.NextHop.IsUnspecified() || r.Prefix.Bits() > r.Prefix.Addr().BitLen()-2 {
		return a, false
	}
	return r.Prefix.Addr().Next(), true
}

// route sends a packet that was sent to the router to where the routing domain has it.
func (e *Engine) route(now clock.Time, from Port, t tenant, f *Frame, h *eth.Headers) Verdict {
	dst, left, ok := routed(h, f.Head)
	switch {
	case !ok:
		return e.drop(Malformed)
	case left <= 1:
		return e.drop(HopLimit)
	}
	r := e.routeTo(e.domain(t.subnet), dst)
	if r == nil {
		return e.drop(NoRoute)
	}
	if !r.NextHop.IsUnspecified() {
		dst = r.NextHop
	}
	x := e.records[inSubnet[netip.Addr]{r.Subnet, dst}]
	if x == nil {
		return e.drop(NoRecord)
	}
	copy(f.Head, x.MAC[:])
	copy(f.Head[6:], Router[:])
	age(h, f.Head)
	v := e.toOne(now, from, r.Subnet, x.MAC, f, h, f.begin(e.scratch, looked))
	if v.Changed = true; v.Why == 0 {
		e.counters.Routed++
	}
	return v
}

// routeTo returns the best route of a domain.
func (e *Engine) routeTo(domain string, dst netip.Addr) *CustomerRoute {
	return bestRoute(e.tables.Routes, domain, dst)
}

// bestRoute returns the best route of a domain: of the longest prefix, then of the lowest metric.
func bestRoute(routes []CustomerRoute, domain string, dst netip.Addr) (best *CustomerRoute) {
	for i := range routes {
		r := &routes[i]
		if r.Domain == domain && r.Prefix.Contains(dst) && (best == nil || r.Prefix.Bits() > best.Prefix.Bits() ||
			r.Prefix.Bits() == best.Prefix.Bits() && r.Metric < best.Metric) {
			best = r
		}
	}
	return best
}

// routed returns where a packet goes, and how often it may be routed; ok is false without an IP header.
func routed(h *eth.Headers, b []byte) (dst netip.Addr, left uint8, ok bool) {
	switch p := b[min(h.Network, len(b)):]; {
	case h.Type == eth.TypeIPv4 && len(p) >= eth.IPv4Len && p[0]>>4 == 4:
		ip := eth.IPv4(p)
		return ip.Dst(), ip.TTL(), ip.HeaderLen() >= eth.IPv4Len && ip.HeaderLen() <= len(p) && ip.ChecksumOK()
	case h.Type == eth.TypeIPv6 && len(p) >= eth.IPv6Len && p[0]>>4 == 6:
		ip := eth.IPv6(p)
		return ip.Dst(), ip.HopLimit(), true
	}
	return dst, 0, false
}

const (
	ip4TTL      = 8
	ip6HopLimit = 7
)

// age takes one off how often a packet may be routed.
func age(h *eth.Headers, b []byte) {
	p := b[h.Network:]
	if h.Type == eth.TypeIPv6 {
		p[ip6HopLimit]--
		return
	}
	p[ip4TTL]--
	eth.IPv4(p[:eth.IPv4(p).HeaderLen()]).SetChecksum()
}
