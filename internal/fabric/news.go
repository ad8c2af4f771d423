package fabric

import (
	"github.com/softvpi/softvpi/wire/ib"
	"github.com/softvpi/softvpi/wire/mad"
)

// News says what has happened at a port with a program plugged in.
type News struct {
	At      Place
	Changed bool // the port's settings may have changed
	Arrived bool // packets are ready for Collect
	Room    bool // Transmit accepts packets again
}

// tell notes that there is news of a port.
func (f *Fabric) tell(p *port) {
	if l := p.lanes; l != nil && l.plugged && !l.fresh {
		l.fresh = true
		f.data.news = append(f.data.news, f.index(p))
	}
}

// roomier notes that one of the port's queues has become shorter, if its program waits for that. It waits
// until half of the queue is free, so that waking the program is worth it.
func (f *Fabric) roomier(p *port, wants *bool, waiting int) {
	if *wants && waiting <= sendQueue/2 {
		*wants, p.lanes.room = false, true
		f.tell(p)
	}
}

// touch notes that the port's settings may have changed.
func (f *Fabric) touch(p *port) {
	if p.lanes != nil {
		p.lanes.changed = true
		f.tell(p)
	}
}

// News returns what has happened at one port since News last returned it; false: there is no news.
func (f *Fabric) News() (News, bool) {
	last := len(f.data.news) - 1
	if last < 0 {
		return News{}, false
	}
	p := &f.ports[f.data.news[last]]
	f.data.news = f.data.news[:last]
	l := p.lanes
	n := News{f.place(p), l.changed, l.arrived.count > 0, l.room}
	l.fresh, l.changed, l.room = false, false, false
	return n, true
}

// Settings are a port's settings besides its PortInfo.
type Settings struct {
	GUIDs  []uint64 // the first is the port's own
	PKeys  []ib.PKey
	SLtoVL mad.SLtoVLMappingTable
	Speed  mad.Speed // active
	// Reregister counts how often the port's clients were asked to reregister since a program was first
	// plugged in.
	Reregister uint64
}

// Settings returns the settings of a port of a channel adapter or router.
func (f *Fabric) Settings(at Place) Settings {
	p := f.port(at)
	s := Settings{GUIDs: make([]uint64, p.info.GUIDCap), PKeys: make([]ib.PKey, adapterPKeys), SLtoVL: eachLane,
		Speed: p.info.ActiveSpeed()}
	s.PKeys[0] = ib.PKeyDefault
	if t := p.tables; t != nil {
		copy(s.GUIDs, t.guids)
		if t.pkeys != nil {
			copy(s.PKeys, t.pkeys)
		}
		if t.slToVL != nil {
			s.SLtoVL = t.slToVL[0]
		}
	}
	if len(s.GUIDs) > 0 {
		s.GUIDs[0] = p.guid
	}
	if p.ext.LinkSpeedActive == mad.FDR10 {
		s.Speed = mad.SpeedFDR10
	}
	if p.lanes != nil {
		s.Reregister = p.lanes.asked
	}
	return s
}
