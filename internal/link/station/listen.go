package station

import (
	"fmt"
	"net"
	"slices"

	"github.com/softvpi/softvpi/wire/eth"
)

// mostHeard is how many groups can be heard.
const mostHeard = 8

// mostEars is how many MACs can be listened to.
const mostEars = mostStations

// ear is a MAC of which everything is handed up.
type ear struct {
	mac   eth.MAC
	large bool
}

// Listen implements link.Stations.
func (s *Set) Listen(mac [6]byte, large bool) error {
	switch {
	case s.closed.Load():
		return net.ErrClosed
	case mac[0]&1 != 0 || mac == [6]byte{}:
		return s.bad("MAC", eth.MAC(mac), "a unicast address")
	}
	if i := s.ear(mac); i >= 0 {
		s.ears[i].large = large
		return nil
	}
	if len(s.ears) == mostEars {
		return s.bad("listeners", len(s.ears)+1, "at most 256")
	}
	s.ears = append(s.ears, ear{mac, large})
	return nil
}

// Unlisten implements link.Stations.
func (s *Set) Unlisten(mac [6]byte) error {
	i := s.ear(mac)
	if i < 0 {
		return s.bad("MAC", eth.MAC(mac), "one that is listened to")
	}
	s.ears = slices.Delete(s.ears, i, i+1)
	return nil
}

func (s *Set) ear(mac eth.MAC) int {
	for i := range s.ears {
		if s.ears[i].mac == mac {
			return i
		}
	}
	return -1
}

// Hear implements link.Stations.
func (s *Set) Hear(group [6]byte, hear bool) error {
	switch i := slices.Index(s.heard, eth.MAC(group)); {
	case s.closed.Load():
		return net.ErrClosed
	case group[0]&1 == 0:
		return s.bad("group", eth.MAC(group), "the address of a group")
	case hear && i < 0:
		if len(s.heard) == mostHeard {
			return s.bad("groups that are heard", len(s.heard)+1, fmt.Sprintf("at most %d", mostHeard))
		}
		s.heard = append(s.heard, group)
	case !hear && i >= 0:
		s.heard = slices.Delete(s.heard, i, i+1)
	}
	return nil
}

// Listened reports whether anybody listens: then the link hears every group.
func (s *Set) Listened() bool { return len(s.ears) > 0 }

// ListenedLarge reports whether anybody listens who takes large frames.
func (s *Set) ListenedLarge() bool {
	for i := range s.ears {
		if s.ears[i].large {
			return true
		}
	}
	return false
}

// Hears reports whether a whole Ethernet frame is for somebody who listens, to his MAC or to a group, or to a group that is heard.
func (s *Set) Hears(b []byte) bool {
	if b[0]&1 != 0 {
		return len(s.ears) > 0 || slices.Contains(s.heard, eth.MAC(b))
	}
	return s.ear(eth.MAC(b)) >= 0
}

// HearsLarge reports whether a frame may be handed up as the system has coalesced it: who listens to its MAC takes such.
func (s *Set) HearsLarge(b []byte) bool {
	i := s.ear(eth.MAC(b))
	return i >= 0 && s.ears[i].large
}
