package port

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/trace"
)

// Counters are those of a port, kept for the life of the port.
type Counters struct {
	// Sent are the frames of each priority that have left by a wire, and Arrived those that a wire has brought, whoever they are for.
	// Those that name no priority are apart, as Untagged.
	Sent, Arrived [frame.Priorities + 1]Tally
	// Received were delivered to functions.
	Received uint64
	// Unclaimed arrived for no station, or for one that is off.
	Unclaimed uint64
	// Turned went from one station to another; TurnedLost were lost because too many did at once.
	Turned, TurnedLost uint64
	// Dark were sent by a station that is cut off from its wires, or arrived for one.
	Dark uint64
}

// Port is a port of a device. The zero value has no stations.
type Port struct {
	Scheduler Scheduler
	// Classifier says which priority frames have that a wire brings.
	Classifier qos.Classifier

	stations []*Station
	shared   []*Station               // those with a Share
	alone    *Station                 // the station, if there is one, which has no Share; nil: there are others, or none
	roster   roster                   // those that are asked
	served   [frame.Priorities]uint64 // what the station had sent that was asked last, for each priority
	pulls    uint64                   // calls of pull
	sender   *Station                 // whose packets the last Transmit handed out
	next     frame.Next
	turned   turned
	flow     *flow // nil: no wire is one of whole Ethernet frames
	backlog  backlog
	watch    watch
	trace    *trace.Recorder
	lifetime lifetime
	shown    []byte // a frame that is sent, for those who see all
	counters Counters
}

// Counters returns the port's counters, which keep counting.
func (p *Port) Counters() *Counters { return &p.counters }

// Advance lets the functions do what is due, and delivers what they have sent each other.
func (p *Port) Advance(now clock.Time) {
	if p.turned.waiting() {
		p.deliverTurned(now)
	}
	if p.flow != nil {
		p.followFlow(now)
	}
	if p.backlog.n > 0 {
		p.drain(now)
	}
	if p.flow != nil {
		p.observe(now)
		p.ask()
	}
	if s := p.alone; s != nil { // which does not sleep
		if !s.off {
			s.function.Advance(now)
		}
		return
	}
	p.wakeDue(now)
	for i := 0; i < len(p.roster.awake); {
		s := p.roster.awake[i]
		if !s.off {
			s.function.Advance(now)
		}
		p.rest(s)
		i = p.roster.after(i, s)
	}
}

// Deadline returns when the port wants to be driven next; 0 if now.
func (p *Port) Deadline() clock.Time {
	if p.turned.waiting() {
		return 0
	}
	due := p.Scheduler.Deadline(p.pending())
	if due == 0 {
		return 0
	}
	if p.backlog.n > 0 {
		due = clock.Min(due, p.backlog.due())
	}
	if len(p.shared) > 0 {
		due = clock.Min(due, p.sharesDue())
	}
	if p.flow != nil {
		if p.lends() {
			return 0
		}
		due = clock.Min(due, p.flow.Deadline())
		due = clock.Min(due, p.watch.due())
	}
	if p.lifetime.cfg.Classes != 0 {
		due = clock.Min(due, p.lifetime.at)
	}
	if s := p.alone; s != nil && !s.off {
		return clock.Min(due, s.function.Deadline())
	}
	for _, s := range p.roster.awake {
		if !s.off {
			due = clock.Min(due, s.function.Deadline())
		}
	}
	if p.roster.room > 0 {
		due = clock.Min(due, p.roster.due.First())
	}
	return due
}

// pending returns the priorities at which any function has something to send.
func (p *Port) pending() (priorities uint8) {
	if s := p.alone; s != nil && !s.off {
		return s.function.Pending()
	}
	for _, s := range p.roster.awake {
		priorities |= s.pending()
	}
	return priorities
}

// Pending reports whether Transmit has something to do now: at a priority that is not paused, and whose rate had not been
// used up when Transmit was last called.
func (p *Port) Pending() bool {
	return p.Scheduler.Deadline(p.pending()) == 0 || p.signals() || p.lends()
}

// Transmit pulls packets of one priority from one function, with their outer headers, and returns their number. A
// function may have none in spite of Pending; then the others are asked.
func (p *Port) Transmit(now clock.Time, out []frame.Out) int {
	if p.turned.hurry() { // their functions are about to get their memory back
		p.deliverTurned(now)
	}
	p.turned.reuse()
	if p.flow != nil && p.signal(now, out) {
		return 1
	}
	if p.lifetime.cfg.Classes != 0 {
		p.age(now)
	}
	if len(p.shared) > 0 {
		p.fill(now)
	}
	pending := p.pending()
	for pending != 0 {
		priority, most, ok := p.Scheduler.Next(now, pending)
		if !ok {
			p.reclaim(now, out)
			return 0
		}
		if n := p.pull(now, priority, out[:min(most, len(out))]); n > 0 {
			p.seal(now, out[:n])
			if p.lifetime.cfg.Classes != 0 {
				p.lifetime.left(now, p.Scheduler.traffic.Class[priority])
			}
			sum := p.count(priority, out[:n])
			p.sender.sent[priority] += uint64(sum)
			p.sender.charge(sum)
			p.sender.fine(priority)
			p.Scheduler.Sent(priority, sum)
			return n
		}
		pending &= p.pending() &^ (1 << priority) // asking may have been all that there was to do
	}
	p.reclaim(now, out)
	return 0
}

// pull asks the functions for packets of a priority until one has some, first who has sent the fewest bytes, so that they share the
// wire evenly, whatever the sizes of their packets and bursts. Who had nothing to send has saved nothing up (start-time fair queueing).
func (p *Port) pull(now clock.Time, priority uint8, out []frame.Out) int {
	p.pulls++
	if s := p.alone; s != nil && !s.off { // which has something, as far as anybody knows
		n := s.function.Transmit(now, priority, out)
		if s.asked = p.pulls; n > 0 {
			p.sender = s
			s.sent[priority] = max(s.sent[priority], p.served[priority])
			p.served[priority] = s.sent[priority]
		}
		return n
	}
	for {
		s := p.least(priority)
		if s == nil {
			return 0
		}
		s.asked = p.pulls
		if n := s.function.Transmit(now, priority, s.few(out)); n > 0 {
			if p.sender = s; !s.owed() { // what somebody is owed is beside the turns of the others
				s.sent[priority] = max(s.sent[priority], p.served[priority])
				p.served[priority] = s.sent[priority]
			}
			return n
		}
	}
}

// least returns who is to send at a priority, of those that have something to send and were not asked yet; nil: nobody.
func (p *Port) least(priority uint8) (least *Station) {
	for _, s := range p.roster.awake {
		if s.asked == p.pulls || s.pending()>>priority&1 == 0 {
			continue
		}
		if least == nil || p.before(s, least, priority) {
			least = s
		}
	}
	return least
}

// seal writes the outer headers.
func (p *Port) seal(now clock.Time, out []frame.Out) {
	s := p.sender
	if s.cut {
		p.counters.Dark += uint64(len(out))
		return
	}
	for len(out) > 0 {
		n := s.run(out)
		if w, x := s.wire(out[0].Route.Src); w != nil && (x.encap != nil || s.Kind != RDMA) {
			if x.encap != nil {
				x.encap.Seal(out[:n])
			}
			if w.steered > 0 {
				p.sniffSent(now, w, out[:n])
			}
			switch {
			case w.InfiniBand:
				if s.Virtual {
					p.refuseManagement(s, out[:n])
				}
				p.turnGroups(w, s, out[:n])
			case s.Kind != Agent && w.embedded != nil:
				p.switched(now, w, s, out[:n])
				out = out[n:]
				continue
			case s.Kind != Agent && (len(w.places) > 1 || w.steered > 0):
				p.turn(now, w, s, out[:n])
			}
			s.Carried.sent(out[:n])
		}
		out = out[n:]
	}
}

// run returns how many packets at the front of out leave by one wire.
func (s *Station) run(out []frame.Out) int {
	if len(s.wires) == 1 {
		return len(out)
	}
	route := out[0].Route
	n := 1
	for ; n < len(out); n++ {
		if r := out[n].Route; r != route && r.Src != route.Src {
			break
		}
	}
	return n
}

// Sender returns the station whose packets the last Transmit handed out.
func (p *Port) Sender() *Station { return p.sender }

// Run returns by which wire the first n of the packets leave that the last Transmit handed out. w is nil for packets
// whose address is gone, or whose station is cut off; those that are for another station of the wire do not leave (frame.Out's
// Inside).
func (p *Port) Run(out []frame.Out) (w *Wire, n int) {
	if p.sender.cut {
		return nil, len(out)
	}
	n = p.sender.run(out)
	if w, _ = p.sender.wire(out[0].Route.Src); w == nil || len(w.places) == 1 && w.steered == 0 && w.embedded == nil {
		return w, n
	}
	inside := out[0].Inside
	for i := range out[:n] {
		if out[i].Inside != inside {
			n = i
			break
		}
	}
	return w, n
}
