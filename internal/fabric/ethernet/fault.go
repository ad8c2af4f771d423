package ethernet

import (
	"math"
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

// mostUrgent is how many pauses of a host, or frames of the switch, wait for the line; of more the oldest is lost.
const mostUrgent = 16

// Express sends a frame of the switch's own before all that waits, whatever is paused. It is the port's then.
func (p *Port) Express(now clock.Time, f Ref) {
	if p.down {
		p.sw.store.Drop(f)
		return
	}
	p.express(now, f)
}

// express puts a pause of the host before all that waits.
func (p *Port) express(now clock.Time, f Ref) {
	if len(p.urgent) == mostUrgent {
		p.sw.store.Drop(p.urgent[0])
		p.urgent = p.urgent[:copy(p.urgent, p.urgent[1:])]
	}
	p.urgent = append(p.urgent, f)
	p.wake(now)
}

// slowest is the rate by whose bit times a host may count that knows none of its link.
const slowest = 10e9

// speakFor takes a pause of the host as a wish, which joins those of the port itself: one does not end what the other wants. False: it
// is of a kind that the port does not send.
func (p *Port) speakFor(now clock.Time, b []byte) bool {
	f, err := eth.ParsePause(b)
	if err != nil || p.cfg.FlowControl == NoFlowControl || f.PerPriority != (p.cfg.FlowControl == PriorityPause) {
		return false
	}
	if !f.PerPriority {
		f.Enabled = 1
	}
	for set := f.Enabled; set != 0; set &= set - 1 {
		i := uint8(bits.TrailingZeros8(set))
		if p.behalf &^= 1 << i; f.Quanta[i] > 0 {
			p.behalf |= 1 << i
			p.till[i] = now.Add(eth.PauseTime(f.Quanta[i], min(p.cfg.Rate, slowest)))
		}
	}
	p.ask()
	p.wake(now)
	return true
}

// relayPause sends the first pause of the host.
func (p *Port) relayPause(now clock.Time) {
	f := p.urgent[0]
	p.urgent = p.urgent[:copy(p.urgent, p.urgent[1:])]
	p.transmit(now, f, p.sw.store.Len(f))
}

// passPause hands a pause that arrives at a station to its host too.
func (f *Fabric) passPause(a *arrival, x *node) {
	var h header
	if h.parse(f.Store.Head(a.frame)) && h.pause() && x.station.Wire().Up() {
		f.Deliver(a.at, End{int(a.node), x.station.host}, f.Store.again(a.frame))
	}
}

// Hold stops the host from taking what arrives, or lets it go on: what it does not take waits at the station, and then at the switch,
// if the station pauses that, or is lost.
func (s *Station) Hold(now clock.Time, hold bool) {
	o := &s.ports[s.host]
	o.hung = hold
	o.wake(now)
}

// SetTake says how fast the host takes what arrives, in bits per second; 0: at once.
func (s *Station) SetTake(now clock.Time, rate uint64) {
	o := &s.ports[s.host]
	s.taking = rate
	if s.atOnce = rate == 0; s.atOnce {
		o.perByte = 0
	} else {
		o.perByte = perByteOf(rate)
	}
	o.wake(now)
}

// Take returns what SetTake has set.
func (s *Station) Take() uint64 {
	if s.atOnce {
		return 0
	}
	return s.taking
}

// perByteOf returns the time of a byte, ns << 32.
func perByteOf(rate uint64) uint64 {
	return uint64(8 * float64(time.Second) / float64(rate) * (1 << 32))
}

// SetRate changes the rate of a port; that of the other end of its link has to be changed too. The error is a *FieldError.
func (p *Port) SetRate(now clock.Time, rate uint64) error {
	if rate < leastRate || rate > mostRate {
		return bad("Rate", rate, "1 Mb/s to 1 Tb/s")
	}
	p.cfg.Rate, p.perByte = rate, perByteOf(rate)
	p.follow(now)
	p.wake(now)
	return nil
}

// Config returns how the port is configured, with all defaults.
func (p *Port) Config() PortConfig { return p.cfg }

// Storm makes the port pause priorities of the other end for no reason, until it is called with none.
func (p *Port) Storm(now clock.Time, priorities uint8) {
	p.forced = priorities
	p.follow(now)
	p.wake(now)
}

// Storming returns the priorities of Storm.
func (p *Port) Storming() uint8 { return p.forced }

// roomOf returns what a group has of its own beside the shared buffer.
func (p *Port) roomOf(i int) int {
	if p.pausing>>i&1 == 0 || p.cfg.Groups[i].Headroom <= 0 {
		return 0
	}
	return p.cfg.Groups[i].Headroom + p.cfg.longest()
}

// SetPFC changes the priorities that are lossless at the port. The error is a *FieldError, as of SetPauses.
func (p *Port) SetPFC(now clock.Time, lossless uint8) error {
	return p.SetPauses(now, pause.Only(lossless), pause.Only(lossless))
}

// SetPauses changes which pauses the port obeys, and which it sends. What waits stays where it is. The error is a *FieldError: there
// must be room in the buffer for the headroom of what is lossless then.
func (p *Port) SetPauses(now clock.Time, obeys, asks pause.Scope) error {
	old, s := *p, p.sw
	p.cfg.FlowControl, p.cfg.Lossless = NoFlowControl, 0
	switch asks.Mode {
	case pause.Global:
		p.cfg.FlowControl = GlobalPause
	case pause.PerPriority:
		p.cfg.FlowControl, p.cfg.Lossless = PriorityPause, asks.Priorities
	}
	p.pausing = p.cfg.groups()
	size := s.buffer.size
	for i := range p.classes {
		size += p.classes[i].group.room
		p.classes[i].group.room = p.roomOf(i)
		size -= p.classes[i].group.room
	}
	if size < leastShared {
		*p = old
		return bad("Lossless", asks.Priorities, "fewer priorities: their headroom is more than the buffer has")
	}
	s.buffer.size = size
	if (old.cfg.FlowControl == GlobalPause) != (p.cfg.FlowControl == GlobalPause) {
		p.xoff, p.behalf = 0, 0 // they are of other groups
	}
	p.xoff &= p.pausing
	p.obeys = obeys
	p.follow(now)
	p.wake(now)
	return nil
}

// Pauses returns which pauses the port obeys, and which it sends.
func (p *Port) Pauses() (obeys, asks pause.Scope) { return p.obeys, p.cfg.scope() }

// SetLoss makes links lose a share of the frames that leave a port, 0 to 1. It needs Random.
func (f *Fabric) SetLoss(at End, share float64) {
	x := f.nodes[at.Node]
	if x.loss == nil {
		x.loss = make([]uint64, len(x.Peers))
	}
	x.loss[at.Port] = uint64(min(share*(1<<63), 1<<63-1)) << 1
	if share >= 1 {
		x.loss[at.Port] = math.MaxUint64
	}
}

// Loss returns the share of frames that links lose which leave a port.
func (f *Fabric) Loss(at End) float64 {
	if l := f.nodes[at.Node].loss; l != nil {
		return float64(l[at.Port]) / (1 << 64)
	}
	return 0
}

func (f *Fabric) lose(x *node, port int) bool {
	l := x.loss[port]
	return l != 0 && f.Random != nil && (l == math.MaxUint64 || f.Random() < l)
}

// SetUp lets both ends of a link carry frames or not.
func (f *Fabric) SetUp(now clock.Time, at End, up bool) {
	ends := []End{at, f.nodes[at.Node].Peers[at.Port]}
	for _, e := range ends {
		if e.Node >= 0 {
			f.port(e).SetUp(now, up)
			f.Wake(e.Node)
		}
	}
}

// Peer returns the other end of a port's link; the node -1: there is none.
func (f *Fabric) Peer(at End) End { return f.nodes[at.Node].Peers[at.Port] }

// Port returns a port of a node. After it was changed, Wake has to be called.
func (f *Fabric) Port(at End) *Port { return f.port(at) }
