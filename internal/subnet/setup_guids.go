package subnet

import (
	"github.com/softvpi/softvpi/internal/subnet/administration"
	"github.com/softvpi/softvpi/internal/subnet/topology"
	"github.com/softvpi/softvpi/wire/mad"
)

// setUpGUIDs writes the GUID blocks that have changed.
func (s *SM) setUpGUIDs() {
	for _, b := range s.sa.ChangedGUIDs() {
		s.pushGUIDs(b)
	}
}

// setUpGUIDsOf writes all GUID blocks of a port that may have lost them.
func (s *SM) setUpGUIDsOf(p int32) {
	port := &s.cur.Ports[p]
	if port.Reach && port.Info.PortState == mad.PortInit {
		for b := range s.sa.GUIDBlocks(port.GUID) {
			s.pushGUIDs(administration.GUIDBlock{Port: port.GUID, Block: uint8(b)})
		}
	}
}

func (s *SM) pushGUIDs(b administration.GUIDBlock) {
	if p := s.cur.EndPortOfGUID(b.Port); p != topology.None {
		s.x.push(work{at: p, attr: mad.AttrGUIDInfo, mod: uint32(b.Block), set: true})
	}
}
