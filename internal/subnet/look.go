package subnet

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/mad"
)

// look checks whether something has changed, without asking every node.
func (s *SM) look() {
	s.stage = stageLight
	s.x.push(work{at: s.cur.Self, attr: mad.AttrPortInfo, mod: uint32(s.cur.Ports[s.cur.Self].Num)})
	for _, node := range s.cur.Switches {
		s.x.push(work{at: s.cur.Nodes[node].First, attr: mad.AttrSwitchInfo})
	}
	for _, p := range s.asleep {
		s.x.push(work{at: p, attr: mad.AttrNodeInfo, beyond: true})
	}
}

// onLook handles the responses to look.
func (s *SM) onLook(w work, smp *mad.SMP) {
	switch w.attr {
	case mad.AttrSwitchInfo:
		if i, err := mad.ParseSwitchInfo(smp.Data[:]); err != nil || i.PortStateChange {
			s.heavy = true
		}
	case mad.AttrPortInfo:
		if i, err := mad.ParsePortInfo(smp.Data[:]); err != nil || i.PortState != s.cur.Ports[w.at].Info.PortState ||
			i.LID != s.cur.Ports[w.at].Info.LID {
			s.heavy, s.whole = true, true
		}
	case mad.AttrNodeInfo:
		s.heavy = true // it has woken up
	}
}

func (s *SM) looked() {
	s.stage = stageIdle
	if s.heavy {
		s.sweepAt = s.now
		return
	}
	s.sweepAt = s.now.Add(s.cfg.Sweep)
	if s.cfg.Sweep == 0 {
		s.sweepAt = clock.Never
	}
}
