package pause

import (
	"math/bits"
	"time"

	"github.com/softvpi/softvpi/internal/clock"
	"github.com/softvpi/softvpi/wire/eth"
)

// Priorities is how many there are (IEEE 802.1Q, 6.9.3).
const Priorities = 8

// All are all priorities.
const All uint8 = 0xff

const (
	// DefaultRate is the speed of a link whose speed is not known, in bits per second.
	DefaultRate = 100_000_000_000
	// DefaultQuanta is for how long the other end is asked to pause at a time: as long as one frame can say.
	DefaultQuanta = 0xffff
)

// Mode is which pauses a port sends and obeys.
type Mode uint8

// The modes. What a port does not obey it counts.
const (
	None        Mode = iota
	Global           // of the whole link
	PerPriority      // of single priorities (PFC)
)

// String returns a mode's name.
func (m Mode) String() string { return [...]string{"none", "global pause", "PFC"}[m] }

// Scope is which pauses are meant: of the whole link, or of some priorities, bit p for priority p.
type Scope struct {
	Mode       Mode
	Priorities uint8
}

// Whole is the scope of a global pause.
var Whole = Scope{Mode: Global, Priorities: All}

// Only returns the scope of PFC for some priorities; for none that is no pause.
func Only(priorities uint8) Scope {
	if priorities == 0 {
		return Scope{}
	}
	return Scope{Mode: PerPriority, Priorities: priorities}
}

// Config is how an Engine works. The zero value is no flow control.
type Config struct {
	// Obeys are the pauses that make this end silent, and Asks those that it sends.
	Obeys, Asks Scope
	// MAC is the source of what is sent.
	MAC eth.MAC
	// Rate is the speed of the link in bits per second, by which quanta last; 0: DefaultRate.
	Rate uint64
	// Quanta is for how long the other end is paused at a time, in 512 bit times, and after half of which again; 0: DefaultQuanta.
	Quanta uint16
}

// Counts are pauses of a priority, or of a link.
type Counts struct {
	Sent, Received         uint64        // frames that pause; those that resume are not counted
	SentTime, ReceivedTime time.Duration // for how long the other end, and this one, were paused
}

// Counters are those of an Engine, for its life.
type Counters struct {
	Priority [Priorities]Counts
	// Global are the pauses of the whole link.
	Global Counts
	// Ignored are pauses received of a kind, or for a priority, that is not obeyed.
	Ignored uint64
	// Unknown are MAC control frames received that are no pauses.
	Unknown uint64
}

// Engine is the flow control of one end of a link. The zero value does none; Set begins it.
type Engine struct {
	// Looked at for every frame, and therefore beside each other.
	paused uint8      // priorities that may not send
	xoff   uint8      // priorities for which the other end is to be silent
	told   uint8      // those for which it was told to be
	last   Mode       // of the last pause that was sent
	ends   clock.Time // when the first of paused may send again
	again  clock.Time // when the other end must be told again

	cfg      Config
	counters Counters
	until    [Priorities]clock.Time // till when priorities are paused
	since    [Priorities]clock.Time // from when on, without a break
	counted  [Priorities]clock.Time // until when that is in the counters
	asked    [Priorities]clock.Time // until when told is in the counters
}

// Set changes how the engine works. Priorities that are not obeyed any more may send, and the other end may, as far as it is not
// asked any more.
func (e *Engine) Set(now clock.Time, cfg Config) {
	if cfg.Rate == 0 {
		cfg.Rate = DefaultRate
	}
	if cfg.Quanta == 0 {
		cfg.Quanta = DefaultQuanta
	}
	if e.ends == 0 {
		e.ends, e.again = clock.Never, clock.Never
	}
	gone := e.paused &^ cfg.Obeys.Priorities
	if cfg.Obeys.Mode != e.cfg.Obeys.Mode {
		gone = e.paused
	}
	for set := gone; set != 0; set &= set - 1 {
		e.release(now, uint8(bits.TrailingZeros8(set)))
	}
	e.settle(now)
	e.cfg = cfg
	e.xoff &= cfg.Asks.Priorities
}

// Config returns how the engine works, as Set has completed it.
func (e *Engine) Config() Config { return e.cfg }

// Receive takes a MAC control frame without a tag.
func (e *Engine) Receive(now clock.Time, frame []byte) {
	f, err := eth.ParsePause(frame)
	c := &e.counters
	switch {
	case err != nil:
		c.Unknown++
	case f.PerPriority != (e.cfg.Obeys.Mode == PerPriority), e.cfg.Obeys.Mode == None:
		c.Ignored++
	case !f.PerPriority:
		if f.Quanta[0] > 0 {
			c.Global.Received++
		}
		for i := range uint8(Priorities) {
			e.hold(now, i, f.Quanta[0])
		}
	default:
		if f.Enabled&^e.cfg.Obeys.Priorities != 0 || f.Enabled == 0 {
			c.Ignored++
		}
		for set := f.Enabled & e.cfg.Obeys.Priorities; set != 0; set &= set - 1 {
			i := uint8(bits.TrailingZeros8(set))
			if f.Quanta[i] > 0 {
				c.Priority[i].Received++
			}
			e.hold(now, i, f.Quanta[i])
		}
	}
	e.settle(now)
}

// hold pauses a priority, or lets it go on.
func (e *Engine) hold(now clock.Time, i uint8, quanta uint16) {
	if quanta == 0 {
		e.release(now, i)
		return
	}
	e.account(now, i)
	if e.paused>>i&1 == 0 || e.until[i] <= now { // nobody may have asked since the last pause was over
		e.paused |= 1 << i
		e.since[i], e.counted[i] = now, now
	}
	e.until[i] = now.Add(eth.PauseTime(quanta, e.cfg.Rate))
}

func (e *Engine) release(now clock.Time, i uint8) {
	e.account(now, i)
	e.paused &^= 1 << i
}

// account counts for how long a priority has been paused. A global pause counts once.
func (e *Engine) account(now clock.Time, i uint8) {
	if e.paused>>i&1 == 0 {
		return
	}
	to := max(clock.Min(now, e.until[i]), e.counted[i])
	if e.cfg.Obeys.Mode == PerPriority {
		e.counters.Priority[i].ReceivedTime += to.Sub(e.counted[i])
	} else if i == 0 {
		e.counters.Global.ReceivedTime += to.Sub(e.counted[i])
	}
	e.counted[i] = to
}

// settle ends the pauses whose time is over, and notes when the next one is.
func (e *Engine) settle(now clock.Time) {
	e.ends = clock.Never
	for set := e.paused; set != 0; set &= set - 1 {
		i := uint8(bits.TrailingZeros8(set))
		if e.until[i] <= now {
			e.release(now, i)
			continue
		}
		e.ends = clock.Min(e.ends, e.until[i])
	}
}

// Paused returns the priorities that may not send now, as the other end has asked.
func (e *Engine) Paused(now clock.Time) uint8 {
	if e.paused != 0 && e.ends <= now {
		e.settle(now)
	}
	return e.paused
}

// Held returns the priorities that were paused when the engine was last asked; Paused returns no others.
func (e *Engine) Held() uint8 { return e.paused }

// Since returns from when on, without a break, and Until until when a priority is paused that is.
func (e *Engine) Since(priority uint8) clock.Time { return e.since[priority] }

// Until is described with Since.
func (e *Engine) Until(priority uint8) clock.Time { return e.until[priority] }

// Repeats returns when the other end must be told again what it was told; clock.Never if nothing.
func (e *Engine) Repeats() clock.Time { return e.again }

// Forget ends all pauses: the link is down, and neither end remembers.
func (e *Engine) Forget(now clock.Time) {
	for set := e.paused; set != 0; set &= set - 1 {
		e.release(now, uint8(bits.TrailingZeros8(set)))
	}
	e.times(now)
	e.ends, e.again, e.told = clock.Never, clock.Never, 0
}

// Sent returns how many pauses the engine has sent, of a frame for several priorities each.
func (e *Engine) Sent() uint64 {
	n := e.counters.Global.Sent
	for i := range e.counters.Priority {
		n += e.counters.Priority[i].Sent
	}
	return n
}

// Ask says for which priorities the other end is to be silent, of those in Config.Asks; it may send at the others.
func (e *Engine) Ask(priorities uint8) { e.xoff = priorities & e.cfg.Asks.Priorities }

// Told returns the priorities for which the other end was last told to be silent.
func (e *Engine) Told() uint8 {
	if e.told != 0 && e.last == Global {
		return All
	}
	return e.told
}

// Ready reports whether the other end is to be told something now: Append has it.
func (e *Engine) Ready(now clock.Time) bool {
	return e.xoff != e.told || e.told != 0 && (now >= e.again || e.last != e.cfg.Asks.Mode)
}

// Deadline returns when Ready or Paused has another answer without being told anything; 0 if Ready has now.
func (e *Engine) Deadline() clock.Time {
	if e.xoff != e.told || e.told != 0 && e.last != e.cfg.Asks.Mode {
		return 0
	}
	if e.paused == 0 && e.told == 0 {
		return clock.Never
	}
	return clock.Min(e.ends, e.again)
}

// Append adds the frame that tells the other end what it must pause.
func (e *Engine) Append(now clock.Time, b []byte) []byte {
	mode, pausing := e.cfg.Asks.Mode, e.xoff
	if e.told != 0 && e.last != mode { // what was paused otherwise goes on first
		mode, pausing = e.last, 0
	}
	f := eth.Pause{Src: e.cfg.MAC, PerPriority: mode == PerPriority}
	e.times(now)
	if f.PerPriority {
		f.Enabled = pausing | e.told
		for set := pausing; set != 0; set &= set - 1 {
			i := uint8(bits.TrailingZeros8(set))
			f.Quanta[i] = e.cfg.Quanta
			e.counters.Priority[i].Sent++
		}
	} else if pausing != 0 {
		f.Quanta[0] = e.cfg.Quanta
		e.counters.Global.Sent++
	}
	for set := pausing &^ e.told; set != 0; set &= set - 1 {
		e.asked[bits.TrailingZeros8(set)] = now
	}
	e.told, e.last, e.again = pausing, mode, clock.Never
	if pausing != 0 {
		e.again = now.Add(eth.PauseTime(e.cfg.Quanta, e.cfg.Rate) / 2)
	}
	return f.Append(b)
}

// times counts for how long the other end has been told to be silent.
func (e *Engine) times(now clock.Time) {
	first := true
	for set := e.told; set != 0; set &= set - 1 {
		i := bits.TrailingZeros8(set)
		since := max(now.Sub(e.asked[i]), 0)
		e.asked[i] = now
		if e.last == PerPriority {
			e.counters.Priority[i].SentTime += since
		} else if first {
			e.counters.Global.SentTime += since
		}
		first = false
	}
}

// Counters returns the counters as they are now.
func (e *Engine) Counters(now clock.Time) *Counters {
	for set := e.paused; set != 0; set &= set - 1 {
		e.account(now, uint8(bits.TrailingZeros8(set)))
	}
	e.times(now)
	return &e.counters
}
