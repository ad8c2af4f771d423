package dcb

import (
	"slices"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/wire/lldp"
)

// Counters are those of an agent (IEEE 802.1AB, 9.2.6), and are kept for its life.
type Counters struct {
	FramesOut         uint64
	FramesIn          uint64
	FramesInErrors    uint64 // with a TLV that is wrong, or invalid
	FramesDiscarded   uint64 // invalid, or of one neighbour too many
	TLVsDiscarded     uint64
	TLVsUnrecognized  uint64
	Ageouts           uint64 // neighbours that were not heard of for their TTL
	Shutdowns         uint64 // neighbours that said that they end
	MultiplePeers     uint64 // times that two neighbours spoke DCBX
	DCBXInvalid       uint64 // data units of a peer whose settings make no sense
	DCBXConfiguration uint64 // times that the operative settings changed
}

// Agent is the LLDP agent of a port. It begins stopped.
type Agent struct {
	cfg      Config
	counters Counters

	running bool
	wire    bool // the port has one
	// The transmit state machines (9.2.8, 9.2.9).
	now      bool       // a data unit is to be sent as soon as there is credit
	fast     int        // data units left of those for a new neighbour
	due      clock.Time // when the next is sent without a reason
	credit   int
	creditAt clock.Time // when there is one more; Never if there are all
	last     bool       // the data unit that ends is to be sent
	silent   clock.Time // until when nothing is sent after it

	neighbours []Neighbour
	crowded    clock.Time // until when there were too many neighbours

	dcbx dcbx
}

// New returns an agent.
func New(cfg Config) *Agent {
	a := &Agent{cfg: cfg, wire: true, credit: mostCredit, creditAt: clock.Never, due: clock.Never}
	a.dcbx.operative = cfg.Own()
	return a
}

func seconds(n int) clock.Time { return clock.Time(n) * second }

// Start makes the agent work. What the port was told before is forgotten.
func (a *Agent) Start(now clock.Time) {
	if a.running {
		return
	}
	a.running = true
	a.begin(now)
}

// begin is what both state machines do when the port becomes operational.
func (a *Agent) begin(now clock.Time) {
	a.neighbours, a.crowded = nil, 0
	a.fast, a.now = 0, false
	a.credit, a.creditAt = mostCredit, clock.Never
	a.dcbx.begin()
	a.due = max(now, a.silent)
	a.settle(now)
}

// Stop ends the agent: Transmit has one more data unit, which says so, if it has sent any.
func (a *Agent) Stop(now clock.Time) {
	if !a.running {
		return
	}
	a.running, a.now = false, false
	a.end(now)
	a.neighbours, a.crowded = nil, 0
	a.due, a.creditAt = clock.Never, clock.Never
	a.settle(now)
}

// end lets the neighbours know that nothing more comes.
func (a *Agent) end(now clock.Time) {
	if a.cfg.Transmit != Off && a.wire && now >= a.silent {
		a.last = true
		a.silent = now + seconds(reinit)
	}
}

// SetWire says whether the port has a wire. With a new one everything begins again.
func (a *Agent) SetWire(now clock.Time, up bool) {
	if a.wire == up {
		return
	}
	a.wire = up
	switch {
	case !up: // neighbours age
		a.now, a.last, a.due = false, false, clock.Never
	case a.running:
		a.begin(now)
	}
}

// Configure changes how the agent works, while it does or not.
func (a *Agent) Configure(now clock.Time, cfg Config) {
	was, said := a.cfg, a.said()
	if a.running && was.Transmit != Off && cfg.Transmit == Off {
		a.end(now)
	}
	a.cfg = cfg
	switch {
	case a.running && (was.MAC != cfg.MAC || was.Transmit != cfg.Transmit || was.Receive != cfg.Receive):
		a.begin(now)
		return
	case was.speaks() != cfg.speaks() || was.Protocol != cfg.Protocol:
		a.dcbx.begin()
	}
	a.settle(now)
	if a.sends() && a.said() != said {
		a.signal(now)
	}
}

// said returns the data unit that the port sends.
func (a *Agent) said() string {
	u := a.unit()
	return string(u.Append(nil))
}

// Configuration returns how the agent works.
func (a *Agent) Configuration() Config { return a.cfg }

// Operative returns the settings by which the port is to work.
func (a *Agent) Operative() qos.Operative { return a.dcbx.operative }

// Counters returns the agent's counters.
func (a *Agent) Counters() Counters { return a.counters }

// sends reports whether data units are sent.
func (a *Agent) sends() bool { return a.running && a.wire && a.cfg.Transmit != Off }

// Receives reports whether LLDP frames are for the agent: they are then for nobody else.
func (a *Agent) Receives() bool { return a.running && a.cfg.Receive != Off }

// Pending reports whether Transmit has a frame now.
func (a *Agent) Pending() bool { return a.last || a.sends() && a.now && a.credit > 0 }

// Deadline returns when Advance is wanted next.
func (a *Agent) Deadline() clock.Time {
	due := clock.Never
	if a.sends() {
		due = a.due
		due = clock.Min(due, a.creditAt)
	}
	for i := range a.neighbours {
		n := &a.neighbours[i]
		if due = clock.Min(due, n.Expires); n.doubt != 0 {
			due = clock.Min(due, n.doubt)
		}
	}
	return due
}

// Advance does what is due.
func (a *Agent) Advance(now clock.Time) {
	for a.creditAt <= now {
		if a.credit++; a.credit < mostCredit {
			a.creditAt += seconds(1)
		} else {
			a.creditAt = clock.Never
		}
	}
	a.age(now)
	if !a.sends() || now < a.due {
		return
	}
	if a.fast > 0 {
		a.fast--
	}
	a.signal(now)
}

// signal has a data unit sent, and sets when the next is.
func (a *Agent) signal(now clock.Time) {
	if now < a.silent {
		a.due = a.silent
		return
	}
	a.now = true
	if a.fast > 0 {
		a.due = now + seconds(fastInterval)
	} else {
		a.due = now + seconds(interval)
	}
}

// Transmit returns a frame to be sent, nil if there is none.
func (a *Agent) Transmit(now clock.Time) []byte {
	if !a.Pending() {
		return nil
	}
	p := lldp.PDU{ChassisID: a.cfg.Local.ChassisID, PortID: a.cfg.Local.PortID}
	if a.last {
		a.last = false
	} else {
		a.now = false
		if a.credit--; a.creditAt == clock.Never {
			a.creditAt = now + seconds(1)
		}
		p = a.unit()
	}
	a.counters.FramesOut++
	return p.Frame(a.cfg.MAC)
}

// unit returns what the port says of itself.
func (a *Agent) unit() lldp.PDU {
	p := a.cfg.Local
	if a.cfg.Transmit == Mandatory {
		p = lldp.PDU{ChassisID: p.ChassisID, PortID: p.PortID}
	}
	p.TTL = ttl
	if a.dcbx.protocol != Auto {
		a.dcbx.speak(&a.cfg, &p)
	}
	return p
}

// settle has DCBX look at what is known, and says what has changed to the neighbours.
func (a *Agent) settle(now clock.Time) {
	if a.dcbx.settle(&a.cfg, &a.counters, a.running && a.cfg.speaks(), a.peer()) && a.sends() {
		a.signal(now)
	}
}

// Neighbours returns what is known of the others.
func (a *Agent) Neighbours() []Neighbour { return slices.Clone(a.neighbours) }

// Crowded reports whether there are more neighbours than are known.
func (a *Agent) Crowded(now clock.Time) bool { return now < a.crowded }
