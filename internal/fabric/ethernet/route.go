package ethernet

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/wire/eth"
)

// Route says where IP packets go that come to the switch's MAC.
type Route struct {
	// Prefix is which ones; the longest that fits applies.
	Prefix netip.Prefix
	// Ports are where they may leave. Those that are up share the flows (ECMP).
	Ports []int
	// MAC is whose frames they become; zero: that of PortConfig.Peer.
	MAC eth.MAC
}

// routes are those of a switch.
type routes struct {
	lengths [2][]int // of prefixes of IPv4 and IPv6, the longest first
	to      map[netip.Prefix]*hop
	recent  [recentHops]recent
}

// recentHops is of how many IPv4 destinations the next hop is known without a search; a power of two.
const recentHops = 64

// recent is the next hop to an IPv4 destination.
type recent struct {
	to  uint32 // 0: none
	hop hop
}

// hop is the next of a route.
type hop struct {
	ports uint64
	mac   eth.MAC
}

// SetRoutes replaces the routes. Nothing changes if there is an error, a *FieldError.
func (s *Switch) SetRoutes(all []Route) error {
	r := routes{to: make(map[netip.Prefix]*hop, len(all))}
	for i, x := range all {
		field := func(name string) string { return fmt.Sprintf("routes[%d].%s", i, name) }
		prefix := x.Prefix.Masked()
		if !prefix.IsValid() || prefix.Addr().Is4In6() {
			return bad(field("Prefix"), x.Prefix, "a prefix of IPv4 or IPv6 addresses")
		}
		if _, there := r.to[prefix]; there {
			return bad(field("Prefix"), x.Prefix, "one that no other route has")
		}
		h := &hop{mac: x.MAC}
		for _, n := range x.Ports {
			if n < 0 || n >= len(s.ports) {
				return bad(field("Ports"), n, fmt.Sprintf("0 to %d", len(s.ports)-1))
			}
			if c := &s.ports[n].cfg; x.MAC == (eth.MAC{}) && c.Peer == (eth.MAC{}) {
				return bad(field("MAC"), x.MAC, fmt.Sprintf("an address, as port %d has no Peer", n))
			}
			h.ports |= 1 << n
		}
		if h.ports == 0 || x.MAC[0]&1 != 0 {
			return bad(field("Ports"), x.Ports, "a port at least, and a MAC of a station")
		}
		r.to[prefix] = h
		family := prefix.Addr().BitLen() / 128
		if l := &r.lengths[family]; !slices.Contains(*l, prefix.Bits()) {
			*l = append(*l, prefix.Bits())
		}
	}
	for i := range r.lengths {
		slices.Sort(r.lengths[i])
		slices.Reverse(r.lengths[i])
	}
	s.routes = r
	return nil
}

// next returns the next hop of a packet; nil: there is none.
func (r *routes) next(h *header, b []byte) *hop {
	if h.version != 4 {
		return r.find(h.to(b))
	}
	to := binary.BigEndian.Uint32(b[h.network+16:])
	x := &r.recent[to*0x9e3779b1>>26]
	if x.to == to && to != 0 {
		return &x.hop
	}
	next := r.find(h.to(b))
	if next != nil {
		*x = recent{to, *next}
	}
	return next
}

// find returns the next hop of packets to an address; nil: there is none.
func (r *routes) find(a netip.Addr) *hop {
	for _, n := range r.lengths[a.BitLen()/128] {
		prefix, err := a.Prefix(n)
		if err != nil {
			continue
		}
		if h := r.to[prefix]; h != nil {
			return h
		}
	}
	return nil
}

// route changes a frame to the switch as a router does, and returns the port where it leaves, as a bit. None: it is counted why.
func (s *Switch) route(p *Port, h *header, b []byte, f Ref) uint64 {
	if h.version == 0 {
		p.dropped.NoRoute++
		return 0
	}
	next := s.routes.next(h, b)
	if next == nil {
		p.dropped.NoRoute++
		return 0
	}
	if h.hops <= 1 {
		p.dropped.HopLimit++
		return 0
	}
	n := s.spread(next.ports, h, b)
	if n < 0 {
		p.dropped.NoRoute++
		return 0
	}
	o := &s.ports[n]
	to := &next.mac
	if *to == (eth.MAC{}) {
		to = &o.cfg.Peer
	}
	h.hop(b)
	*(*eth.MAC)(b) = *to
	*(*eth.MAC)(b[len(to):]) = s.cfg.MAC
	s.store.frames[f].vlan = o.cfg.PVID
	return 1 << n
}

// spread chooses one of several ports for a flow, of those that are up and may send; -1: none is. Flows of a port that goes down
// move, and with them some others.
func (s *Switch) spread(ports uint64, h *header, b []byte) int {
	if ports != 0 && ports&(ports-1) == 0 {
		n := bits.TrailingZeros64(ports)
		if p := &s.ports[n]; p.down || p.mute {
			return -1
		}
		return n
	}
	up := uint64(0)
	for set := ports; set != 0; set &= set - 1 {
		if n := bits.TrailingZeros64(set); !s.ports[n].down && !s.ports[n].mute {
			up |= 1 << n
		}
	}
	switch {
	case up == 0:
		return -1
	case up&(up-1) == 0:
		return bits.TrailingZeros64(up)
	}
	hash := h.flow(b, s.cfg.Seed)
	skip, _ := bits.Mul64(hash, uint64(bits.OnesCount64(up)))
	for ; skip > 0; skip-- {
		up &= up - 1
	}
	return bits.TrailingZeros64(up)
}

// bundle is ports that lead to the same neighbour.
type bundle struct {
	ports []int
	set   uint64
}

// bundle makes bundles of the ports, and adds those that are not routed to the relay.
func (s *Switch) bundle(sets [][]int) error {
	in := uint64(0)
	for i, set := range sets {
		field := fmt.Sprintf("bundles[%d]", i)
		b := bundle{ports: slices.Clone(set)}
		for _, n := range set {
			if n < 0 || n >= len(s.ports) || in>>n&1 != 0 {
				return bad(field, n, fmt.Sprintf("ports from 0 to %d, each in one bundle", len(s.ports)-1))
			}
			if c, first := &s.ports[n].cfg, &s.ports[set[0]].cfg; c.PVID != first.PVID || c.Tagged != first.Tagged || c.Routed {
				return bad(field, n, "ports with the same PVID and Tagged, none of which is routed")
			}
			in |= 1 << n
			b.set |= 1 << n
		}
		if b.set != 0 {
			s.bundles = append(s.bundles, b)
		}
	}
	for n := range s.ports {
		if in>>n&1 == 0 {
			s.bundles = append(s.bundles, bundle{[]int{n}, 1 << n})
		}
	}
	for i, b := range s.bundles {
		c := &s.ports[b.ports[0]].cfg
		if c.Routed {
			continue
		}
		r, err := s.relay.Add(c.PVID, c.Tagged)
		if err != nil {
			return err
		}
		s.bridged[r.Number()] = uint8(i)
		for _, n := range b.ports {
			s.ports[n].relay = r
		}
	}
	return nil
}

// member returns the port of a bundle for a frame; -1: none is up and may send.
func (b *bundle) member(s *Switch, h *header, f Ref) int {
	if p := &s.ports[b.ports[0]]; len(b.ports) == 1 && !p.down && !p.mute {
		return b.ports[0]
	}
	return s.spread(b.set, h, s.store.Head(f))
}

// bundleOf returns the bundle of a bridged port.
func (s *Switch) bundleOf(p *Port) *bundle { return &s.bundles[s.bridged[p.relay.Number()]] }

// first returns the port by which the bundle of a bridged port is known.
func (s *Switch) first(p *Port) int { return s.bundleOf(p).ports[0] }

// isolated reports whether no port of a port's bundle is up.
func (s *Switch) isolated(p *Port) bool {
	for _, n := range s.bundleOf(p).ports {
		if !s.ports[n].down {
			return false
		}
	}
	return true
}
