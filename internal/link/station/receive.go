package station

import (
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/membership"
	"github.com/softvpi/softvpi/internal/neighbour"
	"github.com/softvpi/softvpi/internal/offload"
	"github.com/softvpi/softvpi/wire/eth"
)

// Wants reports whether a frame is to be handed up: one to a station's MAC in its VLAN, and in a VLAN with a station one
// to everybody or to a group that was joined. Questions of neighbours, and their answers, are taken here. One that is too short to
// say where it goes counts, whoever it was for.
func (s *Set) Wants(b []byte) bool {
	if len(b) < eth.EthernetLen {
		s.stats.ReceiveUndersize++
		return false
	}
	heard := len(s.ears)+len(s.heard) > 0 && s.Hears(b)
	handed, own := s.concerns(b, heard)
	if own && !handed && !heard {
		s.kept(b)
	}
	return handed || heard
}

// kept counts a frame that the link has taken for itself.
func (s *Set) kept(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dst, vlan := eth.MAC(b), vlanOf(b)
	for _, t := range s.stations {
		if t.MAC == dst || dst[0]&1 != 0 && t.VLAN == vlan {
			c := s.own[t.MAC]
			c.ReceivedPackets++
			c.ReceivedBytes += uint64(len(b))
			s.own[t.MAC] = c
		}
	}
}

// vlanOf returns the VLAN of a frame, 0 for one without a tag.
func vlanOf(b []byte) uint16 {
	if b[12] == byte(eth.TypeVLAN>>8) && b[13] == byte(eth.TypeVLAN&0xff) && len(b) >= eth.EthernetLen+eth.VLANLen {
		return (uint16(b[14])<<8 | uint16(b[15])) & eth.VIDMask
	}
	return 0
}

// concerns reports whether a frame is for a station, or the link is promiscuous, and whether it is one for the link itself. heard
// says that it is handed up anyway.
func (s *Set) concerns(b []byte, heard bool) (handed, own bool) {
	vlan := vlanOf(b)
	if b[0]&1 == 0 {
		if to := idOf(eth.MAC(b), vlan); to != s.last {
			if s.index(to) < 0 {
				return s.cfg.Promiscuous, false
			}
			s.last = to
		}
		taken := neighbour.Concerns(b) && s.take(b, heard)
		return !taken, taken
	}
	if !s.inVLAN(vlan) {
		return s.cfg.Promiscuous, false
	}
	if neighbour.Concerns(b) && s.take(b, heard) {
		return false, true
	}
	handed = eth.MAC(b) == eth.Broadcast || s.cfg.Promiscuous || s.joined(eth.MAC(b))
	if own = len(s.reported) > 0 && membership.Concerns(b); own {
		s.asked(b, heard || handed)
	}
	return handed, own
}

// inVLAN reports whether a station is in a VLAN.
func (s *Set) inVLAN(vlan uint16) bool {
	for _, i := range s.ids {
		if uint16(i>>48) == vlan {
			return true
		}
	}
	return false
}

func (s *Set) joined(m eth.MAC) bool {
	for i := range s.groups {
		if s.groups[i].mac == m {
			return true
		}
	}
	return false
}

// asked gives a frame to the reporter, and perhaps up.
func (s *Set) asked(b []byte, handed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reporter.Receive(s.now(), b)
	s.follow(b, handed)
}

// follow sends what is to be sent because of a frame, which captures see first: the link shows it, if it is not handed up. The
// caller holds mu.
func (s *Set) follow(b []byte, handed bool) {
	if !handed {
		s.see(b, false)
		s.settle()
		return
	}
	s.watch.ahead = 1
	s.settle()
	s.watch.ahead = 0
}

// take gives a frame to the engine; heard says that it is handed up all the same.
func (s *Set) take(b []byte, heard bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.engine.Receive(s.now(), b)
	s.follow(b, heard || !taken)
	return taken
}

// Own implements link.Stations.
func (s *Set) Own(mac [6]byte) link.OwnFrames {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[mac]
}

// Conflicts implements link.Stations.
func (s *Set) Conflicts() (list []link.Conflict) {
	if !s.conflicted.Swap(false) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.seen {
		list = append(list, link.Conflict{Addr: c.Addr, VLAN: c.VLAN, MAC: c.MAC, Over: c.Over, Lost: s.engine.Lost(c.Key)})
	}
	s.seen = nil
	return list
}

// Take hands up a frame that was received, if it is wanted: it fills in the first of in, and returns 1, else 0. whole is
// false if the link has room for its beginning only. t is what is left to do for it.
func (s *Set) Take(in []frame.In, f []byte, t offload.Task, whole bool) int {
	if !whole {
		s.stats.ReceiveTruncated++
		return 0
	}
	if !s.Wants(f) {
		return 0
	}
	s.Hand(in, f, t)
	return 1
}

// Hand hands up a frame that is wanted: it fills in the first of in. One of several segments counts as the frames that it stands
// for.
func (s *Set) Hand(in []frame.In, f []byte, t offload.Task) {
	in[0] = frame.In{Data: f[:len(f):len(f)], Raw: true, Task: t}
	s.watch.count(1)
	frames, bytes := in[0].OnWire()
	s.stats.ReceivedPackets += uint64(frames)
	s.stats.ReceivedBytes += uint64(bytes)
}
