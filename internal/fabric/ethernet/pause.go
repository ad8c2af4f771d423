package ethernet

import (
	"math/bits"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/internal/pause"
	"github.com/softvpi/softvpi/wire/eth"
)

// pauses is what a port has asked of the other end, and what that has asked of it. Bit p stands for priority p.
type pauses struct {
	pausing uint8                  // groups that may pause the other end
	silent  bool                   // the other end is no link's, and is not told
	xoff    uint8                  // groups that want it paused
	forced  uint8                  // priorities that it is told to pause for no reason
	behalf  uint8                  // groups that the host of a station wants it to pause
	till    [Priorities]clock.Time // for how long it does, if it does not say so again
	told    uint8                  // groups that it was told to pause
	again   clock.Time             // when it must be told again
	asked   [Priorities]clock.Time // until when it is counted for how long

	obeys   pause.Scope            // what is obeyed
	paused  uint8                  // priorities that may not send
	until   [Priorities]clock.Time // till when
	since   [Priorities]clock.Time // from when on, without a break
	counted [Priorities]clock.Time // until when that is in the counters
	stormy  uint8                  // priorities whose storm was reported
}

// control takes a MAC control frame.
func (p *Port) control(now clock.Time, frame []byte) {
	f, err := eth.ParsePause(frame)
	c := &p.counters
	switch {
	case err != nil:
		c.Dropped.Reserved++
	case p.obeys.Mode == pause.None, f.PerPriority != (p.obeys.Mode == pause.PerPriority):
		c.Ignored++
	case !f.PerPriority:
		if f.Quanta[0] > 0 {
			c.Global.Received++
		}
		for i := range uint8(Priorities) {
			p.hold(now, i, f.Quanta[0])
		}
	default:
		if f.Enabled&^p.obeys.Priorities != 0 {
			c.Ignored++
		}
		for set := f.Enabled & p.obeys.Priorities; set != 0; set &= set - 1 {
			i := uint8(bits.TrailingZeros8(set))
			if f.Quanta[i] > 0 {
				c.Priority[i].Pause.Received++
			}
			p.hold(now, i, f.Quanta[i])
		}
	}
	p.wake(now)
}

// hold pauses a priority, or lets it go on.
func (p *Port) hold(now clock.Time, i uint8, quanta uint16) {
	p.account(now, i)
	if quanta == 0 {
		p.release(i)
		return
	}
	if p.paused>>i&1 == 0 {
		p.paused |= 1 << i
		p.since[i], p.counted[i] = now, now
	}
	p.until[i] = now.Add(eth.PauseTime(quanta, p.cfg.Rate))
}

func (p *Port) release(i uint8) {
	p.paused &^= 1 << i
	p.stormy &^= 1 << i
}

// account counts for how long a priority has been paused.
func (p *Port) account(now clock.Time, i uint8) {
	if p.paused>>i&1 == 0 {
		return
	}
	to := max(clock.Min(now, p.until[i]), p.counted[i])
	if p.obeys.Mode != pause.Global {
		p.counters.Priority[i].Pause.ReceivedTime += to.Sub(p.counted[i])
	} else if i == 0 {
		p.counters.Global.ReceivedTime += to.Sub(p.counted[i])
	}
	p.counted[i] = to
}

// expire ends pauses whose time is over.
func (p *Port) expire(now clock.Time) {
	for set := p.paused; set != 0; set &= set - 1 {
		if i := uint8(bits.TrailingZeros8(set)); p.until[i] <= now {
			p.account(now, i)
			p.release(i)
		}
	}
}

// stall reports priorities that have been paused for too long while frames wait, and returns when the port must look again at those
// that are paused.
func (p *Port) stall(now clock.Time) clock.Time {
	at := clock.Never
	for set := p.paused & p.backlog; set != 0; set &= set - 1 {
		i := uint8(bits.TrailingZeros8(set))
		at = clock.Min(at, p.until[i])
		if p.stormy>>i&1 != 0 {
			continue
		}
		report := p.since[i].Add(p.sw.cfg.Storm)
		if report > now {
			at = clock.Min(at, report)
			continue
		}
		p.stormy |= 1 << i
		p.counters.Priority[i].Storms++
		if s := p.sw; len(s.storms) < cap(s.storms) {
			s.storms = append(s.storms, Storm{Port: int(p.number), Priority: i, Since: p.since[i]})
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

// wanted returns the groups that the other end should pause.
func (p *Port) wanted() uint8 { return p.xoff | p.forced | p.behalf }

// signals reports whether the other end must be told something now.
func (p *Port) signals(now clock.Time) bool {
	return !p.silent && (p.wanted() != p.told || p.told != 0 && now >= p.again)
}

// signal tells the other end what it must pause.
func (p *Port) signal(now clock.Time) {
	for set := p.behalf; set != 0; set &= set - 1 {
		if i := uint8(bits.TrailingZeros8(set)); p.till[i] <= now {
			p.behalf &^= 1 << i
		}
	}
	f := eth.Pause{Src: p.sw.cfg.MAC, PerPriority: p.cfg.FlowControl != GlobalPause}
	wanted := p.wanted()
	for set := wanted | p.told; set != 0; set &= set - 1 {
		i := uint8(bits.TrailingZeros8(set))
		c := &p.counters.Global
		if f.PerPriority {
			c = &p.counters.Priority[i].Pause
		}
		f.Enabled |= 1 << i
		if p.told>>i&1 != 0 {
			c.SentTime += now.Sub(p.asked[i])
		}
		p.asked[i] = now
		if wanted>>i&1 != 0 {
			f.Quanta[i] = p.cfg.Quanta
			c.Sent++
		}
	}
	if !f.PerPriority {
		f.Enabled = 0
	}
	p.told, p.again = wanted, clock.Never
	if wanted != 0 {
		p.again = now.Add(eth.PauseTime(p.cfg.Quanta, p.cfg.Rate) / 2)
	}
	var b [eth.PauseLen]byte
	r := p.sw.store.Put(f.Append(b[:0]), 0)
	p.transmit(now, r, eth.PauseLen)
}

// Paused returns the priorities that the other end has paused, and for which ones this end has paused it.
func (p *Port) Paused(now clock.Time) (here, there uint8) {
	for i := range uint8(Priorities) {
		if p.paused>>i&1 != 0 && p.until[i] > now {
			here |= 1 << i
		}
	}
	return here, p.told
}

// pauseTimes brings the durations in the counters up to date.
func (p *Port) pauseTimes(now clock.Time) {
	for i := range uint8(Priorities) {
		p.account(now, i)
		if p.told>>i&1 == 0 {
			continue
		}
		c := &p.counters.Global
		if p.cfg.FlowControl != GlobalPause {
			c = &p.counters.Priority[i].Pause
		}
		c.SentTime += max(now.Sub(p.asked[i]), 0)
		p.asked[i] = now
	}
}
