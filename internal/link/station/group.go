package station

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/softvpi/softvpi/internal/membership"
	"github.com/softvpi/softvpi/wire/eth"
)

// group is a multicast group that was joined.
type group struct {
	addr netip.Addr
	mac  eth.MAC
	uses int
}

// Join implements link.Multicaster. Groups are joined for all stations, and reported in their VLANs.
func (s *Set) Join(addr netip.Addr) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	mac, ok := eth.MulticastMAC(addr)
	if !ok {
		return s.bad("group", addr, "a multicast address")
	}
	for i := range s.groups {
		if s.groups[i].addr == addr {
			s.groups[i].uses++
			return nil
		}
	}
	if len(s.groups) == mostGroups {
		return s.bad("groups", len(s.groups)+1, fmt.Sprintf("at most %d", mostGroups))
	}
	s.groups = append(s.groups, group{addr, mac, 1})
	s.regroup()
	return nil
}

// Leave implements link.Multicaster.
func (s *Set) Leave(addr netip.Addr) error {
	if s.closed.Load() {
		return net.ErrClosed
	}
	i := slices.IndexFunc(s.groups, func(g group) bool { return g.addr == addr })
	if i < 0 {
		return s.bad("group", addr, "one that was joined")
	}
	if s.groups[i].uses--; s.groups[i].uses == 0 {
		s.groups = slices.Delete(s.groups, i, i+1)
		s.regroup()
	}
	return nil
}

// regroup reports the groups that are wanted now.
func (s *Set) regroup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribe()
	s.settle()
}

// subscription is what is wanted on a port.
type subscription struct {
	from   membership.Source
	groups []netip.Addr
}

// subscribe tells the reporter which groups are wanted: those joined, and those to which questions for the link's own
// addresses go (RFC 4861 7.2.1). The caller holds mu.
func (s *Set) subscribe() {
	want := map[membership.Port]*subscription{}
	for port := range s.reported {
		want[port] = &subscription{}
	}
	for _, t := range s.stations {
		for _, v6 := range [...]bool{false, true} {
			port := membership.Port{VLAN: t.VLAN, V6: v6}
			if want[port] == nil {
				want[port] = &subscription{}
			}
			want[port].add(t, v6, s.groups)
		}
	}
	clear(s.reported)
	for port, w := range want {
		s.reporter.Want(s.now(), port, w.from, w.groups)
		if len(w.groups) > 0 {
			s.reported[port] = true
		}
	}
}

// add adds what a station wants.
func (w *subscription) add(t *station, v6 bool, joined []group) {
	if w.from.MAC == (eth.MAC{}) {
		w.from.MAC = t.MAC
	}
	put := func(g netip.Addr) {
		if !slices.Contains(w.groups, g) {
			w.groups = append(w.groups, g)
		}
	}
	for _, g := range joined {
		if g.addr.Is4() != v6 {
			put(g.addr)
		}
	}
	for _, a := range t.addrs {
		ip := a.Addr()
		if ip.Is4() == v6 {
			continue
		}
		if !w.from.Addr.IsValid() && (ip.Is4() || ip.IsLinkLocalUnicast()) {
			w.from = membership.Source{MAC: t.MAC, Addr: ip}
		}
		if v6 && !a.system {
			put(eth.SolicitedNode(ip))
		}
	}
}

// MACs returns the unicast and multicast addresses to which frames for the stations go, apart from broadcast, without
// duplicates: what an interface has to let through.
func (s *Set) MACs() (unicast, multicast []eth.MAC) {
	for i := range s.ears {
		unicast = append(unicast, s.ears[i].mac)
	}
	for _, t := range s.stations {
		if !slices.Contains(unicast, t.MAC) {
			unicast = append(unicast, t.MAC)
		}
		for _, a := range t.addrs {
			if a.Addr().Is6() && !a.system {
				multicast = add(multicast, eth.SolicitedNode(a.Addr()))
			}
		}
	}
	for _, g := range s.groups {
		multicast = add(multicast, g.addr)
	}
	if len(multicast) > 0 { // somebody may ask which groups are wanted
		for _, g := range membership.AllSystems {
			multicast = add(multicast, g)
		}
	}
	multicast = append(multicast, s.heard...)
	return unicast, multicast
}

func add(to []eth.MAC, group netip.Addr) []eth.MAC {
	if m, _ := eth.MulticastMAC(group); !slices.Contains(to, m) {
		to = append(to, m)
	}
	return to
}
