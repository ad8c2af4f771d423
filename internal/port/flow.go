package port

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/internal/trace"
	"github.com/softvpi/softvpi/wire/eth"
)

// controlAt is where in an Out's Head a MAC control frame begins.
const controlAt = 64

// flow is the flow control of a port on its wire of whole Ethernet frames.
type flow struct {
	pause.Engine
	wire    *Wire
	station Station // in whose name its frames leave, although it is no function's
	route   frame.Route
	control uint64 // MAC control frames received
	obeyed  uint8  // priorities that the functions were told
	frame   [eth.PauseLen]byte
}

// SetFlowControl makes MAC control frames on a wire of whole Ethernet frames the port's, and says which pauses it obeys and sends. A
// port has one such wire.
func (p *Port) SetFlowControl(now clock.Time, w *Wire, cfg pause.Config) {
	if p.flow == nil {
		p.flow = &flow{station: Station{Kind: Agent, port: p}}
	}
	if f := p.flow; f.wire != w {
		if f.wire != nil {
			f.wire.flow = nil
		}
		f.wire, f.station.wires, w.flow = w, []*Wire{w}, f
	}
	p.watch.wanted = cfg
	if p.watch.critical {
		cfg = pause.Config{MAC: cfg.MAC, Rate: cfg.Rate}
	}
	p.flow.Set(now, cfg)
	p.followFlow(now)
}

// FlowControl returns the engine of the port's flow control; nil: it has no wire of whole Ethernet frames.
func (p *Port) FlowControl() *pause.Engine {
	if p.flow == nil {
		return nil
	}
	return &p.flow.Engine
}

// ControlFrames returns how many MAC control frames the port has received.
func (p *Port) ControlFrames() uint64 {
	if p.flow == nil {
		return 0
	}
	return p.flow.control
}

// SetTrace has the port record pauses; nil: nothing.
func (p *Port) SetTrace(r *trace.Recorder) { p.trace = r }

// isControl reports whether a frame is one of MAC control (IEEE 802.3, 31.4). No station gets any, whatever its address.
func isControl(b []byte) bool {
	return len(b) >= eth.EthernetLen && b[12] == byte(eth.TypeMACControl>>8) && b[13] == byte(eth.TypeMACControl&0xff)
}

// toFlow takes MAC control frames, and returns the others.
func (p *Port) toFlow(now clock.Time, w *Wire, in []frame.In) []frame.In {
	kept := 0
	for i := range in {
		if !isControl(in[i].Data) {
			if kept < i {
				in[kept] = in[i]
			}
			kept++
			continue
		}
		w.flow.control++
		if b := in[i].Data; !in[i].BadFCS && w.hearsControl(eth.MAC(b)) {
			w.flow.Receive(now, b)
		}
	}
	if kept < len(in) {
		p.followFlow(now)
	}
	return in[:kept]
}

// hearsControl reports whether a MAC control frame to an address is for this end of the wire (IEEE 802.3, 31B.3.3).
func (w *Wire) hearsControl(dst eth.MAC) bool {
	if dst == eth.PauseMAC {
		return true
	}
	for i := range w.places {
		if s := w.places[i].station; s.MAC == dst && !s.off {
			return true
		}
	}
	return false
}

// followFlow notes which priorities may not send.
func (p *Port) followFlow(now clock.Time) {
	if p.flow != nil {
		before, silent := p.Scheduler.Paused(), p.flow.Paused(now)
		if silent != before {
			p.trace.Note(trace.PauseObeyed, uint32(before), uint32(silent))
		}
		p.Scheduler.Pause(silent)
		obeyed := p.flow.Config().Obeys.Priorities
		if obeyed == p.flow.obeyed && !p.roster.newcomers {
			return
		}
		p.flow.obeyed, p.roster.newcomers = obeyed, false
		for _, s := range p.stations {
			if s.patient != nil && s.obeyed != obeyed {
				s.obeyed = obeyed
				s.patient.SetLossless(obeyed)
				s.bell.Ring()
			}
		}
	}
}

// signal hands out the pause that is due, if one is, of a port with flow control. No pause holds it up.
func (p *Port) signal(now clock.Time, out []frame.Out) bool {
	f := p.flow
	if len(out) == 0 || !f.Ready(now) {
		return false
	}
	o := &out[0]
	o.Reset(&f.route)
	b := f.Append(now, f.frame[:0])
	o.HeadStart, o.HeadEnd = controlAt, controlAt+uint16(copy(o.Head[controlAt:], b))
	p.sender = &f.station
	p.trace.Note(trace.PauseAsked, uint32(f.Told()))
	return true
}

// signals reports whether a pause is due whatever the time is.
func (p *Port) signals() bool { return p.flow != nil && p.flow.Deadline() == 0 }

// lends reports whether functions that may not send, for a pause or because of their shares, have packets handed out.
func (p *Port) lends() bool {
	if p.Scheduler.Paused() == 0 {
		return len(p.shared) > 0 && p.sharesLend()
	}
	for _, s := range p.roster.awake {
		if !s.off && s.lender != nil && s.lender.Lent() {
			return true
		}
	}
	return false
}

func (p *Port) sharesLend() bool {
	for _, s := range p.roster.awake {
		if s.shared && s.held() && !s.off && s.lender != nil && s.lender.Lent() {
			return true
		}
	}
	return false
}

// reclaim gives functions what they have handed out, if all that they could send is paused or beyond their shares.
func (p *Port) reclaim(now clock.Time, out []frame.Out) {
	if !p.lends() {
		return
	}
	for _, s := range p.roster.awake {
		if !s.off && s.lender != nil && s.lender.Lent() {
			s.function.Transmit(now, 0, out[:0])
		}
	}
}

// Controlled reports whether the port has something to do for flow control, dropless mode or lifetimes in a turn in which nothing
// arrived.
func (p *Port) Controlled() bool {
	if p.backlog.n > 0 || p.backlog.mode.Timeout != 0 || p.lifetime.cfg.Classes != 0 {
		return true
	}
	return p.flow != nil && (p.flow.Config().Obeys.Mode != pause.None || p.flow.Config().Asks.Mode != pause.None || p.flow.Told() != 0)
}
