package bridge

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

const (
	// priorities is how many a frame may have (IEEE 802.1Q, 6.9.3).
	priorities = pause.Priorities
	// A port has a queue for each priority that a pause can stop, or that is to lose nothing, and one for the others.
	others, classes = priorities, priorities + 1
	// A queue of a priority that is lossless asks those who have filled it for a pause when 1/xoffPart of it is used, until 1/xonPart is.
	xoffPart, xonPart = 4, 8
	// mostLossless is how many bytes of a lossless priority wait at a port at most: what arrives after a pause was asked for is as much as
	// whoever sends hands over in a turn.
	mostLossless = 64 << 20
)

// pauseMAC is the source of a switch's pauses: local, and of no station.
var pauseMAC = eth.MAC{0x02, 0x73, 0x77, 0, 0, 2}

// pauses is the flow control of a port.
type pauses struct {
	flow pause.Engine
	// Priorities whose pauses the port obeys, and sends.
	obeys, sends uint8
	frame        [eth.PauseLen]byte
	full         [priorities]int // queues of each priority that want the other end of this port to be silent
	asks         uint8           // priorities with such queues
}

// SetPauses says which pauses the port obeys and sends, and by which rate they last. It returns the port, as a bit for its number, if
// something is to be taken there now.
func (p *Port) SetPauses(now clock.Time, obeys, asks pause.Scope, rate uint64) (woken uint64) {
	p.obeys, p.sends = obeys.Priorities, asks.Priorities
	p.flow.Set(now, pause.Config{Obeys: obeys, Asks: asks, MAC: pauseMAC, Rate: rate})
	p.flow.Ask(p.asks)
	return p.woken(now)
}

// Pauses returns how many pauses the port has sent and received.
func (p *Port) Pauses(now clock.Time) (sent, received uint64) {
	c := p.flow.Counters(now)
	received = c.Global.Received
	for i := range c.Priority {
		received += c.Priority[i].Received
	}
	return p.flow.Sent(), received
}

// Deadline returns when something is to be taken at the port without a frame that comes: a pause ends, or must be repeated.
func (p *Port) Deadline() clock.Time { return p.flow.Deadline() }

// control takes a MAC control frame, which no bridge forwards whatever its address is (IEEE 802.3, 31.3).
func (p *Port) control(now clock.Time, f *Frame) (woken uint64) {
	if dst := eth.MAC(f.Pieces[0]); f.BadFCS || dst != eth.PauseMAC && dst != pauseMAC || p.obeys == 0 {
		p.counters.Reserved++
		return 0
	}
	b := p.frame[:0]
	for _, piece := range f.Pieces {
		b = append(b, piece[:min(len(piece), cap(b)-len(b))]...)
	}
	p.flow.Receive(now, b)
	return p.woken(now)
}

// closed returns the classes of which nothing may leave.
func (p *Port) closed(now clock.Time) (classes uint16) {
	if p.flow.Held() == 0 {
		return 0
	}
	classes = uint16(p.flow.Paused(now))
	if classes != 0 && p.flow.Config().Obeys.Mode == pause.Global {
		classes |= 1 << others
	}
	return classes
}

// woken returns the port's bit if something is to be taken there.
func (p *Port) woken(now clock.Time) uint64 {
	if p.Waiting(now) == 0 {
		return 0
	}
	return 1 << p.Number()
}

// fills notes that a frame of p waits in a queue of the port o at a lossless priority, and asks the other end of p for a pause if the
// queue is full enough.
func (p *Port) fills(now clock.Time, o *Port, priority uint8) (woken uint64) {
	q, bit := o.queues[priority], uint64(1)<<p.Number()
	if q.pausing&bit != 0 || !q.beyond(xoffPart) {
		return 0
	}
	q.pausing |= bit
	p.full[priority]++
	return p.want(now, priority)
}

// drained lets those go on who have filled a queue of the port.
func (p *Port) drained(now clock.Time, priority uint8) (woken uint64) {
	q := p.queues[priority]
	for ; q.pausing != 0; q.pausing &= q.pausing - 1 {
		if x := p.bridge.ports[bits.TrailingZeros64(q.pausing)]; x != nil {
			x.full[priority]--
			woken |= x.want(now, priority)
		}
	}
	return woken
}

// want asks the other end for the pauses of what is full.
func (p *Port) want(now clock.Time, priority uint8) uint64 {
	p.asks &^= 1 << priority
	if p.full[priority] > 0 {
		p.asks |= 1 << priority
	}
	p.flow.Ask(p.asks)
	if p.flow.Ready(now) {
		return 1 << p.Number()
	}
	return 0
}

// leave ends what the port holds up, and what is held up for it. It returns the ports at which something is to be taken now.
func (p *Port) leave(now clock.Time) (woken uint64) {
	bit := uint64(1) << p.Number()
	for _, o := range p.bridge.ports {
		for i := range priorities {
			if o != nil && o.queues[i] != nil {
				o.queues[i].pausing &^= bit
			}
		}
	}
	for i := range uint8(priorities) { // the others hold up nobody
		if p.queues[i] != nil {
			woken |= p.drained(now, i)
		}
	}
	return woken
}
