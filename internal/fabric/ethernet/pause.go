package ethernet

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

// pauses is the flow control of a port, with what makes it ask for pauses. Bit p stands for priority p.
type pauses struct {
	pausing uint8 // groups that may pause the other end
	silent  bool  // the other end is no link's, and is not told
	hung    bool  // the other end is a host that takes nothing
	xoff    uint8 // groups that want it paused
	forced  uint8 // priorities that it is told to pause for no reason
	stormy  uint8 // priorities whose storm was reported
	behalf  uint8 // groups that the host of a station wants it to pause
	flow    pause.Engine
	obeys   pause.Scope            // what it obeys
	till    [Priorities]clock.Time // for how long the host wants that, if it does not say so again
}

// follow makes the port's flow control that of its configuration.
func (p *Port) follow(now clock.Time) {
	asks := p.cfg.scope()
	if asks.Mode != pause.Global {
		asks = pause.Only(asks.Priorities | p.forced)
	}
	p.flow.Set(now, pause.Config{Obeys: p.obeys, Asks: asks, MAC: p.sw.cfg.MAC, Rate: p.cfg.Rate, Quanta: p.cfg.Quanta})
	p.stormy &= p.flow.Held()
	p.ask()
}

// ask asks for the pauses that the port wants.
func (p *Port) ask() {
	if !p.silent {
		p.flow.Ask(p.xoff | p.forced | p.behalf)
	}
}

// control takes a MAC control frame.
func (p *Port) control(now clock.Time, frame []byte) {
	p.flow.Receive(now, frame)
	p.stormy &= p.flow.Held()
	p.wake(now)
}

// closed returns the priorities that may not send.
func (p *Port) closed(now clock.Time) uint8 {
	if p.hung {
		return 0xff
	}
	paused := p.flow.Held()
	if paused != 0 {
		paused = p.flow.Paused(now)
		p.stormy &= paused
	}
	return paused
}

// stall reports priorities that have been paused for too long while frames wait, and returns when the port must look again at those
// that are paused.
func (p *Port) stall(now clock.Time) clock.Time {
	at := clock.Never
	for set := p.flow.Held() & p.backlog; set != 0; set &= set - 1 {
		i := uint8(bits.TrailingZeros8(set))
		at = clock.Min(at, p.flow.Until(i))
		if p.stormy>>i&1 != 0 {
			continue
		}
		report := p.flow.Since(i).Add(p.sw.cfg.Storm)
		if report > now {
			at = clock.Min(at, report)
			continue
		}
		p.stormy |= 1 << i
		p.classes[i].events.storms++
		if s := p.sw; len(s.storms) < cap(s.storms) {
			s.storms = append(s.storms, Storm{Port: int(p.number), Priority: i, Since: p.flow.Since(i)})
		}
	}
	return at
}

// Storm is a queue that has been paused for too long while frames wait.
type Storm struct {
	Port     int
	Priority uint8
	Since    clock.Time
}

// signal tells the other end what it must pause.
func (p *Port) signal(now clock.Time) {
	for set := p.behalf; set != 0; set &= set - 1 {
		if i := uint8(bits.TrailingZeros8(set)); p.till[i] <= now {
			p.behalf &^= 1 << i
		}
	}
	p.ask()
	var b [eth.PauseLen]byte
	r := p.sw.store.Put(p.flow.Append(now, b[:0]), 0)
	p.transmit(now, r, eth.PauseLen)
}

// Paused returns the priorities that the other end has paused, and for which ones this end has paused it.
func (p *Port) Paused(now clock.Time) (here, there uint8) { return p.flow.Paused(now), p.flow.Told() }
