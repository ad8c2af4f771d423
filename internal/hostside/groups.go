package hostside

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/function/ethernet/filter"
	"github.com/softvpi/softvpi/wire/eth"
)

// Groups are the multicast addresses of a host's interface.
type Groups struct {
	List []eth.MAC
	// All says that the interface wants frames to every group: it is promiscuous, or in a bridge.
	All bool
	// Asked is how often Look had been called when the system was asked for them.
	Asked uint64
}

// Listener is an End whose interface has a list of multicast addresses that can be followed. The list takes long to read, so that
// it is read beside the loop.
type Listener interface {
	End
	// Follow begins to follow the list, and Unfollow ends it.
	Follow()
	Unfollow()
	// Look has the list read at once, and returns how often it was called.
	Look() uint64
	// News returns the list if it has been read since the last call, nil if not.
	News() *Groups
}

// everybody are groups that every host belongs to, whether its list has them yet or not: all systems of IPv4 (RFC 1112) and all
// nodes of IPv6 (RFC 4291, 2.7.1).
var everybody = []eth.MAC{{0x01, 0x00, 0x5e, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1}}

// listening is what a Side knows of its host's groups. Until their list is known frames to all pass.
type listening struct {
	to    Listener // nil: the host's list cannot be known
	asked uint64
}

// listen begins to follow the host's groups.
func (s *Side) listen() {
	if s.groups.to, _ = s.end.(Listener); s.groups.to != nil {
		s.groups.to.Follow()
	}
}

// unlisten ends it.
func (s *Side) unlisten() {
	if s.groups.to != nil {
		s.groups.to.Unfollow()
		s.groups.to = nil
	}
}

// hear adapts the function's filter to a list that has come.
func (s *Side) hear(now clock.Time) {
	g := s.groups.to.News()
	if g == nil {
		return
	}
	s.f.SetGroups(now, append(g.List, everybody...))
	if mode := filter.Usual; g.Asked == s.groups.asked {
		if g.All {
			mode |= filter.AllMulticast
		}
		s.f.Filter().SetMode(mode)
	}
}

// overhear looks for a report of the host that it joins or leaves groups: frames to all groups pass until its list is read again.
func (s *Side) overhear(b []byte) {
	if s.groups.to == nil || !reports(b) {
		return
	}
	s.groups.asked = s.groups.to.Look()
	s.f.Filter().SetMode(filter.Usual | filter.AllMulticast)
}

// reports reports whether a frame is a report of multicast groups, or may be: IGMP (RFC 3376), or MLD, which follows a hop-by-hop
// header (RFC 3810, 5).
func reports(b []byte) bool {
	if len(b) < eth.EthernetLen || b[0]&1 == 0 {
		return false
	}
	e, packet, err := eth.ParseEthernet(b)
	switch {
	case err != nil:
		return false
	case e.Type == eth.TypeIPv4:
		return len(packet) >= eth.IPv4Len && packet[9] == eth.ProtocolIGMP
	case e.Type == eth.TypeIPv6:
		return len(packet) >= eth.IPv6Len && packet[6] == eth.ProtocolHopByHop
	}
	return false
}
