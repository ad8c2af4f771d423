package device

import (
	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/device/links"
	"github.com/softvpi/softvpi/internal/frame"
	"github.com/softvpi/softvpi/internal/link"
	"github.com/softvpi/softvpi/internal/port"
	"github.com/softvpi/softvpi/internal/qos"
	"github.com/softvpi/softvpi/internal/trace"
)

// portLoop drives a port: it moves packets between the port and its links, and decides nothing else about them. The
// arrays are reused by every turn.
type portLoop struct {
	port.Port
	host      *Host
	functions []*adapter
	awake     []*adapter // functions that turns ask; see relist
	owners    []*adapter // functions with links of their own
	nics      []*nic     // Ethernet functions, with their hosts
	virtual   []link.VirtualPort
	polling   []polling     // ways in which its adapters want to be polled
	raw       int           // adapters with raw packet QPs
	agent     *agent        // of LLDP; nil: none
	embedded  embedding     // the switch of its functions
	overlay   overlaying    // likewise
	rates     qos.Rates     // of classes
	marking   qos.Marking   // of what is sent
	operative qos.Operative // by which the port works: what its agent has agreed, or its own
	deaf      error         // why the wire does not hear pauses, if it is to
	heard     bool          // it was asked to
	in        []frame.In
	out       []frame.Out
	sent      int        // frames of out that the links have accepted
	queued    int        // frames in out
	arrived   int        // packets that arrived in this turn
	left      bool       // packets were sent in this turn
	dark      bool       // a function's wire is down
	lightDue  clock.Time // when the system may be asked again whether it still is
	received  clock.Time // last look at the links
	quiet     uint32     // turns since packets were received or sent
	retry     clock.Time // when a full link is tried again
	errors    []link.Unreachable
	errorsDue clock.Time
	asleepDue clock.Time // when functions that sleep are to hear of modes and wires, too
	rings     RingCounters
	turns     uint64    // how many it has had
	fault     portFault // 0: none
	broken    bool      // its engines have panicked: it has no turns
}

func newPortLoop(h *Host) *portLoop {
	byDefault := qos.Operative{Settings: qos.Defaults()}
	return &portLoop{
		host: h, in: make([]frame.In, receiveBatch), out: make([]frame.Out, transmitBatch), errors: make([]link.Unreachable, errorBatch),
		operative: byDefault,
	}
}

// blocked reports whether a link has not accepted all frames.
func (p *portLoop) blocked() bool { return p.sent < p.queued }

// enabled reports whether any function is.
func (p *portLoop) enabled() bool {
	if p.broken {
		return false
	}
	for _, a := range p.functions {
		if a.enabled {
			return true
		}
	}
	return p.nicsOn()
}

// step is one turn of a port.
func (p *portLoop) step(now clock.Time) bool {
	if p.host.trace.Wants(trace.Loop, trace.Verbose) {
		return p.tracedStep(now)
	}
	return p.turn(now)
}

func (p *portLoop) turn(now clock.Time) bool {
	if p.left = false; audit != nil {
		audit(p)
	}
	worked := p.receive(now)
	if !worked && p.idle(now) {
		return false
	}
	if now >= p.errorsDue {
		p.linkErrors(now)
	}
	for i := 0; i < len(p.awake); i++ {
		if a := p.awake[i]; a.enabled {
			worked = a.prepareTurn(now) || worked
		}
	}
	p.Advance(now)
	for i := 0; i < len(p.awake); i++ {
		if a := p.awake[i]; a.enabled && !a.function.Held() {
			a.release()
		}
	}
	worked = p.transmit(now) || worked
	for i := 0; i < len(p.awake); i++ {
		if a := p.awake[i]; a.enabled {
			worked = a.finishTurn(now) || worked
		}
	}
	return worked
}

// idle reports whether a turn in which nothing arrived has nothing else to do.
func (p *portLoop) idle(now clock.Time) bool {
	if p.blocked() || now >= p.errorsDue {
		return false
	}
	for _, a := range p.awake {
		if a.enabled && !a.idle(now) {
			return false
		}
	}
	if p.quiet%idleTurns == 0 {
		p.IdleTurn()
	}
	return len(p.nics) == 0 && p.raw == 0 && !p.agent.on() && !p.Controlled() || p.Port.Deadline() > now
}

// receive passes what the links have received to the port.
//
// Links that have been quiet for many turns are checked only in some turns: it costs a system call, and a
// sleeping loop is woken by them in any case, as is a program that drives the loop between two commands.
func (p *portLoop) receive(now clock.Time) bool {
	p.arrived = 0
	if p.host.commanded {
		return false
	}
	if p.quiet++; p.quiet > quietTurns && p.quiet%quietSkip != 0 {
		return false
	}
	p.received = now
	if p.host.sleep.armed {
		p.host.sleep.disarm()
	}
	for _, a := range p.owners {
		for _, o := range a.links.All() {
			if o.Link != nil && !o.Shared() {
				p.receiveFrom(now, o)
			}
		}
	}
	return p.pull(now) || p.arrived > 0
}

// pull takes what the hosts of Ethernet functions send.
func (p *portLoop) pull(now clock.Time) (pulled bool) {
	for _, n := range p.nics {
		if n.side.Pull(now) > 0 {
			p.quiet, pulled = 0, true
		}
		n.regroup()
	}
	return pulled
}

// receiveFrom passes on what one link has received.
func (p *portLoop) receiveFrom(now clock.Time, o *links.Address) {
	for got := 0; got < receiveMost; {
		n, err := o.Receive(p.in)
		if err != nil {
			o.ReceiveFailed(err)
		}
		if n == 0 {
			return
		}
		if o.Moved() { // what arrives is from somebody: hosts that answer must have a carrier
			p.followWires()
		}
		if p.dark {
			p.relight(now)
		}
		p.quiet = 0
		got += n
		p.arrived += n
		full := n == len(p.in)
		p.rings.received(n, len(p.in), !p.host.woken)
		p.Receive(now, o.Wire, p.in[:n])
		if !full {
			return
		}
	}
}

// transmit passes the port's packets to the links, in order. What a link does not accept waits for the next turn, and so
// does the port.
func (p *portLoop) transmit(now clock.Time) bool {
	worked := false
	for range transmitRounds {
		if left := p.sent; p.blocked() && !p.flush(now) {
			// A link that accepts nothing is no work: whoever makes room may need this processor.
			return worked || p.sent > left
		}
		pending := p.Pending() // requests may complete without a frame
		if p.dark && pending {
			p.relight(now)
		}
		n := p.Transmit(now, p.out)
		if n == 0 {
			return worked || pending
		}
		worked, p.left = true, true
		p.sent, p.queued = 0, n
		if !p.flush(now) || n < transmitBatch && !p.Pending() {
			return true
		}
	}
	return worked
}

// forget drops frames of a station that wait for a link.
func (p *portLoop) forget(s *port.Station) {
	if p.Sender() == s {
		p.sent, p.queued = 0, 0
	}
}

// flush sends queued frames; false: a link is full.
func (p *portLoop) flush(now clock.Time) bool {
	for p.sent < p.queued {
		w, n := p.Run(p.out[p.sent:p.queued])
		to := p.sent + n
		o := p.address(w)
		if o == nil { // the address is gone: treat it as lost in the network
			p.sent = to
			continue
		}
		if p.out[p.sent].Inside {
			o.Show(p.out[p.sent:to])
			p.sent = to
			continue
		}
		p.quiet = 0 // there will be answers
		n, err := o.Send(p.out[p.sent:to])
		p.sent += n
		if err != nil {
			o.SendFailed(err)
		}
		if p.sent < to {
			p.retry = now.Add(retryInterval)
			return false
		}
	}
	return true
}

// address returns the address whose link is a wire; nil if there is none.
func (p *portLoop) address(w *port.Wire) *links.Address {
	if w == nil {
		return nil
	}
	for _, a := range p.functions {
		if o := a.links.By(w); o != nil {
			return o
		}
	}
	return nil
}

// deadline returns when the loop must next run for this port.
func (p *portLoop) deadline() clock.Time {
	for _, a := range p.awake {
		if a.enabled && a.engine.Undelivered() {
			return 0
		}
	}
	if p.blocked() {
		return p.retry
	}
	due := p.Port.Deadline()
	for _, a := range p.awake {
		if a.enabled {
			due = clock.Min(due, a.deadline())
		}
	}
	for _, a := range p.owners {
		due = clock.Min(due, a.links.Deadline())
	}
	for _, n := range p.nics {
		due = clock.Min(due, n.side.Deadline())
	}
	return due
}
