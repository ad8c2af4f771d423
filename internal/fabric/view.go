package fabric

import (
	"fmt"

	"github.com/softvpi/softvpi/internal/fabric/state"
	"github.com/softvpi/softvpi/wire/mad"
)

// Each calls do for each port of the nodes that has a link.
func (f *Fabric) Each(do func(Place)) {
	for i := range f.ports {
		if p := &f.ports[i]; p.number > 0 && p.peer != noPort {
			do(f.place(p))
		}
	}
}

// State returns what a port that has a link is like, and what it has counted; names are those of Names.
func (f *Fabric) State(at Place, names []string) state.Port {
	p := f.port(at)
	peer := f.place(&f.ports[p.peer])
	s := state.Port{Node: names[at.Node], Port: int(at.Port), Peer: fmt.Sprintf("%s[%d]", names[peer.Node], peer.Port), InfiniBand: true,
		Host: f.nodes[at.Node].sw == nil, State: p.info.PortState.String(), Up: p.info.PortState >= mad.PortInit,
		InFrames: p.traffic.rcvPkts, InBytes: 4 * p.traffic.rcvData, OutFrames: p.traffic.xmitPkts, OutBytes: 4 * p.traffic.xmitData}
	speed := p.info.ActiveSpeed()
	if p.ext.LinkSpeedActive == mad.FDR10 {
		speed = mad.SpeedFDR10
	}
	if s.Up {
		s.Width = fmt.Sprintf("%dx%v", mad.Lanes(p.info.LinkWidthActive), speed)
		s.Rate = uint64(float64(mad.Lanes(p.info.LinkWidthActive)) * speed.LaneMbps() * 1e6)
	}
	if f.loss.rates != nil {
		s.Loss = float64(f.loss.rates[f.index(p)]) / (1 << 64)
	}
	if c := p.counters; c != nil {
		for i, v := range c.value {
			switch counter(i) {
			case ctrXmitWait:
			case ctrXmitDiscards:
				s.QueueDrops = v
			default:
				s.Errors += v
			}
		}
	}
	return s
}
